"""Judge live objects as they are, without a configuration and without a plan.

Rules look at changes. A live object is judged as the change that would create it, by the rules that
need no live object, and as an object that needs no change, by all rules. What would block the
creation of such an object is worth a look, because the object exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ...core.change import Action, Change
from ...core.finding import Finding, Level, StandingFinding
from ...core.resource import Facts, Observed, Sweep
from ...core.rule import Needs, Rule, RuleBook, Scene
from ...plan.block_judge import make_creation, run_judge
from ...plan.judge import run_survey
from ...provider.contract import ResourceType

STANDING = (Needs.BLOCK, Needs.FACTS)
"""What a rule needs that can be asked of an object which exists, as if it were new."""


def make_standing_changes(
    items: Iterable[Observed], types: Mapping[str, ResourceType], facts: Facts
) -> list[Change]:
    """Each live object as one that needs no change. Those that the system keeps for itself are left
    out."""
    changes = []
    for item in items:
        kind, identity = types[item.identity.kind], item.identity
        reserved = kind.reserves is not None and kind.reserves(identity.key, item.details)
        if reserved or item.details.get("internal") is True:
            continue
        live = kind.canonical(item.attributes, facts)
        change = Change(identity, str(identity), Action.NOOP, live, live)
        changes.append(replace(change, incarnation=item.incarnation))
    return changes


def judge_standing(
    changes: Sequence[Change],
    types: Mapping[str, ResourceType],
    book: RuleBook,
    sweeps: Mapping[str, Sweep],
    facts: Facts,
) -> list[StandingFinding]:
    """What the rules find about live objects, dangers first, each thing once.

    changes: of `make_standing_changes`; sweeps: those of `Provider.review_needs`.
    """
    rules = {rule.id: rule for rule in book.rules}
    rows: dict[StandingFinding, None] = {}
    for change in changes:
        for finding in _judge_object(change, types[change.identity.kind], book, rules, facts):
            rows[StandingFinding(change.identity, _soften(finding))] = None
    for survey in book.surveys:
        for identity, finding in run_survey(survey, Scene(changes, sweeps, facts)):
            rows[StandingFinding(identity, _soften(finding))] = None
    shown_rows = (row for row in rows if row.finding.level is not Level.NOTE)
    return sorted(
        shown_rows, key=lambda row: (row.finding.order, row.finding.rule, str(row.identity or ""))
    )


def _judge_object(
    change: Change,
    kind: ResourceType,
    book: RuleBook,
    rules: Mapping[str, Rule],
    facts: Facts,
) -> Iterator[Finding]:
    assert change.after is not None  # it exists
    creation = make_creation(change.identity, change.address, change.after, kind)
    for judge in book.judges:
        if change.identity.kind not in judge.types:
            continue
        yield from run_judge(judge, change, facts)
        if judge.needs not in STANDING:
            continue
        for finding in run_judge(judge, creation, facts):
            # A judge of blocks can have rules about changes, too.
            row = rules.get(finding.rule)
            if row is None or row.needs in STANDING:
                yield finding


def _soften(finding: Finding) -> Finding:
    if finding.level is not Level.BLOCK:
        return finding
    return replace(finding, level=Level.CAUTION, block=None, accept=False)
