"""Every member of a saved plan, edited and sealed with a checksum that fits: what decides what is
sent, recorded or owned is refused, and everything else changes nothing.

docs/formats/plan.md says of each member what becomes of it; a new one has to be classed there.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import (
    Change,
    Impact,
    Ownership,
    PathChange,
    Request,
    SideEffect,
    Step,
)
from kafkaform.core.diagnostics import Diagnostic, Range, Severity
from kafkaform.core.errors import KafkaformError
from kafkaform.core.finding import AccessRow, Block, Breadth, Finding, Harm, Level, Waiver
from kafkaform.core.resource import Desired, Facts, Identity, Lifecycle, Output, Pending
from kafkaform.core.value import FrozenMap
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.model import (
    Options,
    OutputChange,
    Plan,
    PlanInstance,
    PolicyFolders,
    Removal,
    Unmanaged,
    seal_plan,
)
from kafkaform.workflow.configuration.policies import Policies

from ...kit.simulated.copies import Mould
from ...kit.simulated.engine import House, apply, desired, house, plan, removed, topic
from ...unit.apply.test_throttle import RATE
from ...unit.language.policies import compiled

DOC = Path(__file__).parents[3] / "docs/formats/plan.md"
NOUNS: Mapping[str, type[Any]] = {
    "plan": Plan,
    "instance": PlanInstance,
    "facts": Facts,
    "options": Options,
    "removal": Removal,
    "identity": Identity,
    "change": Change,
    "path": PathChange,
    "row": Ownership,
    "step": Step,
    "request": Request,
    "side effect": SideEffect,
    "impact": Impact,
    "output change": OutputChange,
    "output": Output,
    "unmanaged": Unmanaged,
    "diagnostic": Diagnostic,
    "range": Range,
    "pending": Pending,
    "finding": Finding,
    "access": AccessRow,
    "waiver": Waiver,
    "policies": PolicyFolders,
}
BESIDE = (("step", "alters"), ("side effect", "identity"), ("side effect", "path"))
"""No step of a topic changes another object: unit/connect/test_offsets.py edits one that does."""
NAMES = {noun: name for name, noun in NOUNS.items()}
CLASSES = ("approved", "recomputed", "shown")


def classed() -> dict[tuple[str, str], str]:
    """(part, member) -> its class, as the table says."""
    table = DOC.read_text().split("| part | approved |")[1].split("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    found: dict[tuple[str, str], str] = {}
    for part, *cells in rows:
        for name, cell in zip(CLASSES, cells, strict=True):
            for member in re.findall(r"`(\w+)`", cell):
                assert (part.strip(), member) not in found, f"{part} {member} is classed twice"
                found[part.strip(), member] = name
    return found


def members(noun: type[Any]) -> list[str]:
    return list(noun.__struct_fields__)


def reachable(noun: type[Any], seen: set[type[Any]]) -> set[type[Any]]:
    """Every noun that a noun is made of."""
    if noun in seen:
        return seen
    seen.add(noun)
    hints = typing.get_type_hints(noun)
    for name in members(noun):
        for part in parts_of(hints[name]):
            if isinstance(part, type) and issubclass(part, Struct):
                reachable(part, seen)
    return seen


def parts_of(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in typing.get_args(hint):
        yield from parts_of(argument)


def test_every_member_of_a_plan_is_classed() -> None:
    """A new field fails this until the document says whether it is approved."""
    nouns = {n for n in reachable(Plan, set()) if n.__name__ not in ("FrozenMap", "SecretRef")}
    assert nouns == set(NOUNS.values())
    assert {(name, m) for name, noun in NOUNS.items() for m in members(noun)} == set(classed())


# ── a plan with something in every corner ───────────────────────────────────────────────

SAID = desired(
    topic("a", 2, {"retention.ms": "5"}, config_mode="additive", owner="ann", labels={"x": "y"}),
    topic("b", 3, {"retention.ms": "7"}, depends_on=("kafka_topic.a",)),
    topic("m", 2, replication_factor=2),
    topic("f", lifecycle=Lifecycle(adopt=True)),
    topic("n", 1, {"retention.ms": "9"}),
    topic("k"),
    removed=(removed("kafka_topic.d", destroy=True),),
    outputs=(Output("x", Decimal("1.50")),),
    reassignment_throttle=RATE,
)
CAREFUL = Diagnostic(Severity.WARNING, "careful", range=Range("main.kf.hcl", 1, 1, 1, 1))
SAID = replace(SAID, diagnostics=(CAREFUL,))


def first() -> Desired:
    return desired(
        topic("a", 1),
        topic("d"),
        topic("g"),
        topic("m", 2, replication_factor=1),
        topic("n", 1, {"retention.ms": "8"}),
        topic("t", 1, replication_factor=1),
        reassignment_throttle=RATE,
    )


POLICIES = """
policy "never" {
  severity  = "warning"
  condition = change.action != "update"
  message   = "${change.key} is updated"

  waiver {
    addresses = ["kafka_topic.*"]
    reason    = "it only warns"
    until     = "2099-12-31"
  }
}
"""


def built() -> House:
    """Three brokers; topics of ours and of others, drift, and a throttle whose move has ended."""
    where = house(brokers=3)
    apply(where, first())
    moving = desired(
        *first().declared[:-1], topic("t", 1, replication_factor=2), reassignment_throttle=RATE
    )
    apply(where, moving)
    where.clock.advance(where.cluster.move_seconds + 3600)
    with where.cluster.others() as others:
        others.create("f")
        others.create("unmanaged")
        others.alter("a", {"segment.ms": "60000"})
        others.alter("n", {"retention.ms": "9"})
    with pytest.raises(KafkaformError, match="not approved"):  # what has ended is on record now
        apply(where, SAID, gap=lambda plan: None, answer=False)
    return where


@cache
def town() -> tuple[Mould[House], Plan]:
    """The house, and the plan that was saved there. Each apply works in a copy of it."""
    where = built()
    folders = PolicyFolders(("policies",), "0" * 64)
    where.policies = Policies(outside=compiled(POLICIES), folders=folders)
    saved = plan(where, SAID)
    return Mould(where), saved


def outcome(where: House, saved: Plan) -> tuple[Any, ...]:
    """All that an apply of this plan leaves: what was sent, what is there, recorded and owned."""
    done = apply(where, SAID, saved=saved)
    intents = [r.body.without(["plan", "approval"]) for r in where.records("intent", "obligation")]
    world = {key: repr(where.cluster.world.get(key)) for key in where.cluster.world}
    assert done.report is not None
    return where.state.objects, where.state.providers, where.cluster.requests, intents, world


def test_the_plan_has_something_in_every_corner() -> None:
    """Or its edits would prove little."""
    true = town()[1]
    assert {c.action.value for c in true.effective} >= {"create", "update", "delete", "adopt"}
    assert true.removals and true.pending and true.outputs and true.drifted
    assert any(c.theirs for c in true.changes) and any(c.blocked for c in true.changes)
    assert any(c.action.value == "noop" and c.drift for c in true.changes)
    assert any(step.owes for c in true.changes for step in c.steps)
    assert any(c.findings for c in true.changes) and true.policies.digest
    assert decode(encode(true), "") == true == seal_plan(true)


# ── edits ───────────────────────────────────────────────────────────────────────────────

SAMPLES: Mapping[type[Any], Any] = {
    Block: Block.PROTECTED,
    Impact: Impact("destroys"),
    Range: Range("x.hcl", 1, 1, 1, 1),
    Diagnostic: Diagnostic(Severity.WARNING, "careful"),
    Unmanaged: Unmanaged("kafka_topic", 1, ("u",)),
    PathChange: PathChange(("config", "x"), None, "1"),
    Output: Output("o", "1"),
    Finding: Finding("policy/p", Level.CAUTION, Harm.NONE, "wrong"),
    AccessRow: AccessRow("User:eve", "Topic", "a", "literal", ("All",), Breadth.ONE),
    Waiver: Waiver("eve", date(2030, 1, 1), holds=True),
    date: date(2030, 1, 1),
    OutputChange: OutputChange(None, Output("o", "1")),
    str: "eve",
    int: 7,
}


def edits(noun: Any, within: str = "") -> Iterator[tuple[str, str, str, Any]]:
    """(part, member, class, edited copy) for each member of this noun and of all it is made of.
    within: the class of the member that it stands in, if that is not approved."""
    part, hints = NAMES[type(noun)], typing.get_type_hints(type(noun))
    if isinstance(noun, Change) and not noun.effective:
        # In no approval; what would make it effective is refused, the rest has to change nothing.
        within = "recomputed"
    for member in members(type(noun)):
        rank = within or CLASS[part, member]
        value = getattr(noun, member)
        idle = "" if rank == "approved" else rank
        if member == "changes":
            for number, change in enumerate(value):
                without = replace(noun, changes=value[:number] + value[number + 1 :])
                yield part, member, rank if change.effective else "recomputed", without
            others = [(*value, value[0])]
        else:
            others = others_than(value, hints[member])
        for inner in others:
            yield part, member, rank, replace(noun, **{member: inner})
        for *told, inner in _inside(value, idle):
            yield *told, replace(noun, **{member: inner})


def _inside(value: Any, within: str) -> Iterator[tuple[Any, ...]]:
    """The same for what a member holds."""
    if type(value) in NAMES:
        yield from edits(value, within)
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            for *told, inner in _inside(item, within):
                yield *told, (*value[:number], inner, *value[number + 1 :])
    elif type(value) is dict or (isinstance(value, FrozenMap) and value):
        for key, item in value.items():
            for *told, inner in _inside(item, within):
                yield *told, {**value, key: inner}


def others_than(value: Any, hint: Any) -> list[Any]:
    """Other values of the same sort, for what is no noun of its own."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, Enum):
        return [other for other in type(value) if other is not value][:2]
    if isinstance(value, str):
        return [value + "x", value[:-1]] if value else ["eve"]
    if isinstance(value, int | float):
        return [value + 1]
    if isinstance(value, date):
        return [value + timedelta(days=1)]
    if isinstance(value, FrozenMap):
        less = [value.without([name]) for name in sorted(value)[:1]]
        return [value.with_items({"eve": "1"}), *less]
    if isinstance(value, tuple):
        more = next((SAMPLES[p] for p in parts_of(hint) if p in SAMPLES), None)
        if any(typing.get_origin(p) is tuple for p in typing.get_args(hint)):
            more = ("config", "retention.ms")
        return [value[:-1]] * bool(value) + ([(*value, more)] if more is not None else [])
    if value is None:
        return [SAMPLES[p] for p in parts_of(hint) if p in SAMPLES][:1] or [FrozenMap(eve="1")]
    return [None] if type(None) in typing.get_args(hint) else []


CLASS = classed()


@cache
def all_edits() -> list[tuple[str, str, str, Plan]]:
    true = town()[1]
    return [edit for edit in edits(true) if edit[3] != true]


def told(mould: Mould[House], altered: Plan, act: Callable[[House, Plan], Any]) -> Any:
    """What an apply of the altered plan, which it reads from a file, leaves in a copy of the house;
    None if it is refused and has sent nothing."""
    where = mould.copy()
    before = len(where.sink.records), dict(where.cluster.requests)
    try:
        return act(where, altered)
    except (KafkaformError, ArithmeticError) as error:
        assert isinstance(error, KafkaformError), repr(error)
        sent = {a: n for a, n in where.cluster.requests.items() if _writes(a)}
        assert sent == {a: n for a, n in before[1].items() if _writes(a)}
        assert len(where.sink.records) == before[0]
        return None


def difference(true: tuple[Any, ...], left: Any) -> str:
    """The first part of an outcome that differs, in words."""
    if not isinstance(left, tuple):
        return "applied"
    return next(
        f"{one} became {other}" for one, other in zip(true, left, strict=True) if one != other
    )


def _writes(api: str) -> bool:
    return not api.startswith(("Describe", "List", "Metadata"))


def test_many_members_are_edited() -> None:
    """Each that is classed as approved, in each place of the plan."""
    met = {(part, member) for part, member, rank, _ in all_edits() if rank == "approved"}
    nouns = {  # edited member by member
        *(("plan", name) for name in ("instances", "options", "policies")),
        *(("change", name) for name in ("identity", "row_before", "row_after")),
        *(
            ("removal", "identity"),
            ("step", "identity"),
            ("step", "request"),
            ("instance", "facts"),
            *BESIDE,
        ),
    }
    assert {key for key, rank in CLASS.items() if rank == "approved"} - met == nouns
    assert len(all_edits()) > 800


@pytest.mark.slow("applies eight hundred edited plans")
# Nobody loses a right in this plan; unit/plan/test_approval.py edits the rows of one who does.
@pytest.mark.parametrize("part", [part for part in NOUNS if part not in ("access", "side effect")])
def test_an_edited_member_is_refused_or_harmless(part: str) -> None:
    """What is approved is refused; what is shown only leaves the very same behind; what is
    computed anew does one of both."""
    mould, saved = town()
    true = outcome(mould.copy(), saved)
    faults, mine = [], [edit for edit in all_edits() if edit[0] == part]
    assert mine
    for _, member, rank, altered in mine:
        if rank == "approved":
            # The configuration is in the token.
            expect = saved.token if member == "configuration" else None
            left = told(mould, altered, lambda w, p, e=expect: apply(w, SAID, saved=p, expect=e))
            ok = left is None
        else:
            left = told(mould, altered, outcome)
            ok = left == true or (rank == "recomputed" and left is None)
        if not ok:
            faults.append((member, rank, "refused" if left is None else difference(true, left)))
    assert faults == []
