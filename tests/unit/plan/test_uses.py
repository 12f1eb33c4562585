"""Objects that use objects of another provider: in which order they change, and who is named where
something is deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Evidence, Repeat, Request, Step
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    InstanceWorld,
    Observed,
    Reading,
    Sweep,
    Use,
)
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.plan.consequences import tell_managed_users
from kafkaform.plan.lower import find_needs, lower_plan
from kafkaform.plan.model import Plan
from kafkaform.plan.observe import Look
from kafkaform.plan.rules import PROTECTED
from kafkaform.plan.uses import NAMED, name_users, order_by_uses, tell_missing_uses
from kafkaform.provider.contract import Provider, ResourceType, Session
from kafkaform.state.model import Row, State

from ...kit.findings import list_notes, list_risks
from ...kit.quick import examples
from ...kit.simulated import boxes

SHELF, JOB = "shop_shelf", "work_job"
"""A job of one provider reads shelves of another."""


def list_uses(attributes: FrozenMap) -> Sequence[Use]:
    """One for each shelf that a job names."""
    needed = attributes.get("needed") is not False
    return [Use(SHELF, name, "reads", needed) for name in attributes.get("shelves") or ()]


def read_key(text: str) -> str:
    """Names in lower case."""
    if not text.islower():
        raise ValueError("a name is in lower case")
    return text


TYPES: Mapping[str, ResourceType] = {
    SHELF: replace(boxes.TYPE, name=SHELF, import_key=read_key),
    JOB: replace(boxes.TYPE, name=JOB, uses=list_uses),
}
FACTS = {"shop": Facts("shop-1"), "work": Facts("work-1")}
MAKES, TAKES = Request("Make", 1, 20, 100, 1000), Request("Take", 2, 20, 100, 1000)


def shelf(name: str, instance: str = "shop") -> Identity:
    return Identity(instance, SHELF, name)


def job(name: str) -> Identity:
    return Identity("work", JOB, name)


def attributes(*shelves: str, **given: Any) -> FrozenMap:
    return FrozenMap(shelves=shelves, **given)


def change(
    identity: Identity,
    action: Action = Action.CREATE,
    *shelves: str,
    needs: Sequence[Identity] = (),
    before: FrozenMap | None = None,
) -> Change:
    """A change with one step; shelves: those that it names afterwards."""
    address = f"{identity.kind}.{identity.key}"
    deletes = action is Action.DELETE
    step = Step(
        f"{identity.instance}/{identity.kind}/{identity.key}#1",
        identity,
        address,
        TAKES if deletes else MAKES,
        EMPTY,
        1,
        (),
        Repeat.SAFE,
        Evidence.REMOTE,
    )
    return Change(
        identity,
        address,
        action,
        before=(before or attributes(*shelves)) if action is not Action.CREATE else None,
        after=None if deletes else attributes(*shelves),
        depends_on=tuple(sorted(f"{one.kind}.{one.key}" for one in needs)),
        steps=(step,),
    )


def waves(*changes: Change, facts: Mapping[str, Facts] = FACTS) -> list[list[str]]:
    """Keys, round by round."""
    ordered = order_by_uses(changes, TYPES, facts)
    found: dict[tuple[int, int], list[str]] = {}
    for wave in lower_plan(Plan("l", 0, "", {}, tuple(ordered))):
        keys = [s.identity.key for b in wave.batches for s in b.steps]
        found.setdefault((wave.part, wave.round), []).extend(keys)
    return [sorted(keys) for keys in found.values()]


# ── order ───────────────────────────────────────────────────────────────────────────────


def test_what_is_used_is_created_first() -> None:
    """Without a word of it in the configuration, and whatever the names."""
    assert waves(change(job("a"), Action.CREATE, "z"), change(shelf("z"))) == [["z"], ["a"]]
    assert waves(change(job("a"), Action.CREATE, "y"), change(shelf("z"))) == [["a", "z"]]


def test_what_is_used_is_deleted_last() -> None:
    """The user goes first."""
    gone = change(shelf("a"), Action.DELETE)
    assert waves(gone, change(job("z"), Action.DELETE, "a")) == [["z"], ["a"]]


def test_a_user_that_lets_go_does_so_before_the_deletion() -> None:
    """It reads another shelf from now on, which is created before."""
    moves = change(job("j"), Action.UPDATE, "new", before=attributes("old"))
    gone = change(shelf("old"), Action.DELETE)
    assert waves(gone, moves, change(shelf("new"))) == [["new"], ["j"], ["old"]]


def test_a_deletion_waits_for_what_lets_go() -> None:
    """If the update of the user fails, the deletion is left out, and --target takes it along. The
    user does not wait for the deletion, nor record it as a dependency."""
    moves = change(job("j"), Action.UPDATE, before=attributes("old"))
    gone = change(shelf("old"), Action.DELETE)
    ordered = order_by_uses([gone, moves], TYPES, FACTS)
    assert [one.depends_on for one in ordered] == [("work_job.j",), ()]
    assert find_needs(ordered) == {gone.steps[0].id: {moves.steps[0].id}, moves.steps[0].id: set()}
    assert [(w.part, w.round) for w in lower_plan(Plan("l", 0, "", {}, tuple(ordered)))] == [
        (1, 0),
        (2, 0),
    ]


def test_a_use_is_a_dependency_that_is_approved_and_recorded() -> None:
    """So that a later deletion knows it, too, and --target takes along what is used."""
    found = order_by_uses([change(job("a"), Action.CREATE, "z"), change(shelf("z"))], TYPES, FACTS)
    assert [one.depends_on for one in found] == [("shop_shelf.z",), ()]


def test_references_win() -> None:
    """A shelf that refers to the job that reads it waits for it, and not the other way round."""
    a, z = job("a"), shelf("z")
    assert waves(change(a, Action.CREATE, "z"), change(z, needs=[a])) == [["a"], ["z"]]
    between = change(shelf("m"), needs=[a])
    assert waves(change(a, Action.CREATE, "z"), between, change(z, needs=[shelf("m")])) == [
        ["a"],
        ["m"],
        ["z"],
    ]


@pytest.mark.parametrize("name", ["NotAName", ""])
def test_a_name_that_nothing_can_have_is_passed_over(name: str) -> None:
    """A user may name whatever the system takes."""
    assert waves(change(job("a"), Action.CREATE, name), change(shelf("z"))) == [["a", "z"]]


def test_kinds_that_nobody_configured_are_passed_over() -> None:
    """The other provider need not be part of the configuration."""
    types = {JOB: TYPES[JOB]}
    changes = [change(job("a"), Action.CREATE, "z")]
    assert order_by_uses(changes, types, {"work": FACTS["work"]}) == changes


def test_every_instance_counts_unless_the_system_says_which() -> None:
    """A system that says with which other one it works waits for no third one."""
    both = {"shop": Facts("s-1"), "shop.b": Facts("s-2"), "work": Facts("w")}
    changes = (
        change(job("a"), Action.CREATE, "z"),
        change(shelf("z")),
        replace(change(shelf("z", "shop.b")), address="shop_shelf.other"),
    )
    assert order_by_uses(changes, TYPES, both)[0].depends_on == (
        "shop_shelf.other",
        "shop_shelf.z",
    )
    both["work"] = Facts("w", partners=FrozenMap(shop="s-2"))
    assert order_by_uses(changes, TYPES, both)[0].depends_on == ("shop_shelf.other",)


NAMES = "abcdefgh"


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Change], set[tuple[int, int]]]:
    """Shelves and jobs with references that have no circle, and jobs that read shelves at random;
    the references as pairs of positions."""
    count = draw(st.integers(2, len(NAMES)))
    sorts = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    names = [(job if is_job else shelf)(name) for name, is_job in zip(NAMES, sorts, strict=False)]
    order = draw(st.permutations(range(count)))
    rank = {n: place for place, n in enumerate(order)}
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    references = {(n, m) for n, m in draw(st.lists(pairs, max_size=12)) if rank[n] > rank[m]}
    action = draw(st.sampled_from([Action.CREATE, Action.DELETE]))
    changes = []
    for n, identity in enumerate(names):
        shelves = draw(st.lists(st.sampled_from(NAMES[:count]), max_size=4, unique=True))
        needs = [names[m] for k, m in references if k == n]
        changes.append(change(identity, action, *shelves, needs=needs))
    return changes, references


@settings(max_examples=examples(300), deadline=None)
@given(worlds())
def test_the_order_keeps_references_and_every_use_that_closes_no_circle(
    world: tuple[list[Change], set[tuple[int, int]]],
) -> None:
    """References hold always; a use holds unless what is used needs its user; nothing waits for
    itself, and equal plans have equal orders."""
    changes, references = world
    ordered = order_by_uses(changes, TYPES, FACTS)
    assert ordered == order_by_uses(changes, TYPES, FACTS)
    place = {
        step.identity: (wave.part, wave.round, wave.provider, wave.phase)
        for wave in lower_plan(Plan("l", 0, "", {}, tuple(ordered)))
        for batch in wave.batches
        for step in batch.steps
    }
    deletes = changes[0].action is Action.DELETE

    def holds(user: Identity, used: Identity) -> bool:
        first, second = (user, used) if deletes else (used, user)
        return place[first] < place[second]

    assert all(holds(changes[n].identity, changes[m].identity) for n, m in references)
    needs = find_needs(ordered)
    for one in changes:
        if one.identity.kind != JOB:
            continue
        for name in list_uses(one.before if deletes else one.after):  # type: ignore[arg-type]
            used = shelf(name.key)
            if used in place:
                mine, theirs = (f"{i.instance}/{i.kind}/{i.key}#1" for i in (one.identity, used))
                waits = (mine, theirs) if deletes else (theirs, mine)
                assert holds(one.identity, used) or leads_to(needs, *waits)


def leads_to(needs: Mapping[str, set[str]], start: str, end: str) -> bool:
    """Whether a step waits for another, however many others stand between."""
    return start == end or any(leads_to(needs, one, end) for one in needs[start])


# ── impact ──────────────────────────────────────────────────────────────────────────────


@dataclass
class Listing:
    """A session that lists. asked: what it had to list."""

    items: Sequence[Observed] = ()
    coverage: Coverage = Coverage(CoverageKind.COMPLETE)
    facts: Facts = Facts("work-1")
    asked: list[tuple[str, Depth]] = field(default_factory=list)

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        self.asked.append((kind, depth))
        return Sweep(kind, depth, tuple(self.items), self.coverage)


@dataclass
class Kinds:
    """A provider that has these types."""

    name: str
    types: Mapping[str, ResourceType]


PROVIDERS = cast(
    Mapping[str, Provider],
    {"shop": Kinds("shop", {SHELF: TYPES[SHELF]}), "work": Kinds("work", {JOB: TYPES[JOB]})},
)


def observed(name: str, *shelves: str, **given: Any) -> Observed:
    return Observed(job(name), attributes(*shelves, **given))


def test_what_a_change_endangers_names_the_managed_objects_that_need_it() -> None:
    """Objects of the plan and the state, without a request; a change without harm names nobody."""
    cut = Change(shelf("a"), "shop_shelf.a", Action.UPDATE, EMPTY, EMPTY)
    risk = Finding("cut", Level.DANGER, Harm.DATA_LOSS, "text")
    readings = {job("reads"): observed("reads", "a"), job("other"): observed("other", "b")}
    readings[job("loose")] = observed("loose", "a", needed=False)
    world = {
        "shop": InstanceWorld(FACTS["shop"], {shelf("a"): Observed(shelf("a"), EMPTY)}),
        "work": InstanceWorld(FACTS["work"], readings),
    }
    listing = Listing()
    look = Look(cast(Mapping[str, Session], {"work": listing}), world)
    harmful = replace(cut, findings=(risk,))
    (named,) = tell_managed_users([harmful], PROVIDERS, look, State("l"))
    assert [(item.rule, item.text) for item in named.findings[1:]] == [
        ("object-relied-on", "work_job reads (not managed) reads it")
    ]
    assert tell_managed_users([cut], PROVIDERS, look, State("l")) == [cut]
    assert listing.asked == []


def name_first(
    *changes: Change,
    readings: Sequence[Reading] = (),
    rows: Sequence[Row] = (),
    listing: Listing | None = None,
    unread: Mapping[str, Fault] | None = None,
) -> Change:
    """The first change, with its users."""
    seen: dict[str, dict[Identity, Reading]] = {"shop": {}, "work": {}}
    for one in changes:
        seen[one.identity.instance][one.identity] = Absent(one.identity)
        if one.before is not None:
            seen[one.identity.instance][one.identity] = Observed(one.identity, one.before)
    for reading in readings:
        seen[reading.identity.instance][reading.identity] = reading
    world = {name: InstanceWorld(FACTS[name], found) for name, found in seen.items()}
    sessions = cast(Mapping[str, Session], {"shop": Listing(), "work": listing or Listing()})
    state = State("l", objects={row.identity: row for row in rows})
    if unread:
        sessions = {name: one for name, one in sessions.items() if name not in unread}
    look = Look(sessions, world, unread=unread or {})
    result = name_users(changes, PROVIDERS, look, state)[0]
    assert all(risk.harm is Harm.AVAILABILITY for risk in list_risks(result))
    return result


def named(*changes: Change, **given: Any) -> tuple[list[str], tuple[str, ...]]:
    """Risks and notes of the first change."""
    first = name_first(*changes, **given)
    return [risk.text for risk in list_risks(first)], list_notes(first)


def wait(*changes: Change, **given: Any) -> Finding:
    """Why the first change waits."""
    first = name_first(*changes, **given)
    assert first.blocked is not None and not first.steps and not first.effective
    return first.blocked


GONE = change(shelf("a"), Action.DELETE)
BLOCK = PROTECTED.find("it is protected")


def test_users_that_stay_are_named() -> None:
    """Declared and unchanged, changed to read it, and created in the same plan."""
    still = replace(change(job("still"), Action.NOOP, "a"), steps=())
    new = change(job("new"), Action.CREATE, "a", "b")
    moved = change(job("moved"), Action.UPDATE, "a", before=attributes("b"))
    risks, notes = named(GONE, still, new, moved)
    assert risks == ["work_job.moved reads it, work_job.new reads it, work_job.still reads it"]
    assert notes == ()


def test_users_that_go_or_let_go_are_not_named() -> None:
    """Deleted in the same plan, deleted by others, or reading something else afterwards."""
    goes = change(job("goes"), Action.DELETE, "a")
    moves = change(job("moves"), Action.UPDATE, "b", before=attributes("a"))
    gone = replace(change(job("gone"), Action.FORGET, "a"), before=None, after=None, steps=())
    assert named(GONE, goes, moves, gone) == ([], ())


def test_a_user_whose_deletion_is_blocked_is_named() -> None:
    """It stays. The deletion of what it uses can be blocked itself, and says so all the same."""
    stays = replace(change(job("stays"), Action.DELETE, "a"), findings=(BLOCK,))
    assert named(replace(GONE, findings=(BLOCK,)), stays) == (["work_job.stays reads it"], ())


def test_a_user_outside_the_selection_is_named() -> None:
    """--target leaves the change of a user out, and the user stays."""
    row = Row(job("left"), ("work_job.left",), 3, attributes("a"))
    assert named(GONE, readings=[observed("left", "a")], rows=[row]) == (
        ["work_job.left reads it"],
        (),
    )


FAULT = Fault("TIMEOUT", "no answer", FaultClass.AMBIGUOUS)


@pytest.mark.parametrize("reading", [Failed(job("j"), FAULT), Hidden(job("j"), "Read on j")])
def test_a_user_that_cannot_be_read_is_as_it_was_recorded(reading: Reading) -> None:
    """A failed read is never "nothing there": the deletion of what it used waits."""
    row = Row(job("j"), ("work_job.j",), 3, attributes("a"))
    assert named(GONE, readings=[reading], rows=[row]) == (["work_job.j reads it"], ())
    waiting = wait(GONE, readings=[reading], rows=[row])
    assert waiting.text == "it waits: work_job.j reads it, and could not be read"
    assert (
        name_first(replace(GONE, findings=(BLOCK,)), readings=[reading], rows=[row]).blocked
        == BLOCK
    )


def test_a_system_that_did_not_answer_is_waited_for() -> None:
    """A deletion waits for those of an unreachable system that can use its kind of object, and one
    that they cannot use does not."""
    unread = {"work": Fault("UNREACHABLE", "nobody answers at work:1", FaultClass.NOT_APPLIED)}
    assert wait(GONE, unread=unread).text == (
        "it waits: whether a work_job uses it is not known, because those of work could not be "
        "listed: nobody answers at work:1"
    )
    kind = replace(TYPES[JOB], used_kinds=frozenset({"shop_till"}))
    providers = {**PROVIDERS, "work": cast(Provider, Kinds("work", {JOB: kind}))}
    world = {"shop": InstanceWorld(FACTS["shop"], {}), "work": InstanceWorld(FACTS["work"], {})}
    look = Look(cast(Mapping[str, Session], {"shop": Listing()}), world, unread=unread)
    assert name_users([GONE], providers, look, State("l"))[0].effective


def test_a_user_that_nobody_manages_is_named() -> None:
    """Its kind is listed in full, once, and only because something is deleted."""
    listing = Listing([observed("theirs", "a"), observed("other", "b")])
    risks, _ = named(GONE, change(shelf("b"), Action.DELETE), listing=listing)
    assert risks == ["work_job theirs (not managed) reads it"]
    assert listing.asked == [(JOB, Depth.FULL)]


def test_a_provider_is_not_listed_for_its_own_deletions() -> None:
    """Its own review knows what its objects mean to each other."""
    listing = Listing([observed("theirs", "a")])
    assert named(change(job("x"), Action.DELETE), listing=listing) == ([], ())
    assert not listing.asked


def test_a_listing_that_fails_is_not_an_empty_one() -> None:
    """A deletion waits while nobody could ask who uses the object, and says for whom."""
    listing = Listing(coverage=Coverage(CoverageKind.FAILED, FAULT))
    waiting = wait(GONE, listing=listing)
    assert waiting.block is Block.WAITING and waiting.unmet and not waiting.stops
    assert waiting.text == (
        "it waits: whether a work_job uses it is not known, because those of work could not be "
        "listed: no answer"
    )


def test_a_user_that_goes_on_without_it_is_a_note() -> None:
    """Only what stops working is a risk."""
    listing = Listing([observed("log", "a", needed=False), observed("sink", "a")])
    assert named(GONE, listing=listing) == (
        ["work_job sink (not managed) reads it"],
        ("work_job log (not managed) reads it",),
    )


def test_many_users_are_counted() -> None:
    """The first few are named, the others counted."""
    listing = Listing([observed(f"j{n:04}", "a") for n in range(NAMED + 1234)])
    (risk,), _ = named(GONE, listing=listing)
    assert risk.count("reads it") == NAMED and risk.endswith(", and 1,234 more")


# ── what does not exist ─────────────────────────────────────────────────────────────────


@dataclass
class Shop:
    """A session that reads by name. live: the names of the shelves; hidden: whether it may look."""

    live: Sequence[str] = ()
    hidden: bool = False
    asked: list[Identity] = field(default_factory=list)

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        self.asked += ids
        return {i: self._read(i) for i in ids}

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        items = tuple(Observed(shelf(name), EMPTY) for name in self.live)
        return Sweep(kind, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))

    def _read(self, identity: Identity) -> Reading:
        if identity.key in self.live:
            return Observed(identity, EMPTY)
        return Hidden(identity, "Look") if self.hidden else Absent(identity)


def find_missing(
    *changes: Change, shop: Shop | None = None, facts: Mapping[str, Facts] = FACTS
) -> list[Finding]:
    """What is found about the first change."""
    instances = [name for name in facts if name != "work"]
    sessions = {name: shop or Shop() for name in instances}
    world = {name: InstanceWorld(known, {}) for name, known in facts.items()}
    providers = {name: PROVIDERS[name.partition(".")[0]] for name in facts}
    look = Look(cast(Mapping[str, Session], sessions), world)
    return list(tell_missing_uses(changes, TYPES, providers, look, facts)[0].findings)


def test_a_used_object_that_does_not_exist_is_a_caution() -> None:
    """With its name and the nearest one: a typo stops the user, and nothing else says so."""
    (finding,) = find_missing(change(job("j"), Action.CREATE, "boks"), shop=Shop(["books"]))
    assert (finding.rule, finding.level) == ("used-object-missing", Level.CAUTION)
    assert finding.text == "it reads shop_shelf boks, which is neither declared nor live"
    assert finding.fix == 'Did you mean "books"?'
    (plain,) = find_missing(change(job("j"), Action.CREATE, "xyz"), shop=Shop(["books"]))
    assert plain.fix == "Correct the name, or declare the object."


@pytest.mark.parametrize(
    ("changes", "shop"),
    [
        ([change(job("j"), Action.CREATE, "books")], Shop(["books"])),
        ([change(job("j"), Action.CREATE, "new"), change(shelf("new"))], Shop()),
        ([change(job("j"), Action.CREATE, "secret")], Shop(hidden=True)),
        ([change(job("j"), Action.CREATE, "NotAName")], Shop()),
        ([change(job("j"), Action.UPDATE, "old", before=attributes("old"))], Shop()),
        ([change(job("j"), Action.DELETE, "old")], Shop()),
        ([change(shelf("s"))], Shop()),
    ],
)
def test_what_exists_or_may_exist_is_no_finding(changes: Sequence[Change], shop: Shop) -> None:
    """Live, declared, hidden; what the user named before; and what is not created."""
    assert find_missing(*changes, shop=shop) == []


def test_what_the_user_does_not_need_is_not_asked_about() -> None:
    """A name that only describes something costs no request."""
    shop, optional = Shop(), attributes("boks", needed=False)
    assert find_missing(replace(change(job("j")), after=optional), shop=shop) == []
    assert shop.asked == []


def test_an_object_is_missing_if_no_instance_has_it() -> None:
    """The one with which the user's system works decides, if it says so."""
    both = {"shop": Facts("s-1"), "shop.b": Facts("s-2"), "work": Facts("w")}
    create = change(job("j"), Action.CREATE, "boks")
    other = change(shelf("boks", "shop.b"))
    assert len(find_missing(create, facts=both)) == 1
    assert find_missing(create, other, facts=both) == []
    both["work"] = Facts("w", partners=FrozenMap(shop="s-1"))
    assert len(find_missing(create, other, facts=both)) == 1
