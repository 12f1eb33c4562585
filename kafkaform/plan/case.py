"""One object with everything that decides what happens to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import BOOKKEEPING, Action, Change, Ownership, add_findings
from ..core.diagnostics import Range
from ..core.finding import Block, Finding
from ..core.redaction import mask_secrets
from ..core.resource import (
    Absent,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Pending,
    Reading,
    World,
)
from ..core.value import EMPTY
from ..core.words import NEUTRAL, Words
from ..provider.contract import Provider, ResourceType
from .diff import flatten
from .model import Mode, Options
from .observe import has_ended
from .ownership import Claim
from .rules import REMARKED, RESERVED, UNREADABLE

NAMED = 10
"""How many objects with the same remark a plan names; of further ones it says the number."""


class Case(Struct, frozen=True):
    """One object with everything that decides what happens to it."""

    claim: Claim
    """Who declares and who owns the object."""
    reading: Reading
    """How it was read."""
    kind: ResourceType
    """Its resource type."""
    facts: Facts
    """What its system is like."""
    mode: Mode = Mode.NORMAL
    """Whether the whole configuration is to be destroyed."""
    pending: Pending | None = None
    """What an earlier run left open for it."""
    words: Words = NEUTRAL
    """What its users call its parts."""


def open_cases(
    claims: Sequence[Claim],
    world: World,
    types: Mapping[str, ResourceType],
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
    options: Options,
) -> Iterator[Case]:
    """The case of each claim, in the order of the claims."""
    # A task whose end the reading shows decides nothing more, although the log has it open still.
    unfinished = {item.identity: item for item in pending if not has_ended(item, world)}
    declared = {claim.identity for claim in claims if claim.declared}
    for claim in claims:
        identity, kind = claim.identity, types[claim.identity.kind]
        observation, provider = world[identity.instance], providers.get(identity.instance)
        reading = observation.readings[identity]
        whole = replace(identity, kind=kind.part_of) if kind.part_of else None
        if isinstance(reading, Absent) and reading.lacks and whole in declared:
            # What is missing is created by the same plan.
            reading = replace(reading, lacks="")
        if claim.unread:
            # What is declared of it is not known, so what was read decides nothing.
            fault = Fault("NO_DATA", claim.unread, FaultClass.NOT_APPLIED)
            reading = Failed(identity, fault)
        yield Case(
            claim,
            reading,
            kind,
            observation.facts,
            options.mode,
            unfinished.get(identity),
            provider.words if provider else NEUTRAL,
        )


def collect_remarks(cases: Iterable[Case]) -> dict[str, tuple[Finding, ...]]:
    """Provider instance -> the remarks on its objects (`Observed.remarks`), each with the addresses
    of all objects that it is about."""
    addresses: dict[str, dict[str, list[str]]] = {}
    for case in cases:
        reading = case.reading
        if not isinstance(reading, Observed) or not reading.remarks:
            continue
        # What an earlier run of ours set for the time of a move is removed by a later one.
        if case.pending is not None:
            continue
        declared = [flatten(item.attributes) for item in case.claim.declared]
        for remark in reading.remarks:
            if not any(attributes.get(remark.path) is not None for attributes in declared):
                texts = addresses.setdefault(case.claim.identity.instance, {})
                texts.setdefault(remark.text, []).append(case.claim.address)
    return {
        instance: tuple(
            REMARKED.find(f"{_join_names(names)}: {text}") for text, names in texts.items()
        )
        for instance, texts in addresses.items()
    }


def _join_names(names: Sequence[str]) -> str:
    hidden_count = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {hidden_count:,} more" if hidden_count > 0 else "")


def start_change(claim: Claim, action: Action) -> Change:
    """A change that says whose object it is and where that is declared, and nothing else yet."""
    row = claim.row
    if claim.declared:
        item = claim.declared[0]
        owner, labels = item.owner, item.labels
        needs = tuple(sorted({str(a) for block in claim.declared for a in block.depends_on}))
        source: Range | None = item.range
    else:
        assert row is not None  # a claim that nothing declares comes from a row
        owner, labels, needs = row.owner, row.labels, row.depends_on
        source = claim.removed.range if claim.removed else None
    return Change(
        claim.identity,
        claim.address,
        action,
        row_before=row.ownership if row else Ownership(),
        owner=owner,
        labels=labels,
        depends_on=needs,
        range=source,
    )


def outline_change(claim: Claim, kind: ResourceType, facts: Facts) -> Change:
    """The change of an object as far as it is known without reading it: from what the state records
    to what is declared. It is never shown; it says what the object uses."""
    row, declared = claim.row, claim.declared
    action = Action.UPDATE if declared else Action.DELETE
    before = after = None
    if kind.uses is not None:
        before = kind.canonical(row.attributes, facts) if row else None
        after = kind.target(declared[0].attributes, None, facts, False) if declared else None
    outlined = start_change(claim, action)
    owners = tuple(str(item.address) for item in declared)
    return replace(outlined, before=before, after=after, row_after=Ownership(owners))


def outline_unread(
    changes: Sequence[Change],
    claims: Sequence[Claim],
    types: Mapping[str, ResourceType],
    facts: Mapping[str, Facts],
) -> Mapping[Identity, Change]:
    """What is known of each object that could not be read. claims: of the changes, in their
    order."""
    return {
        change.identity: outline_change(
            claim, types[change.identity.kind], facts[change.identity.instance]
        )
        for change, claim in zip(changes, claims, strict=True)
        if change.block is Block.UNREADABLE
    }


def block_unreadable(case: Case, reading: Hidden | Failed) -> Change:
    """The blocked change of an object that could not be read: nothing is decided about it."""
    around = f"or leave it out with --exclude='{case.claim.address}'."
    if isinstance(reading, Hidden):
        reason = f"it cannot be seen: the right {reading.right} is missing"
        advice = f"Grant {reading.right}, {around}"
    else:
        fault = reading.fault
        # A server may repeat what it was sent. A plan is saved and hashed as it is, so a secret
        # has to be masked here and not only where the plan is shown.
        cause, fix = mask_secrets(fault.message), mask_secrets(fault.advice).rstrip(".")
        location = f", {fault.where}" if fault.where else ""
        reason = f"it could not be read: {cause} ({fault.code}{location})"
        advice = f"{fix or 'Try again'}; {around}"
    unchanged = start_change(case.claim, Action.NOOP)
    block = UNREADABLE.find(reason, fix=advice)
    return replace(unchanged, row_after=unchanged.row_before, findings=(block,))


_SENDS_NOTHING = (Action.NOOP, Action.FORGET, Action.REFRESH)


def block_reserved(
    change: Change, kind: ResourceType, reading: Reading, *, requested: bool
) -> Change:
    """The change, left out of the apply if the system keeps its object for itself.

    asked: see `Finding`.
    """
    if kind.reserves is None or change.action in _SENDS_NOTHING:
        return change
    # The state may say of such an object what it likes, as long as nothing is sent.
    if not change.adopts and change.paths and all(c.path[0] in BOOKKEEPING for c in change.paths):
        return change
    details = reading.details if isinstance(reading, Observed) else EMPTY
    verdict = kind.reserves(change.identity.key, details)
    if verdict is None:
        return change
    reason, advice = verdict
    return add_findings(change, RESERVED.find(reason, fix=advice, asked=requested))
