"""What is blocked while the rest is applied: how a command ends, and what it says (architecture
§4.2)."""

from __future__ import annotations

import pytest

from ...kit.commands.folder import Folder

PROTECTED = "lifecycle { prevent_destroy = true }"
DESTROY = """
removed {{
  from = kafka_topic.{}
  lifecycle {{ destroy = true }}
}}
"""


@pytest.fixture
def taken(folder: Folder) -> Folder:
    """Two topics are declared, and somebody else has made one of them."""
    folder.create("a")
    folder.declare("a", "b")
    return folder


def test_a_declared_object_that_is_not_applied_ends_with_8(taken: Folder) -> None:
    """In a plan with and without --detailed-exitcode, and in an apply, which makes the rest."""
    for flags in ((), ("--detailed-exitcode",), ("--concise",), ("--json",)):
        said = taken.fails(8, "plan", *flags)
        assert "1 to add, 0 to change, 0 to destroy. 1 blocked." in said
        assert "1 object is blocked and left as it is: kafka_topic.a" in said
    said = taken.run("apply", "-auto-approve")
    assert said.code == 8
    assert "Applied: 1 added, 0 changed, 0 destroyed. 1 blocked." in said.out
    assert taken.topics() == {"a": 1, "b": 1}
    again = taken.fails(8, "apply", "-auto-approve")
    assert "Blocked: these stay as they are (1)" in again
    assert "Nothing to apply: every change is blocked." in again
    assert "No changes" not in taken.fails(8, "plan", "--detailed-exitcode")
    taken.done("apply", "-auto-approve", "-adopt=kafka_topic.a")
    taken.done("plan", "--detailed-exitcode")


def test_programs_are_told_what_was_left_out(taken: Folder) -> None:
    """In the last event of an apply, and as an error beside it."""
    said = taken.run("apply", "-auto-approve", "-json")
    assert said.code == 8
    (summary,) = [
        line["changes"]
        for line in said.lines
        if line["type"] == "change_summary" and line["changes"]["operation"] == "apply"
    ]
    assert (summary["add"], summary["kafkaform"]["blocked"]) == (1, 1)
    assert said.lines[-1]["diagnostic"]["summary"].startswith("1 object is blocked")


def test_a_saved_plan_ends_so_too(taken: Folder) -> None:
    """Also when it is applied a second time, with nothing left to send."""
    taken.run("plan", "-out=plan.kfplan")
    assert taken.run("apply", "plan.kfplan").code == 8
    assert set(taken.topics()) == {"a", "b"}
    assert "Already applied by run" in taken.fails(8, "apply", "plan.kfplan")


def test_one_object_is_imported_though_another_is_blocked(taken: Folder) -> None:
    """The command asks for nothing else, not even for what the object depends on."""
    taken.create("b")
    after_a = taken.topic("b", more="depends_on = [kafka_topic.a]")
    taken.write("topics.kf.hcl", taken.topic("a") + after_a)
    said = taken.done("import", "kafka_topic.b", f"{taken.prefix}b")
    assert "does not manage it" in said.text
    assert taken.done("state", "list").out == "kafka_topic.b\n"


def test_a_block_that_is_merely_gone_asks_for_nothing(folder: Folder) -> None:
    """The topic is protected and stays: that is counted, and is no failure."""
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    folder.declare("b")
    for command in (("plan",), ("plan", "--detailed-exitcode"), ("apply", "-auto-approve")):
        assert "Plan: 0 to add, 0 to change, 0 to destroy. 1 blocked." in folder.done(*command).out
    said = folder.fails(8, "apply", "-auto-approve", "-fail-on=blocked")
    assert "There is nothing else to apply." in said
    folder.declare("b", "c")
    said = folder.fails(8, "plan", "-fail-on=blocked")
    assert "Without this --fail-on it can be applied." in said


def test_a_deletion_that_is_asked_for_and_not_made_ends_with_8(folder: Folder) -> None:
    """By a `removed` block, and by `destroy`, which deletes the rest; what to do fits where the
    block stands."""
    folder.write("a.kf.hcl", folder.topic("a", more=PROTECTED))
    folder.declare("b")
    folder.done("apply", "-auto-approve")
    said = folder.run("destroy", "-confirm", folder.broker.cluster_id)
    assert said.code == 8
    assert "Set prevent_destroy = false in its block" in said.text
    assert "1 destroyed. 1 blocked." in said.text
    assert set(folder.topics()) == {"a"}
    folder.write("a.kf.hcl", DESTROY.format("a"))
    folder.declare("c")
    said_too = folder.fails(8, "plan", "--detailed-exitcode")
    assert "Declare it again with prevent_destroy = false" in said_too


def test_a_folder_that_declares_nothing_says_so(folder: Folder) -> None:
    """Nothing was compared, so nothing matches; and what can be done is named."""
    for command in (("plan",), ("apply", "-auto-approve")):
        said = folder.done(*command).text
        assert "No changes. The configuration declares nothing, and the state" in said
        assert "kafkaform import --all" in said
        assert "matches the configuration" not in said
    folder.done("plan", "--comment", "review.md")
    comment = (folder.path / "review.md").read_text()
    assert "The configuration declares nothing" in comment
    assert "matches the configuration" not in comment
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    assert "No changes. 1 managed object matches the configuration." in folder.done("plan").text
