"""Writes docs/rules.md, every rule that judges changes: `python docs/rules.py`.

A test compares the file with what this makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafkaform.core.rule import Rule
from kafkaform.provider.registry import Registry
from kafkaform.render.judgement import NEEDS, group_rules, render_acceptance, render_level
from kafkaform.workflow.judgement.conditions import find_rules

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

A row that claims something about a system names the test that made the change on a real one.
"""


def page() -> str:
    """The text of docs/rules.md."""
    groups = list(group_rules(find_rules(Registry()).values()))
    contents = " · ".join(f"[{subject}](#{subject})" for subject, _ in groups)
    parts = [INTRO, contents]
    for subject, rules in groups:
        parts.append(f"## {subject}")
        parts += ["\n\n".join(_describe(rule)) for rule in rules]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


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
