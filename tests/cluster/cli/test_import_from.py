"""`kafkaform import --from` as it is typed, on a broker where everything exists that the files of
another tool describe."""

from __future__ import annotations

import pytest

from ...conftest import Broker
from ...kit.commands.folder import LOG, STATE, Folder
from ...kit.kafka.takeover import CANARY, copy_source, get_tool, list_examples, read_live

OUT = "taken.kf.hcl"
ACCEPT = ("--accept-unproven-access", "--accept-open-access")


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """Some tools make ACLs for all topics."""
    return exclusive_broker


@pytest.mark.parametrize("example", list_examples())
def test_the_next_plan_is_clean(example: str, folder: Folder) -> None:
    """Apply imports what the files describe, sends nothing, and leaves nothing to plan."""
    name = folder.prefix.rstrip(".-_")
    folder.monkeypatch.setenv("LIVE_PASSWORD", "secret-of-the-test")
    folder.write("live.kf.hcl", read_live(example, name))
    folder.done("apply", "--auto-approve", *ACCEPT)
    for made in ("live.kf.hcl", STATE, LOG):
        (folder.path / made).unlink()
    source = copy_source(example, folder.path, name)

    said = folder.done("import", "--from", get_tool(example), str(source), "--out", OUT)
    assert "objects to import" in said.text
    assert CANARY not in said.text + (folder.path / OUT).read_text()
    folder.done("fmt", "--check")
    folder.done("validate")
    said = folder.done("apply", "--auto-approve")
    assert "0 to add, 0 to change, 0 to destroy." in said.text
    assert {r["body"]["action"] for r in folder.records("intent")} <= {"import"}
    assert "No changes." in folder.done("plan", "--detailed-exitcode").text
    # Rights on all topics would change what other tests of this broker see.
    folder.done("destroy", "--confirm", folder.broker.cluster_id, *ACCEPT)


def test_an_object_that_is_not_there_is_never_created(folder: Folder) -> None:
    """A file names a topic that the cluster lacks: the plan is blocked and creates nothing."""
    source = copy_source("strimzi", folder.path, folder.prefix.rstrip(".-_"))
    folder.done("import", "--from", "strimzi", str(source), "--out", OUT)
    assert "the object to import does not exist" in folder.fails(8, "plan")
    folder.fails(8, "apply", "--auto-approve")
