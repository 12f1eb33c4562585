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
- `kafkaform validate` and editors judge by the rules that need the block alone, without a cluster.

| level | |
|---|---|
| block | the change is not made |
| danger | data can be lost, clients can stop, or somebody gains or loses much access |
| caution | something can go wrong that is worth a look |
| note | worth knowing; nothing goes wrong |

A row that claims something about a system names the test that made the change on a real one; the
[matrix of versions](compatibility.md) runs these tests, too. The rows without a test are
[listed with the reason](#rules-without-a-test).
"""
OF_VENDORS = "not tried on the service."
"""How the reason of a row ends that nobody has tried."""
WITHOUT_TEST: Mapping[str, str] = {
    "They are about what kafkaform knows, plans and keeps, which its own tests cover": """
        access-gained-unchecked access-lost-unchecked access-newer-acls access-principal-unknown
        connector-secret-in-plain connector-secrets-uncompared guard-data-loss
        guard-deletions guard-empty-configuration object-disputed object-in-use object-left-alone
        object-mentioned object-missing object-protected object-recreated object-renamed
        object-reserved object-setting-left object-shared-stays object-task-running
        object-unmanaged object-unreadable object-waiting right-missing rule-failed
        schema-more-differences topic-id-unknown topic-number-unknown used-object-missing
        user-login-missing value-undone values-kept values-taken-over
        """,
    "They are about blocks alone: they declare nothing, something twice, or what their folder must "
    "not declare": """
        boundary-denied boundary-name boundary-unlimited object-in-two-folders object-shared-differs
        broker-config-set-twice config-block-empty connector-config-twice quota-empty
        schema-config-empty topic-config-empty topic-configs-declared-twice
        """,
    "They are about what the protocol has no request for, so there is nothing to try": """
        access-order topic-move-unplanned topic-renamed user-password-unknown
        """,
    "They rest on the specification of the format: the tests have no readers of protobuf and of "
    "JSON schemas": "schema-field-renamed schema-format-changed schema-values-limited",
    "The registry of the tests keeps schemas of any size in memory": "schema-too-large",
    "It needs a class of one's own in the brokers, and what that does is its own affair": (
        "quota-callback"
    ),
    "It needs a name whose address changes while the broker runs": "quota-host-name",
}
"""Why there is no test -> the rules."""


def page() -> str:
    """The text of docs/rules.md."""
    groups = list(group_rules(find_rules(Registry()).values()))
    contents = " · ".join(f"[{subject}](#{subject})" for subject, _ in groups)
    parts = [INTRO, contents]
    for subject, rules in groups:
        parts.append(f"## {subject}")
        parts += ["\n\n".join(_describe(rule)) for rule in rules]
    parts.append("## Rules without a test")
    parts += [f"{reason}:\n{', '.join(ids)}." for reason, ids in list_untried().items()]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def list_untried() -> Mapping[str, tuple[str, ...]]:
    """Why there is no test -> the rules, each a link."""
    of_vendors = [id for id, rule in find_rules(Registry()).items() if is_of_vendor(rule)]
    reasons = {
        "They rest on the documents of a vendor, which each of them names, and were not tried on "
        "the service": " ".join(of_vendors),
        **WITHOUT_TEST,
    }
    return {
        reason: tuple(f"[{id}](#{id})" for id in ids.split()) for reason, ids in reasons.items()
    }


def is_of_vendor(rule: Rule) -> bool:
    """Whether the row rests on the documents of a vendor."""
    return not rule.proof and rule.why.endswith(OF_VENDORS)


def _describe(rule: Rule) -> Iterator[str]:
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
    if rule.proof:
        yield f"Proof: `{rule.proof}`"


def _escape(text: str) -> str:
    """The text without what Markdown would take for marks."""
    return text.replace("*", r"\*").replace("<", r"\<").replace("_", r"\_")


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
