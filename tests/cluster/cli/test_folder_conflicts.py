"""Two folders of a repository and one real cluster: an object of both is an error of both, before
anything is sent, and a shared right stays as long as one folder needs it."""

from __future__ import annotations

import pytest

from ...kit.commands.folder import PROVIDER, Folder
from ...kit.kafka.logins import admin_login
from ...kit.kafka.truth import looking

FILE = """repository {{
  name = "acme"
}}

cluster "prod" {{
  provider = "kafka"
{arguments}
}}

folders "teams/*" {{
  state = "states/${{folder.path}}.json"
  uses  = {{ kafka = cluster.prod }}
}}
"""


@pytest.fixture
def top(folder: Folder) -> Folder:
    """The top of a repository with the folders teams/a and teams/b."""
    text = make_provider(folder, folder.broker.bootstrap)
    arguments = "\n".join(text.strip().splitlines()[1:-1])
    folder.write("kafkaform.hcl", FILE.format(arguments=arguments))
    (folder.path / "provider.kf.hcl").unlink()
    (folder.path / "states").mkdir()
    for name in ("a", "b"):
        (folder.path / "teams" / name).mkdir(parents=True)
    return folder


def make_provider(folder: Folder, bootstrap: str) -> str:
    login = admin_login(folder.broker)
    return PROVIDER.format(
        bootstrap=bootstrap, mechanism=login.mechanism, user=login.user, secret="ADMIN_PASSWORD"
    )


def write(top: Folder, name: str, text: str) -> None:
    (top.path / "teams" / name / "main.kf.hcl").write_text(text, encoding="utf-8")


def apply(top: Folder, name: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(top.path / "teams" / name)
        return top.done("apply", "--auto-approve").text


def make_right(top: Folder, *, shared: bool = True) -> str:
    lifecycle = "  lifecycle {\n    shared = true\n  }\n" if shared else ""
    return (
        f'resource "kafka_access" "right" {{\n  principal = "User:{top.prefix}app"\n'
        f'  role = "custom"\n  groups = ["{top.prefix}group"]\n  operations = ["Read"]\n'
        f"{lifecycle}}}\n"
    )


def test_the_cluster_that_answers_decides(top: Folder) -> None:
    """The addresses differ, and the broker has one id: both folders fail, and nothing is made."""
    write(top, "a", top.topic("orders"))
    write(top, "b", top.topic("orders") + top.topic("more"))
    host, _, port = top.broker.bootstrap.partition(":")
    other = {"127.0.0.1": "localhost", "localhost": "127.0.0.1"}[host]
    path = top.path / "teams/b/provider.kf.hcl"
    path.write_text(make_provider(top, f"{other}:{port}"), encoding="utf-8")
    top.done("validate", "--all")
    said = top.fails(1, "plan", "--all")
    name = f"kafka_topic {top.prefix}orders is declared here, and another folder has it, too"
    assert f"{name}: teams/b (teams/b/main.kf.hcl:1) [object-in-two-folders]" in said
    assert f"{name}: teams/a (teams/a/main.kf.hcl:1) [object-in-two-folders]" in said
    assert top.topics() == {}


def test_what_another_state_records(top: Folder) -> None:
    """It fails until that folder forgets it; then the other one takes it over, and it stays."""
    write(top, "a", top.topic("orders") + top.topic("kept"))
    apply(top, "a")
    write(top, "a", top.topic("kept"))
    write(top, "b", top.topic("orders", more="lifecycle { adopt = true }"))
    said = top.fails(1, "plan", "--all")
    assert f"teams/a (recorded in {top.path / 'states/teams/a.json'})" in said
    removed = "removed {\n  from = kafka_topic.orders\n}\n"
    write(top, "a", top.topic("kept") + removed)
    top.done("plan", "--all")
    apply(top, "a")
    apply(top, "b")
    assert top.topics() == {"orders": 1, "kept": 1}
    assert "2 folders have no changes." in top.done("plan", "--all").out


def test_a_shared_right_outlives_a_folder(top: Folder) -> None:
    """One folder creates it, the other takes it over; whoever leaves first leaves it there."""
    for name in ("a", "b"):
        write(top, name, make_right(top) + top.topic(name))
        apply(top, name)
    assert "2 folders have no changes." in top.done("plan", "--all").out
    write(top, "a", top.topic("a"))
    assert "object-shared-stays" in top.done("plan", "--all").text
    apply(top, "a")
    assert count_rights(top) == 1
    assert "2 folders have no changes." in top.done("plan", "--all").out
    write(top, "b", make_right(top, shared=False) + top.topic("b"))
    apply(top, "b")
    write(top, "b", top.topic("b"))
    apply(top, "b")
    assert count_rights(top) == 0


def count_rights(top: Folder) -> int:
    """How many ACLs the brokers have for the principal of the test."""
    with looking(top.broker.bootstrap, top.broker.admin_password) as observer:
        return len(observer.acls(f"{top.prefix}app"))
