"""Policies: what their blocks can say, which names they know, and what they find in a change."""

from __future__ import annotations

from datetime import date

import pytest

from kafkaform.core import finding as core_finding
from kafkaform.core.finding import Block, Level
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.language.policy.blocks import WaiverBlock
from kafkaform.language.policy.compilation import HIDDEN_MESSAGE, find_findings
from kafkaform.language.values.faults import LIMITS, Budget
from kafkaform.language.values.value import Marked, ObjectVal

from .policies import TODAY, attempt, compiled, faults_of, find

FEW = """
policy "few" {
  when      = change.type == "kafka_topic"
  condition = change.after.partitions < 10
  message   = "${change.key} has ${change.after.partitions} partitions"
}
"""


def waived(until: str, addresses: str = '"kafka_topic.*"') -> str:
    """A policy that every change breaks, with a waiver."""
    return f"""
policy "never" {{
  condition = false
  message   = "no"

  waiver {{
    addresses = [{addresses}]
    reason    = "agreed"
    until     = "{until}"
  }}
}}
"""


# ── judging ─────────────────────────────────────────────────────────────────────────────


def test_a_change_breaks_a_policy_whose_condition_does_not_hold() -> None:
    """The finding has the message, the severity, and the place of the policy."""
    (finding,) = find(FEW, type="kafka_topic", after={"partitions": 12})
    assert finding.text == "policy few: a has 12 partitions"
    assert (finding.rule, finding.level, finding.block) == ("policy/few", Level.BLOCK, Block.POLICY)
    assert str(finding.range) == "p.kfpolicy.hcl:2:1"


@pytest.mark.parametrize(
    ("type_", "after"), [("kafka_topic", {"partitions": 9}), ("kafka_acl", {"host": "*"})]
)
def test_a_change_that_is_right_or_not_meant_breaks_nothing(type_: str, after: object) -> None:
    """`when` chooses the changes: the attributes of all others need not exist."""
    assert find(FEW, type=type_, after=after) == []


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("change.after.partitions < 3", 'There is no attribute "partitions". It has host.'),
        ("change.before.partitions < 3", 'null has no attribute "partitions".'),
        ('"maybe"', "A condition must be true or false."),
        ("null", "A condition cannot be null."),
    ],
)
def test_a_policy_that_cannot_be_evaluated_counts_as_broken(condition: str, why: str) -> None:
    """A rule that nobody could check must not pass; the message says where it failed and why."""
    text = policy(condition)
    (finding,) = find(text, after={"host": "*"})
    assert finding.text.startswith("policy p: it cannot be evaluated (p.kfpolicy.hcl:2:")
    assert why in finding.text and finding.stops


@pytest.mark.parametrize(
    "wrapped", ["try(change.after.partitions, 0) < 3", "true || change.after.x"]
)
def test_a_policy_can_allow_for_missing_attributes(wrapped: str) -> None:
    """With `try`, or with an operator whose other side decides."""
    assert find(policy(wrapped), after={"host": "*"}) == []


def test_a_faulty_message_counts_as_broken() -> None:
    """It does not hide the breach."""
    (finding,) = find('policy "p" {\n  condition = false\n  message = change.before.x\n}\n')
    assert "cannot be evaluated" in finding.text and finding.stops


def test_a_warning_blocks_nothing() -> None:
    """It is only shown."""
    (finding,) = find(
        FEW.replace("when ", 'severity = "warning"\n  when '),
        type="kafka_topic",
        after={"partitions": 12},
    )
    assert finding.level is Level.CAUTION and finding.block is None


def test_no_message_shows_a_sensitive_value() -> None:
    """The condition can use it; a message that contains it is hidden."""
    (policy,) = compiled(
        'policy "p" {\n  condition = false\n  message = "it is ${change.after}"\n}\n'
    )
    change = ObjectVal({"after": Marked("hunter2", frozenset(("sensitive",)))})
    (finding,) = find_findings([policy], change, "kafka_topic.a", TODAY, Budget())
    assert finding.text == f"policy p: {HIDDEN_MESSAGE}"


def test_a_long_message_is_cut() -> None:
    """A plan has one for each change, so they cannot fill the memory."""
    many = 'policy "p" {\n  condition = false\n  message = join("", range(1000))\n}\n'
    (finding,) = find(many)
    assert finding.text.endswith("…") and len(finding.text) == len("policy p: ") + 1001


def test_a_secret_can_be_looked_for_and_not_read() -> None:
    """A reference is not null, and no text can be made of it."""
    after = FrozenMap(password=SecretRef("env", "P"))
    text = 'policy "p" {{\n  condition = {}\n  message = "m"\n}}\n'
    assert find(text.format("change.after.password != null"), after=after) == []
    (finding,) = find(text.format('startswith(change.after.password, "x")'), after=after)
    assert "cannot be evaluated" in finding.text


@pytest.mark.slow("evaluates up to the limits")
def test_policies_share_their_steps() -> None:
    """Those that take too many count as broken, and so do all after them."""
    loop = (
        "length([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : a]]]) == 0"
    )
    text = f'policy "slow" {{\n  condition = {loop}\n  message = "m"\n}}\n'
    slow, after = find(text + 'policy "b" {\n  condition = true\n  message = "m"\n}\n')
    assert "takes too many steps" in slow.text
    assert (after.rule, after.level) == ("policy/b", Level.BLOCK)
    assert f"{LIMITS.steps:,}" in slow.text


# ── waivers ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("today", "counts"),
    [(date(2026, 6, 29), True), (date(2026, 6, 30), True), (date(2026, 7, 1), False)],
)
def test_a_waiver_counts_up_to_its_last_day(today: date, counts: bool) -> None:
    """After it, the finding blocks again and says that the waiver ended."""
    (finding,) = find(waived("2026-06-30"), today)
    assert finding.waiver is not None
    assert (finding.waiver.holds, finding.stops) == (counts, not counts)
    text = "waived until 2026-06-30: agreed" if counts else "the waiver ended on 2026-06-30: agreed"
    assert finding.waiver.text == text and finding.text.endswith(f"({text})")


@pytest.mark.parametrize(
    ("glob", "address", "covered"),
    [
        ("kafka_topic.a", "kafka_topic.a", True),
        ("kafka_topic.a", 'kafka_topic.a["eu"]', True),
        ('kafka_topic.a["eu"]', 'kafka_topic.a["eu"]', True),
        ('kafka_topic.a["eu"]', 'kafka_topic.a["us"]', False),
        ("kafka_topic.a*", "kafka_topic.abc", True),
        ("module.x", "module.x.kafka_topic.a", True),
        ("kafka_topic.b", "kafka_topic.a", False),
    ],
)
def test_addresses_of_a_waiver_are_globs(glob: str, address: str, covered: bool) -> None:
    """They mean what they mean for --target, instance keys included."""
    waiver = WaiverBlock((glob,), "r", TODAY)
    assert waiver.covers(address) is covered


def test_of_several_waivers_the_longest_counts() -> None:
    """An ended one does not hide one that still counts."""
    more = 'waiver {\n addresses = ["*"]\n reason = "longer"\n until = "2027-01-01"\n }\n'
    (finding,) = find(waived("2020-01-01").replace("  waiver {", more + "  waiver {"))
    assert finding.waiver and finding.waiver.holds and finding.waiver.reason == "longer"


# ── blocks ──────────────────────────────────────────────────────────────────────────────


def policy(condition: str = "true", more: str = "") -> str:
    return f'policy "p" {{\n  condition = {condition}\n  message = "m"\n{more}}}\n'


def waiver(addresses: str = '["a"]', reason: str = '"r"', until: str = '"2027-01-01"') -> str:
    return f"waiver {{\n addresses = {addresses}\n reason = {reason}\n until = {until}\n }}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('policy "p" { condition = true }', 'policy "p" needs "message"'),
        ('policy {\n condition = true\n message = "m"\n}', "A policy block needs the name"),
        ("severity = 1", '"severity" is outside of any block'),
        ('resource "kafka_topic" "a" {}', 'A file of policies has no "resource" blocks'),
        (policy(more="severity = 1\n"), 'A severity is "error" or "warning", written as a plain'),
        (policy(more='severity = "warnings"\n'), 'Did you mean "warning"?'),
        (policy('change.adress == ""'), '"change" has no attribute "adress"'),
        (policy('change.adress == ""'), 'Did you mean "address"?'),
        (policy("var.x"), 'Nothing is named "var" here A policy can use change.… and setting.…'),
        (policy('file("x") == ""'), "A policy cannot call file Policies read no files"),
        (policy('templatefile("x", {}) == ""'), "A policy cannot call templatefile"),
        (policy("containz([], 1)"), "There is no function containz"),
        (
            policy("setting.most > 1", "settings = { least = 1 }\n"),
            'attribute "most" It has least.',
        ),
        (policy(more="settings = 1\n"), "settings must be an object"),
        (policy(more="settings = { a = change.key }\n"), 'Nothing is named "change" here'),
        (policy(more="settings = { a = 1 / 0 }\n"), "cannot be divided by zero"),
        (policy(more=waiver(addresses="[]")), "A waiver lists the addresses that it covers"),
        (policy(more=waiver(reason='" "')), "A waiver gives its reason as a plain string"),
        (policy(more=waiver(until='"soon"')), "A waiver ends on a date"),
        (policy(more=waiver(until='"20270101"')), 'Write until = "2027-01-31".'),
        (policy(more='waiver {\n addresses = ["a"]\n reason = "r"\n }\n'), 'waiver needs "until"'),
        (policy() * 2, 'The policy "p" is declared twice The first one is at p.kfpolicy.hcl:1:1'),
    ],
)
def test_faults_of_blocks(text: str, said: str) -> None:
    """Each is found without any change to judge, and says what to write."""
    faults = faults_of(text)
    assert any(said in fault for fault in faults), faults


def test_the_name_of_a_system_is_a_name_of_its_provider() -> None:
    """`change.cluster` exists only if a provider calls its systems clusters."""
    text = policy('change.cluster == "c1"')
    assert attempt(text)[1] and not attempt(text, ("cluster",))[1]


# ── sets of rules ───────────────────────────────────────────────────────────────────────


def names(text: str) -> list[str]:
    return [policy.name for policy in compiled(text)]


def test_a_set_switches_on_all_rules_or_some() -> None:
    """Rules come from the provider that the label names."""
    assert names('policy_set "kafka" {}\n') == ["few_partitions", "named"]
    assert names('policy_set "kafka" {\n enable = ["named"]\n}\n') == ["named"]


def test_a_set_gives_rules_its_settings_severity_and_waivers() -> None:
    """Findings name the block that switched the rule on, because there it can be changed."""
    text = """
policy_set "kafka" {
  enable   = ["few_partitions"]
  severity = "warning"
  settings = { most = "10" }

  waiver {
    addresses = ["kafka_topic.a"]
    reason    = "r"
    until     = "2027-01-01"
  }
}
"""
    assert find(text, after={"partitions": 10}) == []
    (finding,) = find(text, after={"partitions": 11})
    assert (finding.rule, finding.level) == ("policy/few_partitions", Level.NOTE)
    assert finding.text.startswith("policy few_partitions: a has more than 10 partitions (waived")
    assert finding.waiver == core_finding.Waiver("r", date(2027, 1, 1), True)
    assert str(finding.range) == "p.kfpolicy.hcl:2:1"
    (usual,) = find(
        'policy_set "kafka" {\n enable = ["few_partitions"]\n}\n', after={"partitions": 9}
    )
    assert usual.text == "policy few_partitions: a has more than 3 partitions" and usual.stops


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('enable = ["few_partition"]', 'There is no rule "few_partition"'),
        ('enable = ["few_partition"]', 'Did you mean "few_partitions"?'),
        ("enable = []", '"enable" is a list of names of rules'),
        ("settings = { mosst = 1 }", 'There is no setting "mosst"'),
        ('settings = { most = "many" }', 'The setting "most" has another type'),
        ('enable = ["named"]\n settings = { most = 1 }', 'There is no setting "most"'),
        ('severity = "high"', "A severity is"),
    ],
)
def test_faults_of_sets(body: str, said: str) -> None:
    """A misspelt rule or setting is an error, not a rule less."""
    faults = faults_of(f'policy_set "kafka" {{\n {body}\n}}\n')
    assert any(said in fault for fault in faults), faults


def test_rules_of_an_unknown_provider() -> None:
    """The error names those that have rules."""
    (fault,) = faults_of('policy_set "kafak" {}\n')
    assert 'There are no rules of a provider "kafak" Rules come from kafka.' in fault
    assert 'Did you mean "kafka"?' in fault


def test_a_rule_is_switched_on_once() -> None:
    """Two sets can have different severities, but not for one rule."""
    both = 'policy_set "kafka" {\n enable = ["named"]\n}\n' * 2
    assert any('The policy "named" is declared twice' in fault for fault in faults_of(both))
