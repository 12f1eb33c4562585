"""Writes docs/rules.md, every rule that judges changes: `python docs/rules.py`.

A test compares the file with what this makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kafkaform.core.rule import Rule
from kafkaform.provider.registry import Registry
from kafkaform.render.judgement import NEEDS, group_rules, render_acceptance, render_level
from kafkaform.workflow.judgement import find_rules

FILE = Path(__file__).with_name("rules.md")
INTRO = """\
# Rules

Every judgement of a change is a row of one table: this page. What a rule finds is a *finding* of
the change, and every form of a plan shows the same findings: the text, the comment, the page, the
JSON, policies, `--fail-on`, `validate` and editors.

- `kafkaform explain rule object-protected` shows one row, `kafkaform explain rule` lists all.
- `kafkaform plan --fail-on object-protected,data-loss,danger` ends with exit code 8 if the plan has
  a finding of this rule, of this harm, or of this level.
- `kafkaform plan --accept guard-deletions=kafka_topic.scratch*` makes changes that a rule blocks.
  Few rules can be accepted; each row says it.
- [Policies](policies.md) see findings as `change.findings`, `change.rules` and `change.harms`.
- `kafkaform validate` and editors judge by the rules that need blocks alone, without a cluster.

| level | |
|---|---|
| block | the change is not made |
| danger | data can be lost, clients can stop, or somebody gains or loses much access |
| caution | something can go wrong that is worth a look |
| note | worth knowing; nothing goes wrong |

A row that claims something about a system names the test that made the change on a real one; the
[matrix of versions](compatibility.md) runs these tests, too. A row without a test says why, and
[the end of the page](#rules-without-a-test) lists them all.
"""
OF_VENDORS = "not tried on the service."
"""How the reason of a row ends that nobody has tried."""
_CLAIMS = "tests/cluster/claims/"
PROOFS: Mapping[str, str] = {
    "object-in-use": (
        f"{_CLAIMS}test_connectors.py::test_a_sink_without_its_topic_copies_nothing_more"
    ),
    "object-parked": (
        f"{_CLAIMS}test_access.py::test_a_parked_topic_is_closed_and_can_still_be_deleted"
    ),
    "object-recreated": f"{_CLAIMS}test_topics.py::test_a_topic_that_is_made_again_has_another_id",
    "object-reserved": f"{_CLAIMS}test_topics.py::test_brokers_make_topics_of_their_own",
    "right-missing": f"{_CLAIMS}test_connectors.py::test_a_sink_without_a_right_fails",
    "used-object-missing": (
        f"{_CLAIMS}test_connectors.py::test_a_sink_of_a_missing_topic_runs_and_copies_nothing"
    ),
}
"""Rule of the engine -> its test: the engine itself knows no system."""
WITHOUT_TEST: Mapping[str, str] = {
    "it is about what kafkaform knows, plans and keeps, which its own tests cover": """
        access-gained-unchecked access-lost-unchecked access-newer-acls access-principal-unknown
        connector-offsets-gone connector-offsets-impossible connector-offsets-moving
        connector-secret-in-plain connector-secrets-uncompared consequences-unknown
        guard-data-loss guard-deletions
        guard-empty-configuration object-disputed object-left-alone object-mentioned object-missing
        object-not-parkable object-protected object-relied-on object-renamed object-setting-left
        object-shared-stays object-task-running object-unmanaged object-unreadable object-waiting
        rule-failed schema-compatibility-unasked schema-more-differences schema-versions-unread
        value-undone values-kept values-taken-over
        """,
    "it is about blocks alone: something declared twice or in a circle, or what the "
    "folder must not declare; kafkaform's own tests cover it": """
        boundary-denied boundary-name boundary-unlimited object-in-two-folders object-shared-differs
        broker-config-set-twice connector-config-twice schema-reference-circle
        topic-configs-declared-twice
        """,
    "the protocol has no request for it, so there is nothing to try": (
        "access-order topic-move-unplanned topic-renamed"
    ),
    "the registry of the tests keeps schemas of any size in memory": "schema-too-large",
    "only Confluent's registry has it, and the one of the tests is Apicurio's; the simulated "
    "registry answers as Confluent's sources say": """
        schema-contract-kept schema-contract-overridden schema-import-differs schema-import-forced
        schema-mode-refuses schema-settings-for-new-versions schema-settings-need-level
        schema-texts-normalized
        """,
    "it needs a class of one's own in the brokers, and what that does is its own affair": (
        "quota-callback"
    ),
    "it needs a name whose address changes while the broker runs": "quota-host-name",
}
"""Why there is no test -> the rules."""


def page() -> str:
    """The text of docs/rules.md."""
    groups = list(group_rules(find_rules(Registry()).values()))
    untried = list_untried()
    reasons = {id: reason for reason, ids in untried.items() for id in ids}
    contents = " · ".join(f"[{subject}](#{subject})" for subject, _ in groups)
    parts = [INTRO, contents]
    for subject, rules in groups:
        parts.append(f"## {subject}")
        parts += ["\n\n".join(_describe(rule, reasons)) for rule in rules]
    parts.append("## Rules without a test")
    parts += [
        f"{reason[0].upper()}{reason[1:]}:\n{', '.join(map(_link, ids))}."
        for reason, ids in untried.items()
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def list_untried() -> Mapping[str, tuple[str, ...]]:
    """Why there is no test -> the rules."""
    of_vendors = [id for id, rule in find_rules(Registry()).items() if is_of_vendor(rule)]
    reasons = {
        "it rests on the documents of a vendor, which it names, and was not tried on the service": (
            " ".join(of_vendors)
        ),
        **WITHOUT_TEST,
    }
    return {reason: tuple(ids.split()) for reason, ids in reasons.items()}


def find_proof(rule: Rule) -> str:
    """The test that tries what the row says on a real system, if there is one."""
    return rule.proof or PROOFS.get(rule.id, "")


def is_of_vendor(rule: Rule) -> bool:
    """Whether the row rests on the documents of a vendor."""
    return not rule.proof and rule.why.endswith(OF_VENDORS)


def _link(id: str) -> str:
    return f"[{id}](#{id})"


def _describe(rule: Rule, reasons: Mapping[str, str]) -> Iterator[str]:
    yield f"### {rule.id}"
    judged = ", ".join(f"`{name}`" for name in rule.types) or "every type of object"
    yield (
        f"**{_escape(rule.title)}.** {render_level(rule).capitalize()}. Judges {judged}. Needs "
        f"{NEEDS[rule.needs]}."
    )
    yield _escape(rule.why)
    yield f"```text\n{rule.example.strip(chr(10))}\n```"
    if rule.fix:
        yield f"Fix: {_escape(rule.fix)}"
    if rule.accept:
        yield f"Accept: `{render_acceptance(rule)}`."
    # A rule with neither is an error: each row says how its sentence was proven.
    proof = find_proof(rule)
    yield f"Proof: `{proof}`" if proof else f"Without a test: {reasons[rule.id]}."


def _escape(text: str) -> str:
    """The text without what Markdown would take for marks."""
    return text.replace("*", r"\*").replace("<", r"\<").replace("_", r"\_")


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
