"""Every command as a user types it, on a real broker."""

from __future__ import annotations

import json
import re

from kafkaform.render.text import SENSITIVE

from ...kit.commands.folder import LOG, STATE, Folder

# ── plan and apply ──────────────────────────────────────────────────────────────────────


def test_the_first_plan_is_applied_from_its_file(folder: Folder) -> None:
    """Where no state was ever saved, plan, show and apply mean the same plan, and its second
    apply changes nothing."""
    folder.declare("a", partitions=2)
    saved = folder.done("plan", "-out=first.kfplan")
    assert "Plan: 1 to add, 0 to change, 0 to destroy.\n" in saved.out
    shown, _, command = saved.out.partition("\nNext: ")
    assert command == "kafkaform apply first.kfplan\n"
    assert folder.done("show", "first.kfplan").out == shown
    assert not (folder.path / STATE).exists()

    applied = folder.done("apply", "first.kfplan")
    assert "applied  + kafka_topic.a" in applied.out
    assert "Apply complete: 1 added, 0 changed, 0 destroyed.\n" in applied.out
    assert folder.topics() == {"a": 2}

    with folder.untouched():
        again = folder.done("apply", "first.kfplan")
    assert "Already applied by run" in again.text


def test_the_first_plan_is_applied_by_its_approval(folder: Folder) -> None:
    """A review's token is enough, also before there is a state, and also the second time."""
    folder.declare("a")
    token = folder.approval()
    assert "1 added" in folder.done("apply", "--expect", token).out
    with folder.untouched():
        assert "Already applied by run" in folder.done("apply", "--expect", token).text


def test_apply_plans_asks_nobody_and_verifies(folder: Folder) -> None:
    """--auto-approve does all of it in one command; the next plan is empty."""
    folder.declare("a", "b", more='config = { "retention.ms" = "1000000" }')
    said = folder.done("apply", "-auto-approve")
    assert "Apply complete: 2 added, 0 changed, 0 destroyed." in said.out
    assert "Dry run: 2 passed" in said.err
    assert "Verifying 2 objects on 1 broker: 2 objects, done" in said.err
    assert folder.config("a")["retention.ms"] == "1000000"
    assert "No changes. 2 managed objects match the configuration." in (
        folder.done("plan", "-detailed-exitcode").out
    )


def test_without_anybody_to_ask_nothing_is_applied(folder: Folder) -> None:
    """A pipeline that forgot the flag is told which one."""
    folder.declare("a")
    said = folder.fails(1, "apply")
    assert "No terminal to ask for approval, so nothing was applied." in said
    assert "--auto-approve" in said
    said = folder.fails(1, "apply", "-json")
    assert "--json asks no questions" in said


def test_exit_codes_of_plan(folder: Folder) -> None:
    """2 for changes and 0 for none, but only if asked for."""
    folder.declare("a")
    assert folder.run("plan").code == 0
    assert folder.run("plan", "-detailed-exitcode").code == 2
    folder.done("apply", "-auto-approve")
    assert folder.run("plan", "-detailed-exitcode").code == 0


def test_adopt(folder: Folder) -> None:
    """A live topic is left alone until --adopt names it; then only the books change."""
    folder.create("a", 2)
    folder.declare("a", partitions=2)
    said = folder.fails(8, "plan")
    assert "it already exists, but kafkaform does not manage it" in said
    assert "--adopt='kafka_topic.a'" in said
    assert "the plan has blocked changes" in folder.fails(8, "plan", "-fail-on=blocked")
    said = folder.done("apply", "-auto-approve", "-adopt=kafka_topic.*")
    assert "1 adopted" in said.out
    assert "Dry run" not in said.err
    assert folder.done("state", "list").out == "kafka_topic.a\n"


def test_import(folder: Folder) -> None:
    """A live object is recorded without a change to it; differences wait for the next plan."""
    folder.create("a", 2)
    folder.declare("a", partitions=3)
    said = folder.done("import", "kafka_topic.a", f"{folder.prefix}a")
    assert "1 imported" in said.out
    assert folder.topics() == {"a": 2}
    assert "partitions = 2 → 3" in folder.done("plan").out


def test_import_of_nothing(folder: Folder) -> None:
    """An id that names no object, or an address that is not declared, is refused."""
    folder.declare("a")
    assert f"{folder.prefix}x" in folder.fails(1, "import", "kafka_topic.a", f"{folder.prefix}x")
    assert "kafka_topic.b" in folder.fails(1, "import", "kafka_topic.b", f"{folder.prefix}b")


def test_target_and_exclude(folder: Folder) -> None:
    """A part of the configuration can be planned and applied, and the plan says that it is one."""
    folder.declare("a", "b", "c")
    said = folder.done("plan", "-target=kafka_topic.a")
    assert "Partial plan (--target=kafka_topic.a)" in said.out
    assert "Plan: 1 to add" in said.out
    folder.done("apply", "-auto-approve", "-target", "kafka_topic.a")
    assert set(folder.topics()) == {"a"}
    folder.done("apply", "-auto-approve", "-exclude=kafka_topic.c")
    assert set(folder.topics()) == {"a", "b"}
    assert "No changes. 2 managed objects in this partial plan match" in (
        folder.done("plan", "-exclude=kafka_topic.c").out
    )


def test_drift_is_shown_and_can_stop_a_pipeline(folder: Folder) -> None:
    """What somebody else changed is told apart from what the configuration wants."""
    folder.declare("a", more='config = { "retention.ms" = "1000000" }')
    folder.done("apply", "-auto-approve")
    folder.alter("a", "retention.ms", "5000")
    said = folder.run("plan", "-fail-on=drift")
    assert said.code == 8
    assert "Changed outside kafkaform since the last run (1)" in said.out
    assert "5 s → 1000 s (5000 → 1000000)" in said.out
    assert "drift" in said.err
    folder.done("apply", "-auto-approve")
    assert folder.config("a")["retention.ms"] == "1000000"


def test_a_removed_topic_is_protected_until_a_reviewed_block_deletes_it(folder: Folder) -> None:
    """The advice of the plan is what has to be written, and --fail-on=deletes notices it."""
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    folder.declare("b")
    said = folder.done("apply", "-auto-approve")
    assert "removed from the configuration, but delete protection is on" in said.out
    advice = "from = kafka_topic.a and lifecycle { destroy = true }"
    assert advice in " ".join(said.out.split())
    assert set(folder.topics()) == {"a", "b"}
    folder.write(
        "removed.kf.hcl",
        "removed {\n  from = kafka_topic.a\n  lifecycle { destroy = true }\n}\n",
    )
    assert "deletions" in folder.fails(8, "plan", "-fail-on=deletes")
    said = folder.done("apply", "-auto-approve")
    assert "0 added, 0 changed, 1 destroyed" in said.out
    (impact,) = [line for line in said.out.splitlines() if "Deletes no records" in line]
    assert impact.count("records") == impact.count("(0 B)") == impact.count("groups") == 1
    assert set(folder.topics()) == {"b"}


def test_destroy(folder: Folder) -> None:
    """Only the right cluster id destroys; afterwards neither topics nor rows are left."""
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    assert "This plan destroys everything" in folder.done("plan", "-destroy").out
    said = folder.fails(1, "destroy", "--confirm", "some-other-cluster")
    assert folder.broker.cluster_id in said
    assert "--confirm CLUSTER" in folder.fails(1, "destroy")
    said = folder.done("destroy", "--confirm", folder.broker.cluster_id).text
    assert "2 destroyed" in said
    assert folder.topics() == {}
    assert folder.done("state", "list").out == ""
    assert "The state is empty" in folder.done("show").out


def test_destroy_by_approval(folder: Folder) -> None:
    """A reviewed plan to destroy is applied by its token, which the comment spells out."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    folder.done("plan", "-destroy", "-comment=comment.md")
    comment = (folder.path / "comment.md").read_text()
    (command,) = re.findall(r"^kafkaform (destroy --expect \S+)$", comment, re.MULTILINE)
    folder.done(*command.split())
    assert folder.topics() == {}


# ── for programs ────────────────────────────────────────────────────────────────────────


def test_plan_json_lines(folder: Folder) -> None:
    """Each line is an object with a type; errors are lines too."""
    folder.declare("a")
    lines = folder.done("plan", "-json").lines
    assert lines[0]["type"] == "version"
    (change,) = [line for line in lines if line["type"] == "planned_change"]
    assert change["change"]["action"] == "create"
    assert change["change"]["resource"]["addr"] == "kafka_topic.a"
    (summary,) = [line for line in lines if line["type"] == "change_summary"]
    assert summary["changes"]["add"] == 1
    assert summary["changes"]["kafkaform"]["token"] == folder.approval()

    folder.declare("a", more="nonsense = 1")
    said = folder.run("plan", "-json")
    assert said.code == 1
    assert said.err == ""
    (fault,) = [line["diagnostic"] for line in said.lines if line["type"] == "diagnostic"]
    assert "nonsense" in fault["summary"]
    assert fault["range"]["filename"] == "topics.kf.hcl"


def test_apply_json_lines(folder: Folder) -> None:
    """A program sees each result and the outputs."""
    folder.declare("a")
    folder.write("outputs.kf.hcl", 'output "name" {\n  value = kafka_topic.a.name\n}\n')
    lines = folder.done("apply", "-auto-approve", "-json").lines
    kinds = [line["type"] for line in lines]
    assert "apply_complete" in kinds
    outputs = lines[-1]
    assert outputs["type"] == "outputs"
    assert outputs["outputs"]["name"]["value"] == f"{folder.prefix}a"


def test_show_json(folder: Folder) -> None:
    """A saved plan in Terraform's shape, and the state."""
    folder.declare("a", more='owner = "team-a"\n  labels = { tier = "gold" }')
    folder.done("plan", "-out=x.kfplan")
    plan = json.loads(folder.done("show", "-json", "x.kfplan").out)
    (change,) = plan["resource_changes"]
    assert change["address"] == "kafka_topic.a"
    assert change["change"]["actions"] == ["create"]
    assert change["change"]["after"]["name"] == f"{folder.prefix}a"
    assert plan["kafkaform"]["token"] == folder.approval()

    folder.done("apply", "x.kfplan")
    state = json.loads(folder.done("show", "-json").out)
    (row,) = state["resources"]
    assert row["addresses"] == ["kafka_topic.a"]
    assert row["labels"] == {"tier": "gold"}
    assert 'labels:\n    tier = "gold"' in folder.done("show").out


def test_the_review_comment_applies_the_plan_that_it_shows(folder: Folder) -> None:
    """Its command carries the planning flags, without which another plan would be made."""
    folder.declare("a", "b")
    folder.done("plan", "-target=kafka_topic.b", "-out=x.kfplan", "-comment=comment.md")
    comment = (folder.path / "comment.md").read_text()
    assert folder.done("show", "x.kfplan", "-markdown").out == comment
    assert "### kafkaform plan: 1 to add" in comment
    (command,) = re.findall(r"^kafkaform (apply --expect .*)$", comment, re.MULTILINE)
    folder.done(*command.split())
    assert set(folder.topics()) == {"b"}


def test_validate_json(folder: Folder) -> None:
    """Terraform's shape, valid or not."""
    folder.declare("a")
    answer = json.loads(folder.done("validate", "-json").out)
    assert answer == {
        "format_version": "1.0",
        "valid": True,
        "error_count": 0,
        "warning_count": 0,
        "diagnostics": [],
    }
    folder.declare("a", more="nonsense = 1")
    said = folder.run("validate", "-json")
    assert said.code == 1
    assert json.loads(said.out)["error_count"] == 1


def test_version(folder: Folder) -> None:
    """As a command, as a flag, and for programs."""
    answer = json.loads(folder.done("version", "-json").out)
    assert set(answer["provider_selections"]) == {"kafka", "kafka_connect", "schema_registry"}
    text = f"kafkaform {answer['kafkaform_version']}\n"
    assert folder.done("version").out.startswith(text)
    assert folder.done("-version").out.startswith(text)


# ── outputs, state, log ─────────────────────────────────────────────────────────────────


def test_outputs(folder: Folder) -> None:
    """What the broker sets is known after the apply; what is sensitive is never told."""
    folder.declare("a")
    folder.write(
        "outputs.kf.hcl",
        'output "id" {\n  value = kafka_topic.a.topic_id\n}\n'
        'output "many" {\n  value = ["x", "y"]\n}\n'
        'output "hidden" {\n  value     = "classified"\n  sensitive = true\n}\n',
    )
    assert "id = (known after apply)" in folder.done("plan").out
    folder.done("apply", "-auto-approve")
    (row,) = json.loads(folder.done("show", "-json").out)["resources"]
    assert folder.done("output", "-raw", "id").out == row["id"]
    assert folder.done("output").out == (
        f'hidden = {SENSITIVE}\nid = "{row["id"]}"\nmany = ["x", "y"]\n'
    )
    assert json.loads(folder.done("output", "-json", "many").out) == ["x", "y"]
    assert json.loads(folder.done("output", "-json").out)["many"]["value"] == ["x", "y"]
    assert "Use --json" in folder.fails(1, "output", "-raw", "many")
    assert "sensitive" in folder.fails(1, "output", "hidden")
    for file in (STATE, LOG):
        assert "classified" not in (folder.path / file).read_text()


def test_state_commands(folder: Folder) -> None:
    """A row can be looked at, renamed with its block, and forgotten; the topic stays."""
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    assert folder.done("state", "list").out == "kafka_topic.a\nkafka_topic.b\n"
    assert folder.done("state", "list", "*.b").out == "kafka_topic.b\n"
    assert f'name = "{folder.prefix}a"' in folder.done("state", "show", "kafka_topic.a").out
    assert 'Did you mean "kafka_topic.a"?' in folder.fails(1, "state", "show", "kafka_topic.aa")
    row = json.loads(folder.done("state", "show", "-json", "kafka_topic.a").out)
    assert row["identity"] == f"{folder.prefix}a"

    with folder.untouched():
        folder.done("state", "mv", "kafka_topic.a", "kafka_topic.c")
        (folder.path / "topics.kf.hcl").write_text(
            folder.topic("b") + folder.topic("a").replace('"kafka_topic" "a"', '"kafka_topic" "c"')
        )
        assert "No changes" in folder.done("plan").out
        folder.done("state", "rm", "kafka_topic.c")
    assert folder.done("state", "list").out == "kafka_topic.b\n"
    assert "does not manage it" in folder.fails(8, "plan")
    assert "The audit log is sound" in folder.done("audit", "verify").out


def test_audit_commands(folder: Folder) -> None:
    """The log tells the run, proves itself, and notices a head that it does not have."""
    assert "No changes" in folder.done("audit", "show").text
    assert "No records" in folder.done("audit", "show", "--records").text
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    (change,) = folder.done("audit", "show").out.splitlines()
    assert "applied  create  kafka_topic.a" in change
    shown = folder.done("audit", "show", "--records").out
    assert "run_begin   apply by" in shown
    assert "outcome     kafka_topic.a create applied" in shown
    assert "approval    given by auto_approve" in shown
    assert "verify      1 object" in shown
    assert "run_end     complete" in shown
    assert len(folder.done("audit", "show", "--records", "--last", "2").out.splitlines()) == 2
    (last,) = folder.done("audit", "show", "--records", "-json", "-last=1").lines
    assert last["kind"] == "run_end"
    run = last["run"]
    assert folder.done("audit", "show", "--records", "--run", run).out == shown

    head = folder.done("audit", "head").out.strip()
    assert head.startswith(f"{last['seq']}:")
    assert f"head {head}." in folder.done("audit", "verify", "--anchor", head).out
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    folder.done("audit", "verify", "--anchor", head)
    other = head[:-1] + ("0" if head[-1] != "0" else "1")
    assert LOG in folder.fails(9, "audit", "verify", "--anchor", other)


def test_lock_show(folder: Folder) -> None:
    """Nobody holds the lock between runs."""
    assert folder.done("lock", "show").out == "The state is not locked.\n"


def test_a_state_elsewhere(folder: Folder) -> None:
    """--state moves the log along, so that two states never share one."""
    folder.declare("a")
    folder.done("apply", "-auto-approve", "--state", "other.json")
    assert not (folder.path / STATE).exists()
    assert (folder.path / "other.audit.jsonl").exists()
    assert folder.done("state", "list", "-state=other.json").out == "kafka_topic.a\n"
    folder.done("audit", "verify", "-state=other.json")
