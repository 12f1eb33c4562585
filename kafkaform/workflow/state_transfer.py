"""What the commands of `state` do with a state and its log: edit both, bind them to a system that
has moved (`state rebind`), and copy both from one place to another (`state pull`, `state push`).

A state without its log proves nothing and could not be recovered, so both go together. The log at
the target must be the beginning of the log that replaces it, so that no record there is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ..apply.recovery import replay_log
from ..apply.secrets import resolve_instance_secrets
from ..audit.checkpoint import make_checkpointer
from ..audit.index import PUSHED, LogIndex, get_run
from ..audit.journal import (
    Journal,
    make_abandoned_body,
    make_discharge_body,
    make_recover_body,
    make_state_edit_body,
)
from ..audit.records import (
    Line,
    Record,
    RecordKind,
    read_line,
    read_records,
    render_time,
    verify_log,
)
from ..audit.sink import read_manifest
from ..core.change import Outcome, OutcomeStatus
from ..core.clock import Clock, SystemClock
from ..core.diagnostics import suggest
from ..core.errors import OtherSystem, OutcomeUnknown, UsageError
from ..core.head import GENESIS, Head
from ..core.resource import Fault, FaultClass, Identity, Observed, Reading
from ..core.value import FrozenMap
from ..provider.contract import Session
from ..render.text import render_count
from ..state.codec import encode_row
from ..state.model import LockInfo, State, count_change, drop_instance, set_head, set_scope
from .stores import Store
from .workspace import (
    Workspace,
    find_actor,
    make_lock_info,
    make_run_id,
    open_instance,
    open_journal,
    read_log,
)

GONE = Fault(
    "FORGOTTEN",
    "its provider instance was forgotten, so its result cannot be found out",
    FaultClass.AMBIGUOUS,
)
AT_ONCE = 1 << 20
"""How many bytes of the log are written together."""


class Edited(Struct, frozen=True):
    """What an edit of a state has changed."""

    objects: int
    """How many rows changed or left the state."""
    steps: int = 0
    """How many steps that earlier runs had left open were closed."""
    work: int = 0
    """How many obligations were closed."""


def edit_state(
    store: Store,
    command: str,
    timeout: float,
    change: Callable[[State], State],
    instance: str | None = None,
    scopes: Mapping[str, str] | None = None,
) -> Edited:
    """Edit the state under the lock. The log records the edit before the state is saved.

    instance: a provider instance that is forgotten as a whole (`forget_instance`); scopes: the new
    ids of systems, which `change` sets. Raises UsageError, Locked, OutcomeUnknown, StorageError.
    """
    clock, run = SystemClock(), make_run_id()
    info = make_lock_info(run, command, render_time(clock.now()))
    with store.backend.lock(info, timeout, clock) as lease:
        store.backend.check_writable()
        loaded = store.backend.load()
        if loaded.state is None:
            raise UsageError("there is no state here", "Check the folder (-chdir) and --state.")
        index, version = read_log(store.sink, loaded.state), loaded.version
        refuse_before_recovery(index, (RecordKind.STATE,))
        before = loaded.state
        # An earlier edit is in the log and not in the state, because its run died in between.
        if index.unsaved:
            before = count_change(before, set_head(replay_log(index, before).state, index.head))
            version = store.backend.save(before, version)
        steps = [intent for intent in index.open_intents if intent.body["instance"] == instance]
        work = [intent for intent in index.obligations if intent.body["instance"] == instance]
        after = change(before)
        if instance is not None and after == before and not (steps or work):
            raise _make_unknown_error(instance, before)
        rows = compare_rows(before, after)
        serial = before.serial + 1
        edit = make_state_edit_body(serial, version or "", command, rows, instance, scopes)
        journal = open_journal(store.sink, clock, run, before, index, lease)
        # First the log, then the state: the other way round, a crash would leave a state that
        # nobody can prove. In one append, so that a crash leaves all of it or nothing.
        records = journal.write_all(
            [
                *((RecordKind.RECOVER, body) for body in _close_steps(steps)),
                *((RecordKind.DISCHARGED, body) for body in _end_work(work)),
                (RecordKind.STATE, edit),
            ]
        )
        anchored = set_head(after, Head(records[-1].seq, records[-1].hash))
        store.backend.save(count_change(before, anchored), version)
        return Edited(len(rows), len(steps), len(work))


def forget_instance(store: Store, instance: str, timeout: float) -> Edited:
    """Forget a provider instance whose system is gone for good: its objects, what earlier runs left
    open there, and which system it was. Nothing is sent, and the objects stay as they are.

    Raises UsageError for an instance of which nothing is known, and as `edit_state` does.
    """
    forget = partial(drop_instance, instance=instance)
    return edit_state(store, "state rm", timeout, forget, instance)


# ── the same system at another address ──────────────────────────────────────────────────


class Rebound(Struct, frozen=True):
    """A system that has another id in the state from now on."""

    before: str
    after: str
    objects: int
    """How many recorded objects it was recognized by."""


def rebind_instance(space: Workspace, instance: str, address: str, timeout: float) -> Rebound:
    """Bind a provider instance to the system that its block leads to, if that proves to be the one
    at a former address: every recorded object is at both, with equal values and ids. Nothing is
    written there.

    address: the former one, which still answers. Raises UsageError for an instance of which
    nothing is known, or which nothing can prove; OtherSystem if the systems differ; ConnectError,
    and as `edit_state` does.
    """
    state = space.backend.load().state
    if state is None:
        raise UsageError("there is no state here", "Check the folder (-chdir) and --state.")
    identities = sorted(identity for identity in state.objects if identity.instance == instance)
    recorded = state.providers.get(instance)
    if recorded is None or not identities:
        raise _make_unknown_error(instance, state)
    _refuse_open_work(read_log(space.sink, state), instance)
    with ExitStack() as stack:
        former = stack.enter_context(closing(_open_former(space, instance, address)))
        words = former.words
        if former.facts.scope_id != recorded:
            raise OtherSystem(
                f"{address} answers as {words.system} {former.facts.scope_id}, but this state "
                f"belongs to {words.system} {recorded}",
                "Name the address that the last apply used.",
            )
        session = stack.enter_context(closing(open_instance(space, instance)))
        scope = str(session.facts.scope_id)
        if scope == recorded:
            raise UsageError(
                f"the state belongs to {words.system} {recorded} already",
                f"Change {words.address} in the provider block first.",
            )
        differences = _compare_systems(former, session, identities)
        if differences:
            raise OtherSystem(
                f"{words.system} {scope} is not the one at {address}: of {len(identities):,} "
                f"recorded objects {len(differences):,} differ ({'; '.join(differences[:3])})",
                f"{words.check_address} Nothing was recorded.",
            )
        for side in (former, session):
            side.prove()

    def bind(before: State) -> State:
        if before.audit_head != state.audit_head or before.objects != state.objects:
            raise UsageError("the state has changed meanwhile", "Run the same command again.")
        return set_scope(before, instance, scope)

    store = Store(space.configuration.folder, space.backend, space.sink)
    edit_state(store, "state rebind", timeout, bind, scopes={instance: scope})
    return Rebound(recorded, scope, len(identities))


def _refuse_open_work(index: LogIndex, instance: str) -> None:
    """Raises OutcomeUnknown while nobody knows what a request to the system has become."""
    records = (*index.open_intents, *index.obligations)
    if any(record.body["instance"] == instance for record in records):
        raise OutcomeUnknown(
            f"an earlier run has left requests to {instance} without a known result",
            "Run `kafkaform apply` with the old address first: it finds out what became of them.",
        )


def _open_former(space: Workspace, instance: str, address: str) -> Session:
    """A session with the system at the former address."""
    provider, block = space.providers.get(instance), space.desired.providers.get(instance)
    config = provider.move_block(block.config, address) if provider and block else None
    if provider is None or block is None or config is None:
        raise UsageError(
            f"{instance} cannot be bound to another address: no such provider instance is "
            "configured, or its systems say who they are wherever they are",
            "A new system needs a new state (another folder).",
        )
    secrets = resolve_instance_secrets(block, space.configuration.find_secrets)
    return space.opener(provider, replace(block, config=config), secrets)


def _compare_systems(
    former: Session, session: Session, identities: Sequence[Identity]
) -> list[str]:
    """What differs of these objects between two systems."""
    before, after = former.read(identities), session.read(identities)
    return [
        text
        for identity in identities
        if (text := _compare_readings(identity, before[identity], after[identity]))
    ]


def _compare_readings(identity: Identity, before: Reading, after: Reading) -> str:
    """What differs, empty for nothing. Only what both systems show proves anything."""
    for reading, side in ((before, "old"), (after, "new")):
        if not isinstance(reading, Observed):
            return f"{identity.key} is not shown at the {side} address"
    assert isinstance(before, Observed)
    assert isinstance(after, Observed)
    old, new = ({**item.attributes, **item.details} for item in (before, after))
    names = sorted(name for name in {**old, **new} if old.get(name) != new.get(name))
    if before.incarnation != after.incarnation:
        names.append("id")
    return f"{', '.join(names)} of {identity.key}" if names else ""


def _close_steps(intents: Iterable[Record]) -> Iterator[FrozenMap]:
    for intent in intents:
        yield make_recover_body(make_abandoned_body(intent, GONE), get_run(intent))


def _end_work(obligations: Iterable[Record]) -> Iterator[FrozenMap]:
    for duty in obligations:
        end = Outcome(duty.body["ticket"], OutcomeStatus.FAILED, fault=GONE)
        yield make_discharge_body(duty, end)


def _make_unknown_error(instance: str, state: State) -> UsageError:
    counts = _count_objects(state.objects)
    instances = ", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))
    return UsageError(
        f"the state has nothing of a provider instance {instance!r}",
        suggest(instance, counts) or f"Objects are recorded for: {instances or 'no instance'}.",
    )


def _count_objects(objects: Iterable[Identity]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for identity in objects:
        counts[identity.instance] = counts.get(identity.instance, 0) + 1
    return counts


def pull_state(source: Store, target: Store, clock: Clock, timeout: float) -> State:
    """Copy state and log to a place that has neither, and return the state. Raises UsageError."""
    state = _load_state(source)
    with target.backend.lock(_make_lock_info("state pull", clock), timeout, clock):
        if target.backend.load().state is not None or target.sink.last() is not None:
            raise UsageError(
                f"{target.backend.location}: there is a state or a log already",
                "Name a file that does not exist yet.",
            )
        _copy_log(source, target, GENESIS, GENESIS)
        # Copied lines are in no segment, whatever was sealed where they come from.
        target.backend.save(replace(state, sealed=False), None)
    return state


def push_state(source: Store, target: Store, clock: Clock, timeout: float, *, force: bool) -> State:
    """Replace state and log of a place, and return the state as it is there now.

    force: also with an older state. Raises UsageError for another state, Locked, StorageError.
    """
    state, info = _load_state(source), _make_lock_info(PUSHED, clock)
    with target.backend.lock(info, timeout, clock) as lease:
        target.backend.check_writable()
        loaded = target.backend.load()
        _refuse_other(state, loaded.state, target, force=force)
        # The log first: a crash in between leaves a state that is older than its log, which can be
        # recovered from it. A state that is newer than its log could never be trusted.
        _copy_log(source, target, *_find_log_end(target, loaded.state))
        index = read_log(target.sink, state)
        checkpointer = make_checkpointer(target.sink, index, state.lineage)
        journal = Journal(
            target.sink, clock, info.run, find_actor(), state.lineage, lease.ensure, checkpointer
        )
        before = loaded.state or State(state.lineage)
        # A serial only grows, even if an older state is pushed: it must not name two states.
        later = replace(before, serial=max(before.serial, state.serial))
        body = make_state_edit_body(
            later.serial + 1, loaded.version or "", PUSHED, compare_rows(before, state)
        )
        record = journal.write(RecordKind.STATE, body)
        anchored = set_head(state, Head(record.seq, record.hash))
        pushed = replace(
            anchored,
            serial=later.serial + 1,
            sealed=target.sink.sealed is not None
            and bool(read_manifest(target.sink.sealed).segments),
        )
        target.backend.save(pushed, loaded.version)
        return pushed


def _make_lock_info(command: str, clock: Clock) -> LockInfo:
    return make_lock_info(make_run_id(), command, render_time(clock.now()))


def _load_state(source: Store) -> State:
    """Load the state of a place whose log is sound and has no records that the state lacks."""
    state = source.backend.load().state
    if state is None:
        raise UsageError(f"{source.backend.location}: there is no state", "Check the place.")
    refuse_before_recovery(read_log(source.sink, state))
    return state


def _refuse_other(new: State, old: State | None, target: Store, *, force: bool) -> None:
    """Raises UsageError unless `new` is a later version of `old`, or `force` is given."""
    if old is None:
        return
    index = read_log(target.sink, old)
    cut_off = all(is_push(record) for record in index.unsaved)
    refuse_before_recovery(index, (RecordKind.STATE,) if cut_off else ())
    if new.lineage != old.lineage:
        raise UsageError(
            f"{target.backend.location} has another state: its lineage is {old.lineage}, the "
            f"new one's is {new.lineage}",
            "Push it to another place.",
        )
    if new.serial < old.serial and not force:
        raise UsageError(
            f"{target.backend.location} has serial {old.serial}, the new state is older: serial "
            f"{new.serial}",
            "If you mean the older one, such as a backup, push with --force. Objects that it does "
            "not have are no longer managed; nothing live is deleted.",
        )


# ── the log ─────────────────────────────────────────────────────────────────────────────


def _find_log_end(target: Store, saved: State | None) -> tuple[Head, Head]:
    """The end of the target's log: without the records of pushes that crashed before they saved
    their state, and with them."""
    last_seq = saved.audit_head.seq if saved and saved.audit_head else 0
    end = whole = GENESIS
    target.sink.claim()
    for record in read_records(target.sink.lines(), target.sink.location):
        whole = Head(record.seq, record.hash)
        if not (is_push(record) and record.seq > last_seq):
            end = whole
    return end, whole


def is_push(record: Record) -> bool:
    """Whether the record says that a pushed state replaced the one of this log."""
    return record.kind == RecordKind.STATE and record.body.get("reason") == PUSHED


def _copy_log(source: Store, target: Store, end: Head, whole: Head) -> None:
    """Append the records that the log of `target` lacks. Raises UsageError if it is not the
    beginning of the source's log, apart from pushes that crashed."""
    result = verify_log(source.sink.lines(), end if end.seq else None)
    if not result.ok or (end != whole and result.head != end):
        position = (
            f"record {result.seq}: {result.problem}" if not result.ok else f"record {whole.seq}"
        )
        raise UsageError(
            f"the log at {target.sink.location} differs from {source.sink.location}: {position}",
            "Something was applied there in the meantime. `kafkaform state pull` copies what is "
            "there now.",
        )
    target.sink.set_aside(whole.seq + 1)
    for lines in _split_lines(source.sink.lines(end.seq)):
        target.sink.append(lines)


def _split_lines(lines: Iterable[Line]) -> Iterator[list[bytes]]:
    """The lines in portions."""
    portion: list[bytes] = []
    size = 0
    for line in lines:
        whole = read_line(line)
        if portion and size + len(whole) > AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append(whole)
        size += len(whole)
    if portion:
        yield portion


# ── edits of a state ────────────────────────────────────────────────────────────────────


def refuse_before_recovery(index: LogIndex, but: Collection[str] = ()) -> None:
    """Raises OutcomeUnknown if the log has records that the state lacks.

    but: kinds of records that the caller handles.
    """
    # An edit anchors the state at the end of the log, so recovery would never look at them again.
    late = [record for record in index.unsaved if record.kind not in but]
    edits = [record for record in late if record.kind == RecordKind.STATE]
    if edits:
        reasons = ", ".join(sorted({f"`{record.body.get('reason')}`" for record in edits}))
        raise OutcomeUnknown(
            "the state is older than its audit log, which has "
            f"{render_count(len(edits), 'edit')} of it "
            f"({reasons}) that the state lacks",
            "Run `kafkaform apply` with that state first: it repeats them. Objects that an edit "
            "has forgotten stay forgotten; to manage them again, adopt them.",
        )
    if late:
        raise OutcomeUnknown(
            f"{render_count(len(late), 'outcome')} of an earlier run: in the audit log, but "
            "not in the state yet",
            "Run `kafkaform apply` first: it takes them over.",
        )


def compare_rows(before: State, after: State) -> dict[Identity, FrozenMap | None]:
    """The objects whose rows differ, each with its row in `after`, None if it has none."""
    differences = {}
    for identity in before.objects.keys() | after.objects.keys():
        row = after.objects.get(identity)
        if before.objects.get(identity) != row:
            differences[identity] = encode_row(row) if row is not None else None
    return differences
