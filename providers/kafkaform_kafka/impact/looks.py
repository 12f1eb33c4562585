"""All looks at those whom dangerous changes hit, side by side, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kafkaform.core.change import Change
from kafkaform.core.errors import KafkaformError, OtherSystem
from kafkaform.core.finding import Finding
from kafkaform.core.parallel import map_parallel
from kafkaform.core.resource import Identity
from kafkaform.core.secret import mask_secrets
from kafkaform.provider.contract import LookBounds, Session

from ..capacity.amounts import compute_costs, find_rates
from ..capacity.readings import read_forecast
from ..inspect.source import DescribeSource
from ..kinds.context import ClusterContext
from ..rules.disks import find_costs, find_exceeded_limits, find_full_disks
from ..rules.users_now import USERS_UNSEEN
from .inquiry import Inquiry, Sighting, list_targets
from .readers import look_at_readers
from .writers import look_at_writers


def look_at_disks(inquiry: Inquiry) -> Sighting:
    """The disks and brokers that get more by the changes, if they may not hold it; and what the
    changes cost."""
    facts = inquiry.source.context.facts
    forecast = read_forecast(inquiry.source, inquiry.changes, inquiry.objects)
    rates = find_rates(facts)
    findings: list[tuple[Identity | None, Finding]] = []
    if forecast is not None:
        findings += [*find_full_disks(forecast), *find_exceeded_limits(forecast, facts)]
    if rates is not None:
        costs = compute_costs(forecast, inquiry.changes, facts)
        findings += find_costs(costs, rates.currency)
    return Sighting(tuple(findings), () if forecast is None else forecast.gaps)


LOOKS: Mapping[str, Callable[[Inquiry], Sighting]] = {
    "disks": look_at_disks,
    "readers": look_at_readers,
    "writers": look_at_writers,
}
"""What a look is about -> the look."""


def find_consequences(
    session: Session, changes: Sequence[Change], bounds: LookBounds
) -> Sequence[tuple[Identity | None, Finding]]:
    """Whom these changes hit, as a `ConsequenceFinder` says it."""
    context = getattr(session, "context", None)
    # The users of a simulated cluster exist in nobody's mind.
    if not isinstance(context, ClusterContext):
        return ()
    deadline = None if bounds.seconds is None else time.monotonic() + bounds.seconds
    targets = list_targets(changes, context.facts)
    inquiry = Inquiry(
        DescribeSource(context, session.sweep, deadline),
        changes,
        targets[: bounds.objects],
        int(time.time() * 1000),
        bounds.objects,
    )
    sightings = map_parallel(partial(_look, inquiry), LOOKS, len(LOOKS))
    # A proxy may have led an open connection to another cluster meanwhile.
    session.prove()
    gaps = list(dict.fromkeys(gap for sighting in sightings for gap in sighting.gaps))
    if len(inquiry.targets) < len(targets):
        gaps.insert(0, f"{len(targets) - len(inquiry.targets):,} of {len(targets):,} topics")
    findings = [pair for sighting in sightings for pair in sighting.findings]
    if not gaps:
        return findings
    return [*findings, (None, USERS_UNSEEN.find(f"not looked at: {'; '.join(gaps)}"))]


def _look(inquiry: Inquiry, subject: str) -> Sighting:
    """What a look sees. One that fails says so, and the others go on."""
    try:
        return LOOKS[subject](inquiry)
    except OtherSystem:
        raise
    except KafkaformError as error:
        return Sighting(gaps=(f"{subject}: {mask_secrets(error.message)}",))
