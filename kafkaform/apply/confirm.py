"""Confirm what a run has applied: verify it, repair what stayed without effect, record the rest.

A system can accept the removal of a value and keep it all the same. If the value would be in effect
anyway, nothing differs: the row says that the value is only reported. Any other is set as it is and
removed again, each with an intent of its own, because some systems compare a removal with another
copy than the one that they show. What stays after that is a step that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby

from msgspec.structs import replace

from ..audit.journal import make_verify_body
from ..audit.records import RecordKind, Unseen
from ..core.change import Action, Change, Outcome, OutcomeStatus, Path, PathChange, Step
from ..core.errors import Interrupted, Locked, OtherSystem
from ..core.progress import Message
from ..core.resource import Fault, FaultClass, Identity
from ..core.value import FrozenMap
from ..plan.diff import flatten, keep_set_values, lay_over, render_path
from ..plan.lower import lower_plan
from ..state.model import Row, put_rows
from .execution import ApplyRun, Execution, send_requests
from .ledger import make_bookkeeping_step
from .recovery import REMOVING, SETTING_AGAIN, cut_repair
from .report import GOOD, Report, Result
from .verify import Invisible, Sight, Values, Verified, verify_applied

NO_EFFECT = "NO_EFFECT"
"""The code of a removal that was accepted and changed nothing."""


def confirm_report(run: ApplyRun, report: Report, unseen: Sequence[Unseen] = ()) -> Report:
    """The report, with what some live node does not show as it was applied. unseen: what the last
    verification did not see, which is looked for again. Raises StorageError."""
    # An object with a step that failed cannot be as planned, so it is not waited for.
    ended = {r.change.identity: OutcomeStatus.APPLIED for r in report.results}
    for result in report.results:
        if result.outcome.status is not OutcomeStatus.APPLIED:
            ended[result.change.identity] = result.outcome.status
    whole = [c for c in run.plan.effective if ended.get(c.identity) is OutcomeStatus.APPLIED]
    recalled = _recall_changes(run, {item.address for item in unseen if item.deleted is None})
    deletions = _recall_deletions(run, unseen)
    whole += (*recalled, *deletions)
    if not whole or report.stopped is not None:
        return report
    incarnations = {
        result.change.identity: result.outcome.incarnation
        for result in report.results
        if result.outcome.incarnation is not None
    }
    failed: tuple[Result, ...] = ()
    try:
        verified = _verify(run, whole, incarnations)
        if verified.kept_values:
            verified, failed = _repair(
                run, [c for c in whole if c.identity in verified.kept_values], verified
            )
        verified = _drop_recreated(run, deletions, verified)
    except (Interrupted, Locked, OtherSystem) as error:
        # What is applied stays applied, so the report goes on and names what stopped the look at
        # it.
        return replace(report, stopped=error)
    _record_verified(run, whole, verified, _list_unasked(run, unseen))
    return replace(
        report,
        results=_merge_results(report.results, (*failed, *_list_ineffective(run, whole, verified))),
        invisible=tuple(item for item in verified.invisible if item.sight is not Sight.KEPT),
    )


def _verify(
    run: ApplyRun, changes: Sequence[Change], incarnations: Mapping[Identity, str]
) -> Verified:
    return verify_applied(
        changes, incarnations, run.sessions, run.types, run.clock, run.stop, run.report
    )


# ── what an earlier run did not see ─────────────────────────────────────────────────────


def _recall_changes(run: ApplyRun, addresses: Set[str]) -> list[Change]:
    """For each object of these addresses that the plan leaves alone, the change that made it as it
    is recorded."""
    touched = {change.identity for change in run.plan.effective}
    rows = run.ledger.state.objects if addresses else {}
    return [
        _recall_change(row, row.owners[0])
        for identity, row in sorted(rows.items())
        if identity.instance in run.sessions
        and identity not in touched
        and not addresses.isdisjoint(row.owners)
    ]


def _recall_change(row: Row, address: str) -> Change:
    change = Change(
        row.identity,
        address,
        Action.UPDATE,
        before=row.attributes,
        after=row.attributes,
        incarnation=row.incarnation,
    )
    step = replace(make_bookkeeping_step(change), paths=tuple(flatten(row.attributes)))
    return replace(change, steps=(step,))


def _recall_deletions(run: ApplyRun, unseen: Sequence[Unseen]) -> list[Change]:
    """The deletion of each of these objects that is not managed and not changed since."""
    managed = {change.identity for change in run.plan.effective} | run.ledger.state.objects.keys()
    changes = {
        item.deleted: Change(
            item.deleted, item.address, Action.DELETE, incarnation=item.incarnation
        )
        for item in unseen
        if item.deleted is not None
        and item.deleted.instance in run.sessions
        and item.deleted.kind in run.types
        and item.deleted not in managed
    }
    return [replace(c, steps=(make_bookkeeping_step(c),)) for c in changes.values()]


def _drop_recreated(run: ApplyRun, deletions: Sequence[Change], verified: Verified) -> Verified:
    """Leave out the deleted objects without an id that every live node shows: they cannot be told
    from objects that somebody has created since."""
    for change in deletions:
        items = [i for i in verified.invisible if i.deleted == change.identity]
        nodes = {item.node for item in items if item.sight is Sight.LATE}
        if change.incarnation is not None or not items:
            continue
        if not nodes.issuperset(run.sessions[change.identity.instance].live_nodes()):
            continue
        run.report(
            Message(
                f"{change.address}: an earlier run deleted it, and every live {items[0].noun} "
                "shows it: somebody has created it again, or its deletion had no effect"
            )
        )
        invisible = tuple(item for item in verified.invisible if item not in items)
        verified = replace(verified, invisible=invisible)
    return verified


def _list_unasked(run: ApplyRun, unseen: Sequence[Unseen]) -> list[Unseen]:
    """Those that could not be looked for, because the run has no session of their system."""
    closed = {
        owner
        for identity, row in (run.ledger.state.objects.items() if unseen else ())
        if identity.instance not in run.sessions
        for owner in row.owners
    }
    return [
        item
        for item in unseen
        if (
            item.address in closed
            if item.deleted is None
            else item.deleted.instance not in run.sessions
        )
    ]


# ── the repair of removals without effect ───────────────────────────────────────────────


def _repair(
    run: ApplyRun, changes: Sequence[Change], before: Verified
) -> tuple[Verified, tuple[Result, ...]]:
    """Set what was to be removed as it is, remove it again, and look once more. What was verified
    then, and the repairs that were not applied."""
    repairs = [
        pair for c in changes if (pair := _make_repair(run, c, before.kept_values[c.identity]))
    ]
    if not repairs:
        return before, ()
    objects = "1 object" if len(repairs) == 1 else f"{len(repairs):,} objects"
    run.report(
        Message(
            f"The removal of values stayed without effect on {objects}: setting them as they are, "
            "and removing them again"
        )
    )
    failed: list[Result] = []
    set_again = _send(run, [first for first, _ in repairs])
    failed += (result for result in set_again if result.outcome.status not in GOOD)
    failed_identities = {result.change.identity for result in failed}
    removed = _send(run, [last for _, last in repairs if last.identity not in failed_identities])
    failed += (result for result in removed if result.outcome.status not in GOOD)
    failed_identities |= {result.change.identity for result in failed}
    mended = [change for change, _ in repairs if change.identity not in failed_identities]
    repaired = {change.identity for change in mended}
    after = _verify(run, [c for c in changes if c.identity in repaired], {})
    addresses = {change.address for change in mended}
    still_kept = {i: values for i, values in before.kept_values.items() if i not in repaired}
    invisible = (
        item
        for item in before.invisible
        if item.sight is not Sight.KEPT or item.address not in addresses
    )
    return (
        Verified(
            (*invisible, *after.invisible),
            {**still_kept, **after.kept_values},
            {**before.reported, **after.reported},
        ),
        tuple(failed),
    )


def _make_repair(run: ApplyRun, change: Change, values: Values) -> tuple[Change, Change] | None:
    """The change that sets these values as they are, and the one that removes them again. None if
    the object has no such requests."""
    repair = run.types[change.identity.kind].repair
    step = next((step for step in change.steps if values.keys() <= {*step.paths}), None)
    payloads = repair(step, values) if repair is not None and step is not None else None
    if payloads is None or step is None:
        return None
    setting, removing = payloads
    return (
        _derive_change(
            change, step, SETTING_AGAIN, setting, {p: (v, v) for p, v in values.items()}
        ),
        _derive_change(change, step, REMOVING, removing, {p: (v, None) for p, v in values.items()}),
    )


def _derive_change(
    change: Change,
    step: Step,
    suffix: str,
    payload: FrozenMap,
    sides: Mapping[Path, tuple[object, object]],
) -> Change:
    """The change with one request of the repair. sides: path -> its values before and after."""
    changes_by_path = {item.path: item for item in change.paths}
    paths = tuple(
        replace(changes_by_path.get(path, PathChange(path, None, None)), before=before, after=after)
        for path, (before, after) in sides.items()
    )
    only = replace(step, id=step.id + suffix, payload=payload, paths=tuple(sides), after=())
    return replace(change, paths=paths, steps=(only,))


def _send(run: ApplyRun, changes: Sequence[Change]) -> list[Result]:
    """Send the steps of these changes, each with its intent and outcome, and return how they
    ended."""
    pairs = {step.id: (change, step) for change in changes for step in change.steps}
    sending = Execution(run, pairs, dict.fromkeys(pairs, set()), {})
    for wave in lower_plan(replace(run.plan, changes=tuple(changes))):
        for name, batches in groupby(wave.batches, lambda batch: batch.request.name):
            send_requests(sending, f"repair {name}", tuple(batches))
    return list(sending.results.values())


# ── what is recorded ────────────────────────────────────────────────────────────────────


def _record_verified(
    run: ApplyRun, checked: Sequence[Change], verified: Verified, unasked: Sequence[Unseen]
) -> None:
    """Record what was verified, and what the rows have to say about values that stayed. unasked:
    what the next run has to look for, too."""
    addresses = {change.identity: change.address for change in checked}
    reported = [
        (addresses[identity], render_path(path))
        for identity, values in verified.reported.items()
        for path in values
    ]
    incarnations = {change.identity: change.incarnation for change in checked}
    unseen = [
        Unseen(item.address, item.node, item.deleted, incarnations.get(item.deleted))
        if item.deleted is not None
        else Unseen(item.address, item.node)
        for item in verified.invisible
        if item.counts
    ]
    unseen += unasked
    run.ledger.journal.write(
        RecordKind.VERIFY, make_verify_body(run.plan.approval, len(checked), unseen, reported)
    )
    state = run.ledger.state
    rows = [_note_values(row, verified) for row in _select_rows(state.objects, verified)]
    # The end of the run saves the state anyway.
    if rows:
        run.ledger.save_state(put_rows(state, rows))


def _select_rows(rows: Mapping[Identity, Row], verified: Verified) -> Iterator[Row]:
    for identity in sorted(verified.kept_values.keys() | verified.reported.keys()):
        if identity in rows:
            yield rows[identity]


def _note_values(row: Row, verified: Verified) -> Row:
    """The row with the values that its object still has, and with those that are only reported."""
    kept_values = verified.kept_values.get(row.identity, {})
    reported = verified.reported.get(row.identity, {})
    attributes = row.attributes
    for path, value in kept_values.items():
        # A plan compares with the row. Without the value, it would call it a change by others.
        source = FrozenMap({path[0]: FrozenMap({path[1]: value})} if path[1:] else {path[0]: value})
        attributes = lay_over(attributes, (path,), source)
    return replace(
        row,
        attributes=keep_set_values(attributes),
        reported=row.reported.with_items({render_path(p): v for p, v in reported.items()}),
    )


# ── what failed ─────────────────────────────────────────────────────────────────────────


def _list_ineffective(
    run: ApplyRun, changes: Iterable[Change], verified: Verified
) -> Iterator[Result]:
    """A failed result for each step whose removals stayed without effect."""
    by_address: dict[str, list[Invisible]] = {}
    for item in verified.invisible:
        if item.sight is Sight.KEPT:
            by_address.setdefault(item.address, []).append(item)
    for change in changes:
        paths = verified.kept_values.get(change.identity)
        items = by_address.get(change.address)
        if not paths or not items:
            continue
        step = next((s for s in change.steps if paths.keys() & {*s.paths}), change.steps[0])
        tried = run.types[change.identity.kind].repair is not None
        outcome = Outcome(step.id, OutcomeStatus.FAILED, fault=_make_fault(items, tried=tried))
        yield Result(change, step, outcome)


def _make_fault(items: Sequence[Invisible], *, tried: bool) -> Fault:
    nodes, noun = [item.node for item in items], items[0].noun
    node_names = f"{noun}{'s' if len(nodes) > 1 else ''} {', '.join(nodes)}"
    attempt = ", also after it was set and removed again" if tried else ""
    return Fault(
        NO_EFFECT,
        f"the removal was accepted, but {node_names} still {'show' if len(nodes) > 1 else 'shows'} "
        f"the value{attempt}: {items[0].reason}",
        FaultClass.DEFINITE,
        where=node_names,
        advice=f"Look into the log of the {noun}. Until it lets the value go, declare the value "
        "that it has, or leave it out with lifecycle { ignore_changes }.",
    )


def _merge_results(results: Sequence[Result], failed: Iterable[Result]) -> tuple[Result, ...]:
    """The results, with the failed one in place of that of the same step."""
    worse: dict[str, Result] = {}
    for item in failed:
        worse.setdefault(cut_repair(item.step.id), item)
    return tuple(
        replace(worse[r.step.id], change=r.change, step=r.step)
        if r.step.id in worse and r.outcome.status in GOOD
        else r
        for r in results
    )
