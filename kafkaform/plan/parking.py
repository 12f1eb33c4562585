"""Deletion in two steps: an object whose block says `lifecycle { park = "7d" }` loses the access to
it first, and is deleted by the first apply after that time.

What takes access away are objects of the same system, its closures (`ResourceType.closures`). They
belong to the address of the parked object and are planned, sent, recorded and verified like any
other object. If a block declares the object again, nothing wants the closures any more, so the same
plan removes them.

Since when an object is parked is in the log alone: the time at which the last of its closures was
made. It begins anew if somebody removes one of them. The run's clock decides when the time is over,
so a clock that goes back only delays the deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from ..core.address import CLOSURE, matches, parse_address, render_key
from ..core.change import Change
from ..core.finding import UNREAD, Finding, Level
from ..core.resource import Declared, Desired, Facts, Failed, Identity, Observed, Parking, Reading
from ..core.secret import mask_secrets
from ..core.text import render_with_exact
from ..provider.contract import ResourceType
from ..state.model import Row, State
from .model import Mode, Options
from .rules import PARKED, UNPARKABLE

FindTime = Callable[[Identity], str | None]
"""When an object was written last from here, RFC 3339; None if the log does not show it."""


def park_released(
    desired: Desired,
    state: State,
    types: Mapping[str, ResourceType],
    facts: Mapping[str, Facts],
    find_time: FindTime,
    now: float,
    mode: Mode,
) -> dict[Identity, Parking]:
    """The parking of each recorded object that nothing declares and whose block said `park`.

    facts: of the systems that were reached; find_time: from the whole log; now: seconds since the
    epoch.
    """
    candidates = [row for row in state.objects.values() if row.park is not None]
    if mode is Mode.REFRESH or not candidates:
        return {}
    standing = set[Identity]()
    if mode is not Mode.DESTROY:
        standing = {item.identity for item in desired.declared}
    released = [
        row
        for row in candidates
        if row.identity not in standing
        and row.identity.kind in types
        and row.identity.instance in facts
    ]
    parked = {}
    for row in released:
        kind, system = types[row.identity.kind], facts[row.identity.instance]
        parking = _park(row, kind, system, state, standing)
        parked[row.identity] = _add_times(parking, row, state, find_time, now)
    return parked


def _park(
    row: Row, kind: ResourceType, facts: Facts, state: State, standing: set[Identity]
) -> Parking:
    if kind.closures is None:
        return Parking(obstacle=f"objects of the type {kind.name} cannot be parked")
    remaining = [
        item.attributes
        for identity, item in state.objects.items()
        if identity.kind == kind.name and identity in standing
    ]
    try:
        closures = kind.closures(row.attributes, facts, remaining)
    except ValueError as error:
        return Parking(obstacle=str(error))
    address = parse_address(row.owners[0])
    return Parking(
        tuple(
            Declared(
                replace(row.identity, kind=closure.kind, key=closure.key),
                replace(address, child=f"{CLOSURE}{render_key(closure.name)}"),
                closure.attributes,
                None,
                owner=row.owner,
                labels=row.labels,
            )
            for closure in closures
        )
    )


def _add_times(
    parking: Parking, row: Row, state: State, find_time: FindTime, now: float
) -> Parking:
    """The parking, with its begin and end if all closures are recorded as its own."""
    times = [
        find_time(item.identity) if _is_recorded(item, state) else None for item in parking.closures
    ]
    if not times or None in times:
        return parking
    # The object is closed when its last closure is, so its time counts from then.
    since = max(datetime.fromisoformat(time) for time in times if time)
    until = since + timedelta(milliseconds=row.park or 0)
    return replace(
        parking,
        since=_render_time(since),
        until=_render_time(until),
        due=datetime.fromtimestamp(now, UTC) >= until,
    )


def _is_recorded(item: Declared, state: State) -> bool:
    row = state.objects.get(item.identity)
    return row is not None and str(item.address) in row.owners


def _render_time(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def settle_parking(
    parking: Parking,
    readings: Mapping[Identity, Reading],
    types: Mapping[str, ResourceType],
    address: str,
    options: Options,
) -> Parking:
    """The parking as the live closures and the options leave it.

    readings: of its system; an object that is not among them is as it was. address: of the parked
    object.
    """
    for name in options.accept:
        rule, equals, glob = name.partition("=")
        if rule == PARKED.id and (not equals or matches(glob, address)):
            return replace(parking, due=True, accepted=True)
    live = [readings.get(item.identity) for item in parking.closures]
    for reading in live:
        if isinstance(reading, Failed):
            codes = types[reading.identity.kind].switched_off
            if reading.fault.code in codes:
                return replace(parking, obstacle=mask_secrets(reading.fault.message))
    if all(reading is None or isinstance(reading, Observed) for reading in live):
        return parking
    # Somebody has given the access back, so nobody knows who uses the object again.
    return replace(parking, since="", until="", due=False)


def find_parked(parking: Parking | None, park: int | None, address: str) -> Iterator[Finding]:
    """What keeps an object from being deleted, or is worth knowing about its deletion. park: its
    time in milliseconds; address: what the user calls it."""
    if parking is None:
        return
    advice = (
        f"To keep it, declare it again. To delete it at once, use --accept {PARKED.id}='{address}'."
    )
    since, until = _shorten(parking.since), _shorten(parking.until)
    if parking.accepted:
        text = f"it is parked since {since}, and deleted before its time is over"
        text = text if since else "it is deleted without being parked first"
        yield replace(PARKED.find(text, fix=advice, level=Level.DANGER), accepted=True)
    elif parking.due:
        yield PARKED.find(f"it has been parked since {since}", fix=advice, level=Level.NOTE)
    elif parking.obstacle:
        yield UNPARKABLE.find(f"it cannot be parked: {parking.obstacle}", fix=advice, asked=True)
    elif since:
        yield PARKED.find(
            f"it is parked since {since}: the first apply after {until} deletes it", fix=advice
        )
    else:
        period = render_with_exact(park, "ms").partition(" (")[0]
        yield PARKED.find(
            f"access to it is taken away first: the first apply that runs {period} after that "
            "deletes it",
            fix=advice,
        )


def _shorten(time: str) -> str:
    """`2026-12-06 10:00 UTC`, the minute that begins then or next; empty for no time."""
    if not time:
        return ""
    # Rounded up: an apply in the minute that is named must not come too early.
    minute = datetime.fromisoformat(time) + timedelta(seconds=59)
    return minute.strftime("%Y-%m-%d %H:%M UTC")


def list_waiting(
    changes: Iterable[Change], parked: Mapping[Identity, Parking], state: State
) -> frozenset[Identity]:
    """The objects that wait for their deletion. changes: of the objects that are parked."""
    return frozenset(
        change.identity
        for change in changes
        if change.blocked is not None
        and (
            change.blocked.rule == PARKED.id
            # A read that failed must not give the access back.
            or (
                change.block in UNREAD
                and any(_is_recorded(item, state) for item in parked[change.identity].closures)
            )
        )
    )


def drop_idle_closures(desired: Desired, waiting: Collection[Identity]) -> Desired:
    """What is desired, without the closures of objects that do not wait for their deletion.
    waiting: the objects that do."""
    parked = {
        identity: replace(parking, closing=identity in waiting)
        for identity, parking in desired.parked.items()
    }
    return replace(desired, parked=parked)
