"""The bodies of audit records, one function for each kind (docs/formats/audit.md).

Readers rely on these shapes, so each one is written down once, here. Sensitive paths carry no
values, and secrets are references.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..core import canonical
from ..core.change import Outcome, PathChange, Verdict
from ..core.redaction import mask_secrets
from ..core.resource import Fault, Identity
from ..core.value import FrozenMap, freeze
from .event import Record
from .sink import Torn


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
