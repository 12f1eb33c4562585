"""docs/rules.md and `explain rule` say what the table of rules says."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from kafkaform.core.rule import Rule
from kafkaform.provider.registry import Registry
from kafkaform.workflow.judgement import find_rules

from ...kit.commands.here import Here
from ...test_kip_map import functions

DOCS = Path(__file__).parents[3] / "docs"
RULES = find_rules(Registry())
SHOWN = [
    "guard-deletions",  # can be accepted
    "object-protected",  # blocks, and cannot be accepted
    "topic-min-insync-above-replicas",  # a caution about the block alone, with a proof
    "object-task-running",  # a note
]


def test_the_page_is_what_the_table_says() -> None:
    """docs/rules.md holds exactly what docs/rules.py makes today."""
    text = (DOCS / "rules.md").read_text(encoding="utf-8")
    assert text == runpy.run_path(str(DOCS / "rules.py"))["page"](), "run docs/rules.py"


def test_the_page_has_every_rule() -> None:
    """Each with a heading that links can name."""
    text = (DOCS / "rules.md").read_text(encoding="utf-8")
    assert [line[4:] for line in text.split("\n") if line.startswith("### ")] == list(RULES)


def test_every_rule_has_a_test_or_a_reason() -> None:
    """Each proof exists. Each rule without one is in one group of the page, and no other is."""
    script = runpy.run_path(str(DOCS / "rules.py"))
    proofs = {rule.id: script["find_proof"](rule) for rule in RULES.values()}
    for id, proof in proofs.items():
        file, _, name = proof.removeprefix("tests/").partition("::")
        assert not proof or name in functions(file), id
    assert script["PROOFS"].keys() <= proofs.keys()
    reasons = [id for ids in script["WITHOUT_TEST"].values() for id in ids.split()]
    reasons += [rule.id for rule in RULES.values() if script["is_of_vendor"](rule)]
    assert sorted(reasons) == [id for id, proof in proofs.items() if not proof]


@pytest.mark.parametrize("rule", [RULES[id] for id in SHOWN], ids=SHOWN)
def test_a_rule_is_explained(here: Here, rule: Rule) -> None:
    """What it finds, why, an example, what to do, how to accept it, and what proves it."""
    said = " ".join(here.done("explain", "rule", rule.id).out.split())
    for text in (rule.title, rule.why, rule.example, rule.fix, rule.proof):
        assert " ".join(text.split()) in said
    assert f"--fail-on {rule.id}" in said
    assert (f"--accept {rule.id}," in said) is rule.accept
    assert ("cannot be accepted" in said) is (rule.id == "object-protected")


def test_all_rules_are_listed_by_subject(here: Here) -> None:
    """One line for each, and the same rows as JSON."""
    lines = here.done("explain", "rule").out.split("\n")
    assert "guard:" in lines and "topic:" in lines
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(RULES)
    rows = here.json("explain", "rule", "--json")
    assert [row["id"] for row in rows] == list(RULES)
    assert here.json("explain", "rule", "guard-deletions", "--json")["accept"] is True


def test_an_unknown_rule_names_the_nearest(here: Here) -> None:
    """And where all of them are listed."""
    said = here.fails("explain", "rule", "guard-deletion")
    assert 'Did you mean "guard-deletions"?' in said and "`kafkaform explain rule`" in said


def test_the_table_is_json(here: Here) -> None:
    """Programs read every row with its members."""
    (row,) = [
        item
        for item in json.loads(here.done("explain", "rule", "--json").out)
        if item["id"] == "object-protected"
    ]
    assert (row["level"], row["block"], row["accept"]) == ("block", "protected", False)
    assert row["needs"] == "object" and row["types"] == []
