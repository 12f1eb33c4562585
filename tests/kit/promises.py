"""What must hold after an apply died and another one has recovered: five promises, one checker.

NL1  every mutation that the cluster shows has an earlier durable intent
NL2  the state equals the cluster for every object that it records, and records all that was made
NL3  nothing was done outside the approved plan, and nothing that may not be repeated twice
NL4  the log's chain verifies, and each intent has exactly one terminal outcome
NL5  the state was at every moment wholly an old one or wholly a new one

How to use it: take `World`s (what the cluster has, read by whatever client you trust) before the
apply and after the recovery; call `kept` on the folder right after the process died, and `broken`
after the recovery. Both return violations as text, () if everything holds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kafkaform.apply.recovery import index_steps
from kafkaform.audit.index import TERMINAL, get_run
from kafkaform.audit.records import Record, decode, read_line, verify_log
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.canonical import from_data
from kafkaform.core.errors import KafkaformError
from kafkaform.core.value import FrozenMap, freeze
from kafkaform.plan.diff import flatten
from kafkaform.plan.model import Plan
from kafkaform.state.codec import decode as decode_state
from kafkaform.state.model import State

STATE, LOG = "kafkaform.state.json", "kafkaform.audit.jsonl"
SEGMENTS = "kafkaform.audit"
FILES = frozenset({"main.kf.hcl", STATE, LOG, SEGMENTS, ".kafkaform"})
"""What a folder may hold after a recovery."""
LAG = 10.0
"""Seconds that a read may miss an acknowledged write."""
POLL = 0.1

Name = tuple[str, str]
"""The kind and the key of an object, as state and log have them: ("kafka_topic", "orders")."""
Attempt = tuple[str, str, int]
"""run, step, attempt"""


@dataclass(frozen=True)
class Thing:
    """One live object. attributes: those that the reader knows, spelled as in the state; others
    are not compared; incarnation: topic id, None where a kind has none."""

    attributes: Mapping[str, Any]
    incarnation: str | None = None


World = Mapping[Name, Thing]
"""Everything that belongs to the folder, or that it could touch, and nothing else."""


@dataclass(frozen=True)
class Reached:
    """One item of a request that reached the broker. request: its name as in `Step.request`;
    name: the object; intents: how many intents of that request and object the log held, durably,
    at that moment (None: nobody looked)."""

    request: str
    name: Name
    intents: int | None = None


@dataclass(frozen=True)
class Before:
    """What was there before the apply. world: see `World`; seq: of the log's last record then;
    left: the intents that were open then; state: the state's bytes, None if there was none."""

    world: World = field(default_factory=dict)
    seq: int = 0
    left: frozenset[Attempt] = frozenset()
    state: bytes | None = None

    @staticmethod
    def of(folder: Path, world: World) -> Before:
        """As things stand now; the folder's last run has ended."""
        lines, path = read_lines(folder), folder / STATE
        intents, ends = pairs(map(decode, lines))
        data = path.read_bytes() if path.exists() else None
        return Before(world, len(lines), frozenset(intents - ends), data)


def kept(folder: Path, before: Before) -> tuple[str, ...]:
    """What a process that died left of the promises, before anything is recovered: the state is
    whole (NL5), the log is a chain but for its last line, and holds what the state is anchored
    at (NL4)."""
    return (*_whole(folder, before), *_chained(folder))


def broken(
    folder: Path,
    read: Callable[[], World],
    before: Before,
    *,
    wanted: World | None = None,
    reached: Sequence[Reached] | None = None,
    unresolved: bool = False,
    patience: float = LAG,
) -> tuple[str, ...]:
    """Everything that does not hold in this folder, whose last run has recovered.

    read: the cluster as it is now; asked again for `patience` seconds as long as it differs from
    the state or from what is wanted, because reads lag behind writes. wanted: what must be live at
    the end (None: do not compare). reached: the items of writing requests that really reached the
    broker since `before`, dry runs left out. unresolved: intents may be open, and their objects
    differ.
    """
    faults = (*_whole(folder, before), *_chained(folder), *_left(folder))
    if faults:
        return faults
    new = [decode(line) for line in read_lines(folder)[before.seq :]]
    state = state_of(folder)
    open_ = {_name(record) for record in open_intents(new)}
    unwanted = partial(find_unwanted, wanted) if wanted is not None else lambda _: ()
    world = read_settled(
        read, lambda world: (*_unequal(state, world, open_), *unwanted(world)), patience
    )
    return (
        *_unintended(before.world, world, new),
        *(f"NL2 {fault}" for fault in _unequal(state, world, open_)),
        *_unrecorded(before.world, world, state, new, open_),
        *_unapproved(new),
        *_repeated(before.world, world, new, reached),
        *_unpaired(before, new, unresolved=unresolved),
        *unwanted(world),
    )


# ── reading the folder ──────────────────────────────────────────────────────────────────


def state_of(folder: Path) -> State | None:
    """The state. Raises StorageError if it is not wholly one."""
    path = folder / STATE
    return decode_state(path.read_bytes(), str(path)) if path.exists() else None


def records_of(folder: Path) -> list[Record]:
    """The whole log, but for half a record at its end, which the next run sets aside;
    AssertionError if the chain is broken or the state's anchor is missing."""
    faults = tuple(_chained(folder))
    assert not faults, faults
    return [decode(line) for line in read_lines(folder)]


def pairs(records: Iterable[Record]) -> tuple[Counter[Attempt], Counter[Attempt]]:
    """How often each attempt was intended, and how often it ended."""
    intents: Counter[Attempt] = Counter()
    ends: Counter[Attempt] = Counter()
    for record in records:
        body: Any = record.body
        if record.kind == "intent":
            intents[record.run, body["step"], body["attempt"]] += 1
        elif record.kind in ("outcome", "recover") and body.get("outcome") in TERMINAL:
            ends[get_run(record), body["step"], body["attempt"]] += 1
    return intents, ends


def open_intents(records: Sequence[Record]) -> list[Record]:
    """Intents without a terminal outcome."""
    _, ends = pairs(records)
    return [
        record
        for record in records
        if record.kind == "intent"
        and (record.run, record.body["step"], record.body["attempt"]) not in ends
    ]


def read_lines(folder: Path) -> list[bytes]:
    """The whole lines of the log, in segments and after them, without what a crash tore off."""
    return [read_line(line) for line in LocalSink(folder / LOG).lines()]


def _name(record: Record) -> Name:
    return (record.body["kind"], record.body["key"])


# ── NL5, NL4: the files themselves ──────────────────────────────────────────────────────


def _whole(folder: Path, before: Before) -> Iterator[str]:
    path = folder / STATE
    data = path.read_bytes() if path.exists() else None
    if data == before.state:
        return
    if data is None:
        yield "NL5 the state is gone"
        return
    try:
        state = decode_state(data, str(path))
    except KafkaformError as error:
        yield f"NL5 the state cannot be read: {error}"
        return
    if before.state is None:
        return
    old = decode_state(before.state, str(path))
    same = replace(state, audit_head=old.audit_head, sealed=old.sealed)
    later = same == old or state.serial > old.serial
    if not later or state.lineage != old.lineage:
        yield f"NL5 serial {state.serial} of {state.lineage} follows {old.serial} of {old.lineage}"


def _chained(folder: Path) -> Iterator[str]:
    """Half a record may stand at the end until the next one is written: had anything been written
    after it, the line that they share would break the chain."""
    try:
        state = state_of(folder)
    except KafkaformError as error:
        yield f"NL5 the state cannot be read: {error}"
        return
    try:
        verdict = verify_log(read_lines(folder), state.audit_head if state else None)
    except KafkaformError as error:
        yield f"NL4 the log cannot be read: {error}"
        return
    if not verdict.ok:
        yield f"NL4 record {verdict.seq}: {verdict.problem}"


def _left(folder: Path) -> Iterator[str]:
    """Temporary files, here or where earlier states and torn records are kept."""
    inner = (folder.glob(f"{name}/**/.*.tmp") for name in (".kafkaform", SEGMENTS))
    for path in (*folder.iterdir(), *chain.from_iterable(inner)):
        if path.name.endswith(".tmp") or path.parent == folder and path.name not in FILES:
            yield f"NL5 left behind: {path.name}"


def _unpaired(before: Before, new: Sequence[Record], *, unresolved: bool) -> Iterator[str]:
    intents, ends = pairs(new)
    intents += Counter(before.left)
    for attempt, count in intents.items():
        if count != 1:
            yield f"NL4 {attempt} was intended {count} times"
        if ends[attempt] > 1 or (ends[attempt] == 0 and not unresolved):
            yield f"NL4 {attempt} ended {ends[attempt]} times"
    for attempt in ends.keys() - intents.keys():
        yield f"NL4 {attempt} ended and was never intended"


# ── NL1: what changed was intended ──────────────────────────────────────────────────────


def _unintended(before: World, after: World, new: Sequence[Record]) -> Iterator[str]:
    intents = [record for record in new if record.kind == "intent"]
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        bodies: list[Any] = [record.body for record in intents if _name(record) == name]
        yield from (f"NL1 {name}: {fault}" for fault in _without_intent(was, now, bodies))


def _without_intent(was: Thing | None, now: Thing | None, bodies: Sequence[Any]) -> Iterator[str]:
    """What happened to one object that none of these intents says."""
    actions = {body["action"] for body in bodies}
    recreated = was is not None and now is not None and was.incarnation != now.incarnation
    if (now is None or recreated) and "delete" not in actions and not _emptied(bodies):
        yield "it was deleted without an intent"
    making = {"create"} if now and now.incarnation else {"create", "update"}
    if (was is None or recreated) and now is not None and not actions & making:
        yield "it was created without an intent"
    if was is None or now is None or recreated:
        return
    told = {(item["path"], item["after"]) for body in bodies for item in body["paths"]}
    old, new = _flat(was), _flat(now)
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) != new.get(path) and (path, new.get(path)) not in told:
            yield f"{path} became {new.get(path)!r} without an intent"


def _emptied(bodies: Sequence[Any]) -> bool:
    """True if an update took the last of an object that is nothing but its settings."""
    return any(all(item["after"] is None for item in body["paths"]) for body in bodies)


def _flat(thing: Thing) -> dict[str, Any]:
    frozen = freeze(thing.attributes)
    assert isinstance(frozen, FrozenMap)
    return {".".join(path): value for path, value in flatten(frozen).items()}


# ── NL2: the state is the cluster ───────────────────────────────────────────────────────


def read_settled(
    read: Callable[[], World], faults: Callable[[World], Iterable[str]], patience: float = LAG
) -> World:
    """The world, asked again for so many seconds as long as it has faults."""
    deadline = time.monotonic() + patience
    while True:
        world = read()
        if not any(True for _ in faults(world)) or time.monotonic() >= deadline:
            return world
        time.sleep(POLL)


def _unequal(state: State | None, world: World, open_: set[Name]) -> Iterator[str]:
    """Rows that differ from what is live, but for objects whose intents are open."""
    for identity, row in state.objects.items() if state else ():
        name = (identity.kind, identity.key)
        live = world.get(name)
        if name in open_:
            continue
        if live is None:
            yield f"{name} is in the state and not in the cluster"
            continue
        if live.incarnation != row.incarnation:
            yield f"{name} is recorded as {row.incarnation} and is {live.incarnation}"
        recorded = {key: row.attributes.get(key) for key in live.attributes}
        if _flat(Thing(recorded)) != _flat(live):
            yield f"{name} is recorded as {dict(recorded)} and is {dict(live.attributes)}"


def _unrecorded(
    before: World, after: World, state: State | None, new: Sequence[Record], open_: set[Name]
) -> Iterator[str]:
    """What this folder made since `before` and does not know of."""
    rows = {(identity.kind, identity.key) for identity in state.objects} if state else set()
    made = {_name(r) for r in new if r.kind == "intent" and r.body["action"] == "create"}
    for name in sorted(made & (after.keys() - before.keys()) - rows - open_):
        yield f"NL2 {name} was made and is not in the state"


def find_unwanted(wanted: World, world: World) -> Iterator[str]:
    """How the world differs from what is wanted."""
    for name in sorted(wanted.keys() | world.keys()):
        want, live = wanted.get(name), world.get(name)
        if want is None or live is None:
            yield f"NL2 {name} is {'not wanted' if want is None else 'missing'}"
        elif _flat(want) != _flat(live):
            yield f"NL2 {name} is {dict(live.attributes)}, wanted {dict(want.attributes)}"


# ── NL3: what was done was approved, and once ───────────────────────────────────────────


def _unapproved(new: Sequence[Record]) -> Iterator[str]:
    """Every intent is of a step of the plan that its run recorded, after its approval, word for
    word."""
    plans: dict[str, Plan] = {}
    approved: dict[str, str] = {}
    for record in new:
        body: Any = record.body
        if record.kind == "plan":
            plans[record.run] = from_data(Plan, body["plan"])
        elif record.kind == "approval":
            approved[record.run] = body["approval"]
        elif record.kind == "intent":
            plan = plans.get(record.run)
            if plan is None or approved.get(record.run) != plan.approval:
                yield f"NL3 record {record.seq} is an intent of a run without an approved plan"
                continue
            known = index_steps(plan).get(body["step"])
            if known is None or body["approval"] != plan.approval:
                yield f"NL3 record {record.seq}: {body['step']} is not in the approved plan"
                continue
            change, step = known
            told = {(item["path"], item["after"]) for item in body["paths"]}
            meant = {
                (".".join(item.path), None if item.sensitive else item.after)
                for item in change.paths
                if item.path in set(step.paths)
            }
            if told != meant or change.action.value != body["action"]:
                yield f"NL3 record {record.seq}: {body['step']} differs from the approved plan"


def _repeated(
    before: World, after: World, new: Sequence[Record], reached: Sequence[Reached] | None
) -> Iterator[str]:
    """An object that lives on is the same one, unless its deletion was approved; a request
    reached the broker no more often than it was intended."""
    deleted = {_name(r) for r in new if r.kind == "intent" and r.body["action"] == "delete"}
    for name in before.keys() & after.keys() - deleted:
        if before[name].incarnation != after[name].incarnation:
            yield f"NL3 {name} was recreated"
    if reached is None:
        return
    intended = Counter(
        (str(r.body["phase"]).partition(" ")[2], _name(r)) for r in new if r.kind == "intent"
    )
    came = Counter((item.request, item.name) for item in reached)
    for item, count in came.items():
        if count > intended[item]:
            yield f"NL3 {item} reached the broker {count} times, intended {intended[item]} times"
    for (request, name), _ in came.items():
        yield from _too_early([r for r in reached if (r.request, r.name) == (request, name)])


def _too_early(items: Sequence[Reached]) -> Iterator[str]:
    for number, item in enumerate(items, start=1):
        if item.intents is not None and item.intents < number:
            yield f"NL1 {item.request} of {item.name} reached the broker before its intent"
