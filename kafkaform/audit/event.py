"""Audit records, and the bodies that their readers rely on (architecture §6).

A record is one line of canonical JSON. Bodies are data: the functions here make each kind's,
so that its shape is written down once. Sensitive paths carry no values, secrets are references.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from ..core import canonical
from ..core.change import Outcome, PathChange, Verdict
from ..core.errors import StorageError
from ..core.redaction import mask_secrets
from ..core.resource import Fault, Identity
from ..core.value import FrozenMap, freeze
from .bodies import BadRecord, check_body, check_members
from .line import Line, read_line
from .sink import Torn


class RecordKind(StrEnum):
    RUN_BEGIN = "run_begin"
    PLAN = "plan"
    APPROVAL = "approval"
    VALIDATE = "validate"
    INTENT = "intent"
    OUTCOME = "outcome"
    VERIFY = "verify"
    STATE = "state"
    OBLIGATION = "obligation"
    DISCHARGED = "discharged"
    RECOVER = "recover"
    RUN_END = "run_end"


KINDS = tuple(kind.value for kind in RecordKind)
MEMBERS = frozenset({"seq", "time", "run", "actor", "kind", "body", "prev", "hash"})


class Record(Struct, frozen=True):
    """seq: from 1, without gaps; time: RFC 3339, UTC, microseconds; run: id of the run; actor:
    who; prev: hash of the record before; hash: SHA-256 over all other members."""

    seq: int
    time: str
    run: str
    actor: str
    kind: str
    body: FrozenMap
    prev: str
    hash: str

    @property
    def event_id(self) -> str:
        """The name that every later reader uses: lineage/seq."""
        return f"{self.body['lineage']}/{self.seq}"

    def read_whole(self) -> Record:
        return self


class Glance:
    """A record in passing: its line, taken apart when somebody asks, into plain JSON that must
    not be kept. A log has many records, and all but a few are looked at once."""

    __slots__ = ("_data", "hash", "kind", "line", "run", "seq", "where")

    def __init__(self, line: Line, seq: int, run: str, kind: str, hash: str, where: str) -> None:
        self.line, self.seq, self.run, self.kind, self.hash = line, seq, run, kind, hash
        self.where = where
        self._data: Mapping[str, Any] | None = None

    @property
    def body(self) -> Mapping[str, Any]:
        body: Mapping[str, Any] = self._parse_line()["body"]
        return body

    @property
    def time(self) -> str:
        return str(self._parse_line()["time"])

    def read_whole(self) -> Record:
        """The record itself. Raises StorageError for one that says what no record says."""
        try:
            record = decode(read_line(self.line))
            check_body(record.kind, record.body)
        except ValueError as error:
            raise _make_unusable_error(self, error) from None
        return record

    def check(self) -> None:
        """Raises StorageError for a record that says what no record says."""
        self._parse_line()
        self.forget()

    def forget(self) -> None:
        """Keep the line alone, which is a fraction of what was made of it."""
        self._data = None

    def _parse_line(self) -> Mapping[str, Any]:
        """Raises StorageError, as `whole` does."""
        if self._data is None:
            try:
                data = _JSON.decode(read_line(self.line).decode("ascii"))
                check_members(data)
                check_body(self.kind, data["body"])
            except (ValueError, RecursionError) as error:
                raise _make_unusable_error(self, error) from None
            self._data = data
        return self._data


def _refuse_constant(text: str) -> Any:
    raise BadRecord(f"{text} is not a JSON number")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def _make_unusable_error(glance: Glance, error: Exception) -> StorageError:
    problem = "nested too deeply" if isinstance(error, RecursionError) else error
    return StorageError(
        f"{glance.where}: record {glance.seq} ({glance.kind}) cannot be used: {problem}", UNUSABLE
    )


UNUSABLE = (
    "Its hashes fit, so it was edited and chained anew, or a newer version of kafkaform wrote it. "
    "Use that version, or put the log back from a backup together with its state. Nothing was sent."
)


class Subject(Struct, frozen=True):
    """One attempt of one step, and under what it is made.

    adopts: the change takes over an object that was there; incarnation: after an outcome the
    one that was made; paths: those that the step makes true; plan: digest that the plan is known
    by; phase: where in the run the step stands, as text; attempt: from 1; owners: addresses that
    own the object after the change, none if it is gone, let go or nobody's.
    """

    lineage: str
    scope_id: str
    step: str
    address: str
    identity: Identity
    action: str
    adopts: bool
    incarnation: str | None
    paths: Sequence[PathChange]
    plan: str
    approval: str
    phase: str
    attempt: int = 1
    owners: Sequence[str] = ()


def encode(record: Record) -> bytes:
    """The record as its line, without the newline."""
    return canonical.dumps({name: getattr(record, name) for name in MEMBERS}).encode("ascii")


def decode(line: bytes) -> Record:
    """The record of this line. Raises ValueError saying what is wrong; checks no hash."""
    data = canonical.loads(line)
    if not isinstance(data, FrozenMap) or data.keys() != MEMBERS:
        raise ValueError("it does not have the members of a record")
    check_members(data)
    if data["kind"] not in KINDS:
        raise BadRecord(f"its kind {data['kind']!r} is not known to this version")
    return Record(**data)


def render_time(moment: float) -> str:
    """RFC 3339 in UTC with microseconds, of seconds since the epoch."""
    utc = datetime.fromtimestamp(moment, UTC)
    return utc.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_time(time: str) -> float:
    """Seconds since the epoch, of what `render_time` wrote."""
    return datetime.fromisoformat(time).timestamp()


# ── the frame of a run ──────────────────────────────────────────────────────────────────


def make_run_begin(
    approval: str,
    changes: Iterable[str],
    scopes: Mapping[str, str],
    *,
    command: str,
    host: str,
    commit: str | None = None,
    kafkaform_version: str = "",
) -> FrozenMap:
    """changes: digests of the changes that are approved; commit: of the configuration."""
    return _make_body(
        approval=approval,
        changes=sorted(changes),
        scopes=scopes,
        command=command,
        host=host,
        commit=commit,
        kafkaform_version=kafkaform_version,
    )


def make_plan(plan: FrozenMap, approval: str, configuration: str) -> FrozenMap:
    """The whole approved plan as data, so that a later run can resume it."""
    return _make_body(
        plan=plan, digest=canonical.digest(plan), approval=approval, configuration=configuration
    )


def make_approval(approval: str, how: str, configuration: str) -> FrozenMap:
    """how: `terminal`, `auto_approve`, `plan_file` or `expect`."""
    return _make_body(approval=approval, how=how, configuration=configuration)


def make_validate(approval: str, verdicts: Iterable[Verdict]) -> FrozenMap:
    """The dry run: every step with its evidence, and why it was refused."""
    steps = [
        {"step": v.step, "evidence": v.evidence.value, "error": _make_error(v.fault)}
        for v in verdicts
    ]
    return _make_body(approval=approval, steps=steps)


def make_verify(approval: str, checked: int, invisible: Iterable[tuple[str, str]]) -> FrozenMap:
    """The last look. checked: objects; invisible: (address, node) not seen at the deadline."""
    late = [{"address": address, "node": node} for address, node in invisible]
    return _make_body(approval=approval, checked=checked, invisible=late)


def make_state_edit(
    serial: int, version: str, reason: str, rows: Mapping[Identity, FrozenMap | None]
) -> FrozenMap:
    """The state is edited outside of any step. serial: the one that it gets; version: of the
    state that was edited; reason: the command; rows: each object that was touched, as the state
    holds it from then on (None: no more), so that the edit can be done again from here."""
    touched = [
        {"instance": i.instance, "kind": i.kind, "key": i.key, "row": rows[i]} for i in sorted(rows)
    ]
    return _make_body(serial=serial, version=version, reason=reason, objects=touched)


def make_run_end(approval: str, *, complete: bool, counts: Mapping[str, int]) -> FrozenMap:
    """complete: every step was applied or started; counts: outcome -> steps."""
    return _make_body(approval=approval, complete=complete, counts=counts)


# ── steps ───────────────────────────────────────────────────────────────────────────────


def make_intent(
    subject: Subject,
    repeat: str,
    secret_version: str | None = None,
    target: FrozenMap | None = None,
    theirs: Iterable[tuple[str, ...]] = (),
) -> FrozenMap:
    """What is about to be sent, with all that recovery needs to judge what came of it.

    repeat: the step's repeat class; target: the attributes that the change makes (None: it makes
    none), kept without the values of sensitive paths; theirs: what of them is kept for others.
    """
    shown = None if target is None else _hide_sensitive(target, subject.paths)
    kept = tuple(".".join(path) for path in theirs)
    return _make_step(subject).with_items(
        {
            "repeat": repeat,
            "secret_version": secret_version,
            "target": shown,
            **({"theirs": kept} if kept else {}),
        }
    )


def make_outcome(
    subject: Subject,
    outcome: str,
    fault: Fault | None = None,
    duration_ms: int = 0,
    ticket: str | None = None,
) -> FrozenMap:
    """What came of one attempt of one step: the contract of every later reader.

    outcome: applied, failed, unknown, started or skipped; ticket: of long work that started.
    """
    return _make_step(subject).with_items(
        {
            "outcome": outcome,
            "error": _make_error(fault),
            "ticket": ticket,
            "duration_ms": duration_ms,
        }
    )


def make_recover(outcome: FrozenMap, of_run: str) -> FrozenMap:
    """The late outcome of an intent that an earlier run left open. outcome: its body."""
    return outcome.with_items({"of_run": of_run})


def make_torn(pieces: Iterable[Torn]) -> FrozenMap:
    """Seals what a crash left of an append: where its bytes are, and their digest."""
    return _make_body(
        torn=[{"file": p.file, "length": p.length, "sha256": p.sha256} for p in pieces]
    )


def make_fork(kept: Torn, records: int) -> FrozenMap:
    """Two runs had written to the log at the same time: what one of them wrote follows, sealed
    anew. kept: where the log as it was is kept; records: how many follow."""
    whole = {"file": kept.file, "length": kept.length, "sha256": kept.sha256}
    return _make_body(fork=whole, records=records)


def make_obligation(subject: Subject, ticket: str, what: str) -> FrozenMap:
    """Work that outlives the run. ticket: the provider's name for it; what: TASK or
    SETTING."""
    return _make_object(subject).with_items({"ticket": ticket, "what": what})


def make_discharge(obligation: Record, outcome: Outcome) -> FrozenMap:
    """An obligation ended: done, cancelled or failed."""
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
    # The dots are reversible: attribute names hold none, so the first one ends the attribute.
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
    """A fault as it is recorded. Its message is foreign: a server may repeat what it was sent. It
    is cleaned before the record is hashed, because a record that cannot be written after a send
    would leave an intent without its outcome."""
    if fault is None:
        return None
    return FrozenMap(
        code=fault.code,
        message=mask_secrets(fault.message),
        kind=fault.kind.value,
        where=fault.where,
    )


def _make_body(**members: Any) -> FrozenMap:
    return FrozenMap({name: freeze(value) for name, value in members.items()})
