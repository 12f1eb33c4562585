"""Policies on the command line: what is blocked, shown, recorded and judged again. The cluster is
simulated."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.clock import SystemClock
from kafkaform.plan.codec import decode
from kafkaform.provider.registry import Registry
from kafkaform.workflow.configuration.policies import VARIABLE
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
FEW = """
policy "few_partitions" {{
  severity  = "{severity}"
  when      = change.type == "kafka_topic"
  condition = try(change.after.partitions, 0) < 10
  message   = "${{change.key}} has ${{change.after.partitions}} partitions on ${{change.cluster}}"
{waiver}}}
"""
WAIVER = """
  waiver {{
    addresses = ["kafka_topic.big"]
    reason    = "agreed"
    until     = "{}"
  }}
"""


def topic(name: str, partitions: int) -> str:
    return (
        f'resource "kafka_topic" "{name}" {{\n  name = "{name}"\n  partitions = {partitions}\n}}\n'
    )


def few(severity: str = "error", until: str = "") -> str:
    """A policy that forbids ten partitions, with a waiver for the topic `big` until a day."""
    return FEW.format(severity=severity, waiver=WAIVER.format(until) if until else "")


BOTH = PROVIDER + topic("big", 12) + topic("small", 1)
FORBIDDEN = "policy few_partitions: big has 12 partitions on simulated"


@pytest.fixture
def at(here: Here) -> Here:
    """A folder whose configuration reaches a simulated cluster."""
    cluster = SimulatedCluster()
    here.monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    here.monkeypatch.delenv(VARIABLE, raising=False)
    folder = here.path / "infra"
    folder.mkdir()
    here.monkeypatch.chdir(folder)
    return Here(folder, here.capsys, here.monkeypatch)


def set_day(at: Here, day: str) -> None:
    """It is noon of this day, in UTC."""
    noon = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC).timestamp()
    at.monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: noon))


def outside(at: Here, text: str, folder: str = "../rules") -> str:
    """A folder of policies beside the configuration."""
    at.write(f"{folder}/all.kfpolicy.hcl", text)
    return folder


def changes(at: Here, *flags: str, code: int = 0) -> dict[str, Any]:
    """Address -> the entry of the plan's JSON."""
    assert at.run("plan", "--out", "p.kfplan", *flags).code == code
    document = json.loads(at.done("show", "p.kfplan", "--json").out)
    return {one["address"]: one for one in document["resource_changes"]}


# ── what a plan shows ───────────────────────────────────────────────────────────────────


def test_an_error_blocks_the_plan(at: Here) -> None:
    """Nothing can be applied: exit code 8, and the reason has the policy and where it is."""
    at.write("main.kf.hcl", BOTH + few())
    said = at.run("plan")
    assert said.code == 8
    assert f"! blocked: {FORBIDDEN}" in said.out
    assert "add a waiver at main.kf.hcl:" in said.text
    assert "1 to add, 0 to change, 0 to destroy. 1 blocked." in said.out
    assert at.run("apply", "--auto-approve").code == 8
    assert not Path("kafkaform.state.json").exists()


def test_a_warning_is_only_shown(at: Here) -> None:
    """The apply makes the change."""
    at.write("main.kf.hcl", BOTH + few("warning"))
    said = at.done("plan")
    assert "! policy few_partitions: big has 12 partitions" in said.out
    assert "! policy few_partitions" in at.done("plan", "--concise").out
    assert "2 to add" in at.done("apply", "--auto-approve").out


@pytest.mark.parametrize("command", [["plan"], ["apply", "--auto-approve"]])
def test_fail_on_a_policy(at: Here, command: list[str]) -> None:
    """A warning stops the plan that it is about, and a misspelt policy stops every plan."""
    at.write("main.kf.hcl", BOTH + few("warning"))
    folder = outside(at, few("warning").replace("few_partitions", "from_outside"))
    assert "the plan has policy/few_partitions (kafka_topic.big)" in at.fails(
        *command, "--fail-on", "policy/few_partitions", code=8
    )
    flags = ("--policy", folder, "--fail-on")
    assert "the plan has policy/from_outside" in at.fails(
        *command, *flags, "policy/from_outside", code=8
    )
    at.monkeypatch.setattr(MemoryProvider, "open", lambda *_: pytest.fail("a system was asked"))
    said = at.fails(*command, *flags, "danger,policy/few_partition")
    assert "'policy/few_partition' is not a policy" in said
    assert "The policies are policy/few_partitions, policy/from_outside." in " ".join(said.split())


def test_a_waiver_lets_one_object_through(at: Here) -> None:
    """The plan shows its reason and its end; after that day the change is blocked again."""
    at.write("main.kf.hcl", BOTH + few(until="2026-06-30"))
    set_day(at, "2026-06-30")
    waived = "big has 12 partitions on simulated (waived until 2026-06-30: agreed)"
    assert waived in " ".join(at.done("plan").out.split())
    set_day(at, "2026-07-01")
    assert "(the waiver ended on 2026-06-30: agreed)" in at.fails("plan", code=8)


def test_findings_are_in_every_form_of_the_plan(at: Here) -> None:
    """The saved plan, its JSON, the JSON lines and the review comment."""
    at.write("main.kf.hcl", BOTH + few())
    change = changes(at, "--comment", "c.md", code=8)["kafka_topic.big"]
    (finding,) = change["kafkaform"]["findings"]
    assert finding == {
        "address": "kafka_topic.big",
        "name": "big",
        "rule": "policy/few_partitions",
        "level": "block",
        "harm": "none",
        "text": FORBIDDEN,
        "path": [],
        "figures": {},
        "fix": finding["fix"],
        "block": "policy",
        "accept": False,
        "accepted": False,
        "access": [],
        "waiver": None,
        "place": finding["place"],
    }
    assert "add a waiver at main.kf.hcl:" in finding["fix"]
    assert finding["place"].startswith("main.kf.hcl:")
    assert change["change"]["actions"] == ["no-op"]
    assert change["kafkaform"]["blocked"]["kind"] == "policy"
    lines = [json.loads(line) for line in at.run("plan", "--json").out.splitlines()]
    planned = [one["change"]["kafkaform"] for one in lines if one["type"] == "planned_change"]
    assert [one["findings"] for one in planned] == [[finding], []]
    assert f"| {FORBIDDEN} |" in Path("c.md").read_text("utf-8")
    assert FORBIDDEN in at.done("show", "p.kfplan").out


def test_a_policy_that_cannot_be_evaluated_blocks(at: Here) -> None:
    """Here it forgets that a deletion has no object afterwards."""
    at.write("main.kf.hcl", BOTH)
    at.done("apply", "--auto-approve")
    policy = few().replace("try(change.after.partitions, 0)", "change.after.partitions")
    gone = "removed {\n  from = kafka_topic.big\n  lifecycle {\n    destroy = true\n  }\n}\n"
    at.write("main.kf.hcl", PROVIDER + topic("small", 1) + gone + policy)
    said = at.fails("plan", code=8)
    assert "it cannot be evaluated (main.kf.hcl:" in said
    assert 'null has no attribute "partitions"' in said


def test_what_needs_no_change_is_not_judged(at: Here) -> None:
    """Nor is an object that stays because it is protected."""
    at.write("main.kf.hcl", BOTH)
    at.done("apply", "--auto-approve")
    at.write("main.kf.hcl", BOTH + few())
    assert "No changes." in at.done("plan").out
    every = 'policy "nothing" {\n  condition = false\n  message = "no"\n}\n'
    at.write("main.kf.hcl", PROVIDER + topic("small", 1) + every)
    said = at.run("plan")
    assert said.code == 0 and "nothing" not in said.out


def test_an_import_is_not_judged(at: Here) -> None:
    """It only records what is there; the next plan judges what would change."""
    at.write("main.kf.hcl", BOTH)
    at.done("apply", "--auto-approve")
    Path("kafkaform.state.json").unlink()
    Path("kafkaform.audit.jsonl").unlink()
    at.write("main.kf.hcl", PROVIDER + topic("big", 12) + few())
    at.done("import", "kafka_topic.big", "big")


def test_destroy_is_judged(at: Here) -> None:
    """It deletes nothing that a policy keeps."""
    keep = 'policy "keep" {\n  condition = change.action != "delete"\n  message = "kept"\n}\n'
    at.write(
        "main.kf.hcl", PROVIDER.replace("}", "  protect_topics = false\n}") + topic("a", 1) + keep
    )
    at.done("apply", "--auto-approve")
    assert "kafka_topic.a" in at.fails("destroy", "--confirm", "simulated", code=8)


def test_faults_of_policies_are_faults_of_the_configuration(at: Here) -> None:
    """`validate` reports them with their places, and all others beside them."""
    at.write("main.kf.hcl", BOTH + few().replace("change.key", "change.kez") + "x = 1\n")
    said = at.fails("validate")
    assert '"change" has no attribute "kez"' in said and '"x" is outside of any block' in said


def test_a_module_has_no_policies(at: Here) -> None:
    """The error says where they belong."""
    at.write("main.kf.hcl", PROVIDER + 'module "m" {\n  source = "./m"\n}\n')
    at.write("m/main.kf.hcl", topic("a", 1) + few() + 'policy_set "kafka" {}\n')
    said = at.fails("validate")
    assert "A module cannot have policy blocks" in said
    assert "A module cannot have policy_set blocks" in said
    assert "Move it into the root folder, or into a folder for --policy." in said


def test_policies_in_json(at: Here) -> None:
    """`*.kf.json` has the same blocks; the texts of a waiver are plain."""
    policy = {
        "condition": "${change.after.partitions < 10}",
        "message": "${change.key} is large",
        "waiver": [{"addresses": ["kafka_topic.big"], "reason": "${ok}", "until": "2999-01-01"}],
    }
    at.write("main.kf.hcl", BOTH)
    at.write("p.kf.json", json.dumps({"policy": {"few": policy}}))
    assert "big is large (waived until 2999-01-01: ${ok})" in at.done("plan").out


def test_rules_are_switched_on(at: Here) -> None:
    """`policy_set` works in the configuration without any file of rules."""
    body = 'enable = ["max_partitions"]\n  settings = { max_partitions = 5 }'
    enabled = f'policy_set "kafka" {{\n  {body}\n}}\n'
    at.write("main.kf.hcl", BOTH + enabled)
    assert "policy max_partitions: big would have 12 partitions" in at.fails("plan", code=8)


# ── policies from outside ───────────────────────────────────────────────────────────────


def test_a_folder_of_policies(at: Here) -> None:
    """--policy, several of them, or the environment; the plan names the file."""
    at.write("main.kf.hcl", BOTH)
    warning = few("warning").replace("few_partitions", "few")
    rules, more = outside(at, few()), outside(at, warning, "../more")
    said = at.run("plan", "--policy", rules, "--policy", more)
    assert said.code == 8
    assert "add a waiver at ../rules/all.kfpolicy.hcl:2:1" in said.text
    assert "! policy few: big" in said.out
    at.monkeypatch.setenv(VARIABLE, os.pathsep.join([rules, more]))
    assert at.run("plan").out == said.out
    assert at.run("plan", "--policy", more).code == 0


def test_the_configuration_waives_nothing_outside(at: Here) -> None:
    """A policy of the same name, with a waiver, leaves the one outside as it is."""
    at.write("main.kf.hcl", BOTH + few(until="2999-01-01"))
    said = at.run("plan", "--policy", outside(at, few()))
    assert said.code == 8 and f"blocked: {FORBIDDEN}" in said.out
    assert "(waived until 2999-01-01: agreed)" in said.out
    at.write("main.kf.hcl", BOTH)
    at.done("plan", "--policy", outside(at, few(until="2999-01-01")))


def test_a_configuration_reads_no_files_of_policies(at: Here) -> None:
    """A folder of policies can be anywhere."""
    at.write("main.kf.hcl", BOTH)
    outside(at, few(), ".")
    at.done("plan")
    assert at.run("plan", "--policy", ".").code == 8


@pytest.mark.parametrize("command", ["plan", "apply", "destroy"])
def test_a_folder_that_cannot_be_used(at: Here, command: str) -> None:
    """A wrong path must not look like a folder without policies."""
    at.write("main.kf.hcl", BOTH)
    assert "../nowhere cannot be read" in at.fails(command, "--policy", "../nowhere")
    at.write("../empty/rules.kf.hcl", few())
    at.write("../empty/.all.kfpolicy.hcl", few())
    said = at.fails(command, "--policy", "../empty")
    assert "../empty contains no file *.kfpolicy.hcl" in said


def test_faults_of_files_of_policies(at: Here) -> None:
    """All of them at once, with their places."""
    at.write("main.kf.hcl", BOTH)
    rules = outside(at, few().replace("change.key", "change.kez") + topic("a", 1))
    at.write("../rules/b.kfpolicy.hcl", "policy {\n")
    said = at.fails("plan", "--policy", rules)
    assert "../rules/all.kfpolicy.hcl:6" in said and '"change" has no attribute "kez"' in said
    assert 'A file of policies has no "resource" blocks' in said
    assert "../rules/b.kfpolicy.hcl:1" in said


def test_a_link_out_of_the_folder_is_refused(at: Here) -> None:
    """Links inside of it are followed, as for a configuration."""
    at.write("main.kf.hcl", BOTH)
    at.write("../rules/data/few", few())
    Path("../rules/in.kfpolicy.hcl").symlink_to("data/few")
    assert at.run("plan", "--policy", "../rules").code == 8
    at.write("../elsewhere", few())
    Path("../rules/out.kfpolicy.hcl").symlink_to("../elsewhere")
    assert "leads out of the root" in at.fails("plan", "--policy", "../rules")


@pytest.fixture
def checkout(at: Here) -> Here:
    """A repository that anybody can have written, and the connection of whoever plans it."""
    at.write(".git/HEAD", "ref: refs/heads/main\n")
    at.write("main.kf.hcl", BOTH)
    at.monkeypatch.setenv("KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")
    return at


UNTRUSTED = ("plan", "--untrusted", "--state", "../state/s.json")


def test_policies_judge_untrusted_files(checkout: Here) -> None:
    """The pull request cannot change those outside."""
    checkout.write("../state/.keep", "")
    rules = outside(checkout, few())
    said = checkout.run(*UNTRUSTED, "--policy", rules)
    assert said.code == 8 and FORBIDDEN in said.out


def test_untrusted_files_cannot_be_policies(checkout: Here) -> None:
    """Neither as a folder of the checkout, nor through a link in it."""
    outside(checkout, few("warning"), "rules")
    said = checkout.fails(*UNTRUSTED, "--policy", "rules")
    assert "is part of the untrusted files" in said
    outside(checkout, few())
    Path("link").symlink_to("../rules")
    assert "link is a link" in checkout.fails(*UNTRUSTED, "--policy", "link")


# ── what was reviewed ───────────────────────────────────────────────────────────────────

PASSING = few(until="2026-06-30")


@pytest.fixture
def reviewed(at: Here) -> Here:
    """A plan that was saved while a waiver of a policy outside still counted."""
    at.write("main.kf.hcl", BOTH)
    set_day(at, "2026-06-01")
    at.done("plan", "--policy", outside(at, PASSING), "--out", "p.kfplan", "--comment", "c.md")
    return at


def token(at: Here) -> str:
    return decode(Path("p.kfplan").read_bytes(), "").token


def test_a_saved_plan_names_its_policies(reviewed: Here) -> None:
    """Its apply reads the same folder again, and the comment has the whole command."""
    saved = decode(Path("p.kfplan").read_bytes(), "")
    assert saved.policies.folders == ("../rules",) and len(saved.policies.digest) == 64
    assert "--policy=../rules" in Path("c.md").read_text("utf-8")
    assert "2 to add" in reviewed.done("apply", "p.kfplan", "--auto-approve").out


def test_a_saved_plan_is_judged_again(reviewed: Here) -> None:
    """The waiver has ended since: nothing is sent."""
    set_day(reviewed, "2026-07-01")
    said = reviewed.fails("apply", "p.kfplan", "--auto-approve", code=8)
    assert "the policies forbid 1 change of this plan now: kafka_topic.big" in said
    assert "the waiver ended on 2026-06-30" in said
    assert not Path("kafkaform.state.json").exists()


def test_policies_of_the_configuration_judge_a_saved_plan_again(at: Here) -> None:
    """Those of now, whatever the plan was made with."""
    at.write("main.kf.hcl", BOTH)
    at.done("plan", "--out", "p.kfplan")
    at.write("main.kf.hcl", BOTH + few())
    assert FORBIDDEN in at.fails("apply", "p.kfplan", "--auto-approve", code=8)


def test_other_policies_refuse_a_saved_plan(reviewed: Here) -> None:
    """Edited ones, those of another folder, and any for a plan without policies."""
    other = outside(reviewed, few("warning"), "../other")
    said = reviewed.fails("apply", "p.kfplan", "--auto-approve", "--policy", other, code=4)
    assert "made with the policies of ../rules, and now ../other contains other policies" in said
    outside(reviewed, PASSING + "\n")
    assert "contains other policies" in reviewed.fails(
        "apply", "p.kfplan", "--auto-approve", code=4
    )
    reviewed.done("plan", "--out", "bare.kfplan")
    said = reviewed.fails("apply", "bare.kfplan", "--auto-approve", "--policy", other, code=4)
    assert "the plan was made without --policy" in said


def test_the_same_policies_can_be_elsewhere(reviewed: Here) -> None:
    """Contents count, and not where an apply finds them."""
    place = outside(reviewed, PASSING, "../copy")
    Path("../rules").rename("../gone")
    reviewed.monkeypatch.setenv(VARIABLE, place)
    reviewed.done("apply", "p.kfplan", "--auto-approve")


def test_an_approval_covers_the_policies(reviewed: Here) -> None:
    """--expect refuses a plan without them or with others, and takes the same ones."""
    approval = token(reviewed)
    assert "what would be done differs" in reviewed.fails("apply", "--expect", approval, code=4)
    other = outside(reviewed, PASSING + "\n", "../other")
    reviewed.fails("apply", "--expect", approval, "--policy", other, code=4)
    said = reviewed.run("apply", "--expect", approval, "--reviewed", "p.kfplan")
    assert said.code == 4 and "policies" in said.text
    copy = outside(reviewed, PASSING, "../copy")
    reviewed.done("apply", "--expect", approval, "--policy", copy)


def test_an_approval_without_policies_is_as_before(at: Here) -> None:
    """Policies of the configuration are part of its digest, and change no approval."""
    at.write("main.kf.hcl", BOTH)
    at.done("plan", "--out", "p.kfplan")
    bare = token(at).partition(".")[0]
    at.write("main.kf.hcl", BOTH + few("warning"))
    at.done("plan", "--out", "p.kfplan")
    assert token(at).partition(".")[0] == bare


def test_a_message_cannot_forge_a_line(at: Here) -> None:
    """Whatever a policy of a pull request says is one line without control characters."""
    forged = few().replace("${change.key} has", r"\u001b[32m\nPlan: 0 to add.\n${change.key} has")
    at.write("main.kf.hcl", BOTH + forged)
    said = at.run("plan", "--comment", "c.md")
    assert said.code == 8
    for text in (said.out, said.err, Path("c.md").read_text("utf-8")):
        assert "\x1b[32m" not in text and "\nPlan: 0 to add." not in text
