"""`explain quota` as it is typed."""

from __future__ import annotations

import json

import pytest

from ...kit.commands.folder import Folder
from ...kit.kafka.logins import Login


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no client is named"),
        (["ci"], "'ci' is not a kind of object here"),
        (["user"], "user has no name"),
        (["user", "ci", "--user", "ci"], "exclude each other"),
        (["--user", "", "--client-id", "app"], "kafkaform describe quotas user ''"),
        (["--ip", ""], "the ip is empty"),
    ],
)
def test_who_is_asked_about_must_be_clear(folder: Folder, arguments: list[str], says: str) -> None:
    """Nothing is read before that is said."""
    assert says in folder.fails(1, "explain", "quota", *arguments)


def test_without_the_right_no_limit_is_guessed(folder: Folder, stranger: Login) -> None:
    """A refusal is never "no limit"."""
    folder.connect(stranger)
    said = folder.fails(1, "explain", "quota", "--user", "ci", "--client-id", "app")
    assert "grant DescribeConfigs on Cluster" in said and "no limit" not in said


def test_a_principal_is_no_user(folder: Folder) -> None:
    """`User:ci` has no limits of its own, so the answer comes with a warning, and `ci` without."""
    asked = ("explain", "quota", "--client-id", "app", "--json", "--user")
    said = folder.done(*asked, "User:ci")
    assert "use the name without 'User:'" in said.text and "write 'ci'" in said.text
    assert said.lines[0]["user"] == "User:ci"
    assert folder.done(*asked, "ci").err == ""


def test_words_and_flags_mean_the_same(folder: Folder) -> None:
    """`user ci client app` and its flags; a user alone is answered, too."""
    asked = ("explain", "quota", "--json")
    both = folder.done(*asked, "user", "ci", "client", "app").lines
    assert both == folder.done(*asked, "--user", "ci", "--client-id", "app").lines
    alone = folder.done(*asked, "--user", "ci").lines
    assert alone == folder.done(*asked, "user", "ci").lines
    assert (alone[0]["user"], alone[0]["client_id"]) == ("ci", None)


def test_programs_get_the_same(folder: Folder) -> None:
    """All levels and all keys as one document, with or without a configuration."""
    asked = ("explain", "quota", "--user", folder.prefix, "--client-id", folder.prefix, "--json")
    (document,) = folder.done(*asked).lines
    assert [level["level"] for level in document["levels"]] == list(range(1, 9))
    assert document["cluster_id"] == folder.broker.cluster_id
    (folder.path / "provider.kf.hcl").unlink()
    properties = (
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.username", "admin"),
        ("sasl.password", "env:ADMIN_PASSWORD"),
    )
    flags = [f"--client-property={key}={value}" for key, value in properties]
    bare = folder.done(*asked, "--bootstrap-server", folder.broker.bootstrap, *flags)
    assert json.loads(bare.out) == document
