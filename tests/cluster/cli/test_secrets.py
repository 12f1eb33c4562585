"""Passwords in a user's hands: from a block to a login, and an answer that never came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaform_kafka.connection.settings import make_client_config
from kafkaform_kafka.wire import security
from kafkaform_kafka.wire.client import RequestNotSent, RequestUnanswered, Wire

from ...kit.commands.folder import Folder
from ...kit.kafka.sessions import login

FIRST, SECOND = "first-hush-hush", "second-hush-hush"
BOTH = ("SCRAM-SHA-256", "SCRAM-SHA-512")


class Users:
    """A folder that declares one user with both mechanisms."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.name = folder.prefix.rstrip(".")

    def declare(self, version: int = 1) -> None:
        blocks = [
            f'resource "kafka_user_scram_credential" "u{number}" {{\n'
            f'  username            = "{self.name}"\n  scram_mechanism     = "{mechanism}"\n'
            f'  password            = secret_env("USER_PASSWORD")\n'
            f"  password_wo_version = {version}\n}}\n"
            for number, mechanism in enumerate(BOTH)
        ]
        self.folder.write("users.kf.hcl", "\n".join(blocks))

    def export(self, password: str) -> None:
        self.folder.monkeypatch.setenv("USER_PASSWORD", password)

    def lets_in(self, password: str) -> tuple[bool, ...]:
        """Whether one can log in with this password, by each mechanism."""
        return tuple(self._enters(password, mechanism) for mechanism in BOTH)

    def _enters(self, password: str, mechanism: str) -> bool:
        as_user = {"username": self.name, "mechanism": mechanism, "password": password}
        try:
            Wire(make_client_config(login(self.folder.broker, "admin", **as_user)), 1.5).close()
        except RequestNotSent:
            return False
        return True

    def leaks(self) -> list[str]:
        """The files of the folder that hold a password."""
        return [
            file.name
            for file in self.folder.path.rglob("*")
            if file.is_file() and b"hush-hush" in file.read_bytes()
        ]


@pytest.fixture
def users(folder: Folder) -> Iterator[Users]:
    """The user is gone afterwards, whatever happened."""
    made = Users(folder)
    made.export(FIRST)
    yield made
    folder.write("users.kf.hcl", "")
    for number in range(2):
        address = f"kafka_user_scram_credential.u{number}"
        text = f"removed {{\n  from = {address}\n  lifecycle {{\n    destroy = true\n  }}\n}}\n"
        folder.write(f"removed{number}.kf.hcl", text)
    folder.declare("kept")
    folder.done("apply", "-auto-approve")


def test_from_a_block_to_a_login_and_to_another_password(users: Users) -> None:
    """Both mechanisms, a raised version, and no password in any file or on any screen."""
    folder = users.folder
    users.declare()
    said = [folder.done("plan", "-out=first.kfplan"), folder.done("apply", "first.kfplan")]
    folder.until(lambda: users.lets_in(FIRST) == (True, True))
    assert "2 to add" in said[0].text and "USER_PASSWORD" in said[0].text
    users.declare(version=2)
    users.export(SECOND)
    said += [folder.done("plan", "--json"), folder.done("plan")]
    assert 'recorded secret version: "1" → "2"' in said[-1].text
    assert "AlterUserScramCredentials (will be checked locally)" in said[-1].text
    said += [folder.done("apply", "-auto-approve"), folder.done("state", "list")]
    folder.until(lambda: users.lets_in(SECOND) == (True, True))
    assert users.lets_in(FIRST) == (False, False)
    said.append(folder.done("plan", "--detailed-exitcode"))
    assert "hush-hush" not in "".join(one.text for one in said)
    assert users.leaks() == []


def test_a_missing_password_sends_nothing(users: Users) -> None:
    """The variable that has to be set is named, after the approval and before any intent."""
    users.declare()
    users.folder.monkeypatch.delenv("USER_PASSWORD")
    said = users.folder.fails(1, "apply", "-auto-approve")
    assert "Set the environment variable USER_PASSWORD. Nothing was sent." in said


def test_a_lost_answer_is_resumed_with_the_same_password(
    users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 6 until the approval is applied again; the password is then the approved one."""
    folder = users.folder
    users.declare()
    folder.done("apply", "-auto-approve")
    users.declare(version=2)
    users.export(SECOND)
    real, send = security.alter_scram, "kafkaform_kafka.kinds.user.requests.alter_scram"

    def lost(*arguments: Any) -> Any:
        real(*arguments)
        raise RequestUnanswered("the connection broke", timed_out=False)

    with monkeypatch.context() as patched:
        patched.setattr(send, lost)
        assert folder.run("apply", "-auto-approve").code == 6
    said = folder.run("apply", "-auto-approve")
    assert said.code == 6 and "nothing can show whether it arrived" in said.text
    token = said.text.split("--expect ")[1].split("`")[0]
    resumed = folder.done("apply", "--expect", token)
    assert "Resuming run" in resumed.text
    folder.until(lambda: users.lets_in(SECOND) == (True, True))
    assert users.leaks() == []


def test_a_command_has_the_passwords(users: Users) -> None:
    """Of the connection and of the user: each is asked once in a run, and no file has them."""
    folder = users.folder
    script = folder.write("get", '#!/bin/sh\necho "$1" >>asked\nprintenv "$1"\n')
    script.chmod(0o700)
    users.declare()
    for name in ("provider.kf.hcl", "users.kf.hcl"):
        text = (folder.path / name).read_text()
        folder.write(
            name, re.sub(r'secret_env\("(\w+)"\)', r'secret_command(["./get", "\1"])', text)
        )
    asked = folder.path / "asked"
    said = [folder.done("plan", "-out=first.kfplan"), folder.done("apply", "first.kfplan")]
    assert sorted(asked.read_text().split()) == ["ADMIN_PASSWORD"] * 2 + ["USER_PASSWORD"] * 2
    assert 'secret_command(["./get", "USER_PASSWORD"])' in said[0].text
    folder.until(lambda: users.lets_in(FIRST) == (True, True))
    assert "hush-hush" not in "".join(one.text for one in said) and users.leaks() == []
    folder.monkeypatch.delenv("USER_PASSWORD")
    users.export("")
    folder.write("users.kf.hcl", (folder.path / "users.kf.hcl").read_text().replace("= 1", "= 2"))
    failed = folder.fails(1, "plan")
    assert "The command printed nothing." in failed and "./get USER_PASSWORD" in failed
    folder.connect()
