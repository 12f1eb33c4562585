"""The writing end of the log: when a write returns, its records are durable.

The bodies of records are made here, by one function for each kind (docs/formats/audit.md). Readers
rely on these shapes. Sensitive paths carry no values, and secrets are references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..core import canonical
from ..core.change import Outcome, PathChange, Verdict
from ..core.clock import Clock
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.resource import Fault, Identity
from ..core.secret import mask_secrets
from ..core.value import FrozenMap, Value, freeze
from .records import (
    UNUSABLE,
    Record,
    RecordKind,
    Unseen,
    decode,
    parse_line_head,
    render_time,
    seal_line,
)
from .sink import Sink, Torn

Checkpointer = Callable[[Head], FrozenMap | None]
"""The end of the log -> the body of the record that names what the records up to it say together,
which is stored then; None if there is nothing to name."""


class Subject(Struct, frozen=True):
    """One attempt of one step, with what it belongs to."""

    lineage: str
    """The state that the log belongs to."""
    scope_id: str
    """The system that gets the request."""
    step: str
    """The id of the step in its plan."""
    address: str
    """What the user calls the object."""
    identity: Identity
    """Which object."""
    action: str
    """The action of the change."""
    adopts: bool
    """The change takes over a live object."""
    incarnation: str | None
    """The system's id of the object; in an outcome that of the object that was made."""
    paths: Sequence[PathChange]
    """The paths that the step makes true."""
    plan: str
    """The digest of the configuration that the plan came from."""
    approval: str
    """The digest that was approved."""
    phase: str
    """The place of the step in the run, as text."""
    attempt: int = 1
    """Counts from 1."""
    owners: Sequence[str] = ()
    """Addresses that own the object after the change; none if nobody does."""


# ── the frame of a run ──────────────────────────────────────────────────────────────────


def make_run_begin_body(
    approval: str,
    changes: Iterable[str],
    scopes: Mapping[str, str],
    *,
    command: str,
    host: str,
    commit: str | None = None,
    pull_request: str | None = None,
    undoes: str | None = None,
    kafkaform_version: str = "",
) -> FrozenMap:
    """A run begins. changes: digests of the approved changes; scopes: instance -> scope id; commit:
    the git commit of the configuration, if it is known; pull_request: the one that it came with, if
    the pipeline says so; undoes: the run that an `undo` undoes."""
    origin = {"pull_request": pull_request, "undoes": undoes}
    return _make_body(
        approval=approval,
        changes=sorted(changes),
        scopes=scopes,
        command=command,
        host=host,
        commit=commit,
        kafkaform_version=kafkaform_version,
        **{name: text for name, text in origin.items() if text},
    )


def make_plan_body(plan: canonical.Rendered, approval: str, configuration: str) -> FrozenMap:
    """The plan of the run. It is recorded as a whole, so that a later run can resume it."""
    return FrozenMap(
        plan=plan, digest=canonical.digest(plan), approval=approval, configuration=configuration
    )


def make_approval_body(approval: str, method: str, configuration: str) -> FrozenMap:
    """The plan was approved. method: `terminal`, `auto_approve`, `plan_file`, `expect`, ..."""
    return _make_body(approval=approval, how=method, configuration=configuration)


def make_validate_body(approval: str, verdicts: Iterable[Verdict]) -> FrozenMap:
    """The dry run ended: every step with its evidence, and why it was refused."""
    # Not `_make_body`: to freeze thousands of these takes five times as long as to make them.
    steps = [
        FrozenMap(step=v.step, evidence=v.evidence.value, error=_make_error(v.fault))
        for v in verdicts
    ]
    return FrozenMap(approval=approval, steps=tuple(steps))


def make_verify_body(
    approval: str,
    checked: int,
    invisible: Iterable[Unseen],
    reported: Iterable[tuple[str, str]] = (),
) -> FrozenMap:
    """The last look. checked: how many objects; invisible: what some node did not show as it was
    applied; reported: (address, path) of values that are reported although nothing sets them."""
    late = [_render_unseen(item) for item in invisible]
    unset = [{"address": address, "path": path} for address, path in reported]
    unset_members = {"reported": unset} if unset else {}
    return _make_body(approval=approval, checked=checked, invisible=late, **unset_members)


def _render_unseen(item: Unseen) -> dict[str, Any]:
    data: dict[str, Any] = {"address": item.address, "node": item.node}
    if (deleted := item.deleted) is not None:
        data["deleted"] = {
            "instance": deleted.instance,
            "kind": deleted.kind,
            "key": deleted.key,
            "incarnation": item.incarnation,
        }
    return data


def make_state_edit_body(
    serial: int,
    version: str,
    reason: str,
    rows: Mapping[Identity, FrozenMap | None],
    instance: str | None = None,
    scopes: Mapping[str, str] | None = None,
) -> FrozenMap:
    """The state is edited outside of any step.

    serial: that of the new state; version: that of the edited one; reason: the command; rows: each
    touched object as the new state has it, None if it is gone from it; instance: a provider
    instance that is forgotten as a whole, with the system that it was; scopes: provider instance ->
    the id of its system, which has another one there: a whole one instead of a half, or that of
    the same system at another address.
    """
    # With whole rows, a state that was restored from a backup can be brought up to date.
    touched = [
        {"instance": i.instance, "kind": i.kind, "key": i.key, "row": rows[i]} for i in sorted(rows)
    ]
    provider_members: dict[str, Value] = {}
    if instance is not None:
        provider_members["instance"] = instance
    if scopes:
        provider_members["scopes"] = FrozenMap(scopes)
    return _make_body(
        serial=serial, version=version, reason=reason, objects=touched, **provider_members
    )


def make_run_end_body(approval: str, *, complete: bool, counts: Mapping[str, int]) -> FrozenMap:
    """A run ends. complete: every step was applied or started; counts: outcome -> steps."""
    return _make_body(approval=approval, complete=complete, counts=counts)


def make_checkpoint_body(covers: Head, sha256: str, length: int) -> FrozenMap:
    """What the records up to a head say together is stored (`checkpoint`). sha256, length: of its
    content."""
    return _make_body(covers={"seq": covers.seq, "hash": covers.hash}, sha256=sha256, length=length)


# ── steps ───────────────────────────────────────────────────────────────────────────────


def make_intent_body(
    subject: Subject,
    repeat: str,
    secret_version: str | None = None,
    target: FrozenMap | None = None,
    foreign_paths: Iterable[tuple[str, ...]] = (),
) -> FrozenMap:
    """A request is about to be sent, with all that recovery needs to judge what came of it.

    repeat: the step's repeat class; target: the attributes that the change leads to, None if it
    leads to none; foreign_paths: those of them that are kept for others.
    """
    public_target = None if target is None else _hide_sensitive(target, subject.paths)
    kept_paths = tuple(".".join(path) for path in foreign_paths)
    return _make_step(subject).with_items(
        {
            "repeat": repeat,
            "secret_version": secret_version,
            "target": public_target,
            **({"theirs": kept_paths} if kept_paths else {}),
        }
    )


def make_outcome_body(
    subject: Subject,
    outcome: str,
    fault: Fault | None = None,
    duration_ms: int = 0,
    ticket: str | None = None,
) -> FrozenMap:
    """One attempt of one step ended.

    outcome: applied, failed, unknown, started or skipped; ticket: that of long work that started.
    """
    return _make_step(subject).with_items(
        {
            "outcome": outcome,
            "error": _make_error(fault),
            "ticket": ticket,
            "duration_ms": duration_ms,
        }
    )


def make_abandoned_body(intent: Record, fault: Fault) -> FrozenMap:
    """The end of a step whose system will never be asked again. fault: why."""
    only_intents = ("repeat", "secret_version", "target", "theirs")
    ended = {"outcome": "failed", "error": _make_error(fault), "ticket": None, "duration_ms": 0}
    return intent.body.without(only_intents).with_items(ended)


def make_recover_body(outcome: FrozenMap, of_run: str) -> FrozenMap:
    """The late outcome of an intent that an earlier run left open. outcome: an outcome body."""
    return outcome.with_items({"of_run": of_run})


def make_torn_body(pieces: Iterable[Torn]) -> FrozenMap:
    """A crash left parts of an append. pieces: where their bytes are now, and their digests."""
    return _make_body(
        torn=[{"file": p.file, "length": p.length, "sha256": p.sha256} for p in pieces]
    )


def make_fork_body(torn: Torn, records: int) -> FrozenMap:
    """Two runs wrote to the log at the same time; what one of them wrote follows, sealed anew.

    torn: where the log as it was is kept; records: how many follow.
    """
    fork = {"file": torn.file, "length": torn.length, "sha256": torn.sha256}
    return _make_body(fork=fork, records=records)


def make_obligation_body(subject: Subject, ticket: str, duty: str) -> FrozenMap:
    """Work outlives the run. ticket: the provider's name for it; duty: TASK or SETTING."""
    return _make_object(subject).with_items({"ticket": ticket, "what": duty})


def make_discharge_body(obligation: Record, outcome: Outcome) -> FrozenMap:
    """An obligation ended: it was done, cancelled, or it failed."""
    ended = {
        "discharges": obligation.seq,
        "outcome": outcome.status.value,
        "error": _make_error(outcome.fault),
    }
    return obligation.body.with_items(ended)


def _make_object(subject: Subject) -> FrozenMap:
    return FrozenMap(
        lineage=subject.lineage,
        instance=subject.identity.instance,
        scope_id=subject.scope_id,
        address=subject.address,
        kind=subject.identity.kind,
        key=subject.identity.key,
    )


def _make_step(subject: Subject) -> FrozenMap:
    return _make_object(subject).with_items(
        {
            "step": subject.step,
            "action": subject.action,
            "adopts": subject.adopts,
            "incarnation": subject.incarnation,
            "paths": tuple(_make_path(item) for item in subject.paths),
            "plan": subject.plan,
            "approval": subject.approval,
            "phase": subject.phase,
            "attempt": subject.attempt,
            "owners": tuple(subject.owners),
        }
    )


def _make_path(item: PathChange) -> FrozenMap:
    # The name of an attribute contains no dot, so the first one ends it, and the path can be split.
    return FrozenMap(
        path=".".join(item.path),
        before=None if item.sensitive else item.before,
        after=None if item.sensitive else item.after,
        sensitive=item.sensitive,
    )


def _hide_sensitive(attributes: FrozenMap, paths: Iterable[PathChange]) -> FrozenMap:
    """The attributes without the values of sensitive paths."""
    result: dict[str, Any] = dict(attributes)
    for name, *keys in (item.path for item in paths if item.sensitive):
        inner = result.get(name)
        result[name] = inner.without(keys) if keys and isinstance(inner, FrozenMap) else None
    return FrozenMap(result)


def _make_error(fault: Fault | None) -> FrozenMap | None:
    if fault is None:
        return None
    # A server may repeat what it was sent, secrets included. The log keeps the message for ever,
    # and its hash covers it, so it is cleaned here. Refusing the record instead is not possible
    # after a send: the intent would stay without its outcome.
    return FrozenMap(
        code=fault.code,
        message=mask_secrets(fault.message),
        kind=fault.kind.value,
        where=fault.where,
    )


def _make_body(**members: Any) -> FrozenMap:
    return FrozenMap({name: freeze(value) for name, value in members.items()})


class Journal:
    """Appends one run's records to the log of one state, under that state's lock."""

    def __init__(
        self,
        sink: Sink,
        clock: Clock,
        run: str,
        actor: str,
        lineage: str,
        ensure: Callable[[float], None] = lambda seconds: None,
        checkpoint: Checkpointer | None = None,
    ) -> None:
        """Read the end of the log; nothing is written yet.

        run: the id of this run; actor: who runs it; ensure: raises Locked unless the lock is
        certain to be ours for so many seconds, and is asked before each write; checkpoint: stores
        what the log says so far, and is called before the first append. Raises StorageError if the
        log ends with a changed record or belongs to another state.
        """
        self.sink, self._clock, self._ensure = sink, clock, ensure
        self.run, self.actor, self.lineage = run, actor, lineage
        self._checkpoint = checkpoint
        self._head = self._claim_end()
        self._checked = False

    @property
    def head(self) -> Head:
        """The last durable record."""
        return self._head

    def write(self, kind: str, body: FrozenMap) -> Record:
        """Append one record. Raises StorageError, after which nothing must be sent any more."""
        return self.write_all([(kind, body)])[0]

    def write_all(self, entries: Iterable[tuple[str, FrozenMap]]) -> tuple[Record, ...]:
        """Append records that become durable together. Raises StorageError."""
        self.mend()
        opening, self._checkpoint = self._checkpoint, None
        if opening is None:
            return self._append(entries)
        self._ensure(0.0)
        body = opening(self._head)
        first = [] if body is None else [(RecordKind.CHECKPOINT, body)]
        return self._append([*first, *entries])[len(first) :]

    def _append(self, entries: Iterable[tuple[str, FrozenMap]]) -> tuple[Record, ...]:
        head, records, lines = self._head, [], []
        moment = render_time(self._clock.now())
        for kind, body in entries:
            owned = body.with_items({"lineage": self.lineage})
            record, line = seal_line(
                head, time=moment, run=self.run, actor=self.actor, kind=str(kind), body=owned
            )
            records.append(record)
            lines.append(line)
            head = Head(record.seq, record.hash)
        if records:
            # Whoever lost the lock must not write: the next run has read the log by now.
            self._ensure(0.0)
            self.sink.append(lines)
            self._head = head
        return tuple(records)

    def mend(self) -> None:
        """Keep aside what a crash left of an append, and record that. Raises StorageError."""
        # Before the first record, and not when the log is opened: a run that is refused before it
        # sends anything leaves the log as it found it.
        if self._checked:
            return
        self._ensure(0.0)
        torn = self.sink.set_aside(self._head.seq + 1)
        if torn:
            # Alone: if this append is cut short as well, the next run finds what was moved by the
            # number of the record that was to mention it.
            self._append([(RecordKind.RECOVER, make_torn_body(torn))])
        self._checked = True

    def _claim_end(self) -> Head:
        line = self.sink.claim()
        if line is None:
            return GENESIS
        head = parse_line_head(line, self.sink.location)
        try:
            lineage = decode(line).body.get("lineage")
        except ValueError as error:
            problem = f"{self.sink.location}: the last record cannot be used: {error}"
            raise StorageError(problem, UNUSABLE) from None
        if lineage != self.lineage:
            # A log beside another state would prove ownership of that one's objects.
            raise StorageError(
                f"{self.sink.location} belongs to another state: its lineage is {lineage}, "
                f"this state's is {self.lineage}",
                "State and log are a pair. Restore both from the same backup, and check the next "
                "plan before you apply it: what was let go since then is managed again.",
            )
        return head
