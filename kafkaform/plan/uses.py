"""Objects that work with objects of any provider: the order of their changes, who is left without
what is deleted, and who may not use what it needs (`ResourceType.uses`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Action, Change, add_findings
from ..core.diagnostics import suggest
from ..core.errors import KafkaformError
from ..core.finding import Level
from ..core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Hidden,
    Identity,
    Observed,
    Sweep,
    Use,
)
from ..core.secret import mask_secrets
from ..core.value import FrozenMap
from ..provider.contract import MissingRight, Provider, ResourceType
from ..state.model import State
from .observe import Look
from .rules import MENTIONED, RIGHT_MISSING, USED, USED_MISSING
from .select import index_by_address, wait_for

PATTERN_SECONDS = 1.0
"""For one key and a regular expression that somebody else wrote."""


def find_used(
    user: Identity,
    attributes: FrozenMap | None,
    types: Mapping[str, ResourceType],
    partners: Mapping[str, Sequence[str]],
    identities: Collection[Identity],
) -> Iterator[tuple[Identity, Use]]:
    """The known objects that this one uses, with how it does. partners: from `list_partners`."""
    find = types[user.kind].uses
    if find is None or attributes is None:
        return
    for use in find(attributes):
        if use.pattern:
            instances = partners[user.instance]
            fits = match_pattern(use.key)
            for identity in identities:
                if (
                    identity.kind == use.kind
                    and identity.instance in instances
                    and fits(identity.key)
                ):
                    yield identity, use
        elif (key := read_key(use, types)) is not None:
            for instance in partners[user.instance]:
                identity = Identity(instance, use.kind, key)
                if identity in identities and identity != user:
                    yield identity, use


def list_partners(facts: Mapping[str, Facts]) -> Mapping[str, Sequence[str]]:
    """Provider instance -> the instances that can have what its objects use. An instance that is
    not known can work with any."""
    partners = defaultdict[str, Sequence[str]](lambda: tuple(facts))
    for user, user_facts in facts.items():
        # Without word from the system, each instance of that provider can have the object.
        partners[user] = tuple(
            instance
            for instance, partner_facts in facts.items()
            if user_facts.partners.get(instance.partition(".")[0], partner_facts.scope_id)
            == partner_facts.scope_id
        )
    return partners


def match_pattern(pattern: str) -> Callable[[str], bool]:
    """True for the keys that fit; for none if this is no regular expression that we can read."""
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415  # slow to load, and few have one

    try:
        compiled = regex.compile(pattern)
    except regex.error:
        # Whoever owns the expression reports the fault; here it matches no object.
        return lambda key: False

    def fits(key: str) -> bool:
        try:
            return compiled.fullmatch(key, timeout=PATTERN_SECONDS) is not None
        except TimeoutError:
            # Only an order and remarks depend on the answer, and no expression may hold up a plan.
            return False

    return fits


def read_key(use: Use, types: Mapping[str, ResourceType]) -> str | None:
    """The key of the used object, None for a name that its type cannot have."""
    try:
        return types[use.kind].import_key(use.key) if use.kind in types else None
    except ValueError:
        return None


NAMED = 10
"""How many users of one object a plan names; of further ones it says the number."""

NO_OUTLINES: Mapping[Identity, Change] = {}
_HAS_USES, _ACTS_AS = attrgetter("uses"), attrgetter("acts_as")


# ── order ───────────────────────────────────────────────────────────────────────────────


def order_by_uses(
    changes: Sequence[Change],
    types: Mapping[str, ResourceType],
    facts: Mapping[str, Facts],
    outlines: Mapping[Identity, Change] = NO_OUTLINES,
) -> Sequence[Change]:
    """The changes; each that uses objects of others depends on them, as if it referred to them. A
    deletion depends on the changes that let go of what it deletes.

    outlines: what is recorded and declared of objects that could not be read (`outline_change`).
    References win: a use that would close a circle is left out.
    """
    # `map` and not a loop in Python: almost every plan ends here.
    if not any(map(_HAS_USES, types.values())):
        return changes
    order = {change.identity: n for n, change in enumerate(changes)}
    partners = list_partners(facts)
    # Each address is parsed for this, so only if one change refers to another.
    refers = any(change.depends_on for change in changes)
    addresses = index_by_address(changes) if refers else {}
    needs = [{m for a in change.depends_on for m in addresses.get(a, ())} for change in changes]
    pairs: list[tuple[int, int]] = []
    ended: dict[int, set[str]] = {}
    for n, change in enumerate(changes):
        if types[change.identity.kind].uses is None:
            continue
        sides = outlines.get(change.identity, change)
        differs = sides.before != sides.after
        used = [
            {order[i]: use for i, use in find_used(change.identity, values, types, partners, order)}
            # Most objects stay as they are, so one side says it all.
            for values in ((sides.before, sides.after) if differs else (sides.after,))
        ]
        before, after = set(used[0]), set(used[-1])
        if sides is not change:
            # Nobody knows how far the object is between what is recorded and what is declared.
            pairs += ((n, m) for m in sorted(before | after))
            continue
        deletes = change.action is Action.DELETE
        ends_with = {m for m in before if deletes and used[0][m].ends_with}
        if ends_with & needs[n]:
            # The state has the order in which they were made.
            needs[n] -= ends_with
            ended[n] = {changes[m].address for m in ends_with}
        pairs += ((m, n) for m in sorted(ends_with))
        pairs += ((n, m) for m in sorted(before - ends_with if deletes else after))
        let_go = set() if change.after is None else before - after
        pairs += ((m, n) for m in sorted(let_go) if changes[m].action is Action.DELETE)
    added: dict[int, set[str]] = defaultdict(set)
    for n, m in pairs:
        if m not in needs[n] and not _leads_to(m, n, needs):
            needs[n].add(m)
            added[n].add(changes[m].address)
    result = list(changes)
    for n in {*added, *ended}:
        depends_on = {*changes[n].depends_on, *added[n]} - ended.get(n, set())
        result[n] = replace(changes[n], depends_on=tuple(sorted(depends_on)))
    return result


def _leads_to(start: int, end: int, needs: Sequence[set[int]]) -> bool:
    """True if `end` is `start`, or something that it needs, however far."""
    reached, queue = {start}, [start]
    while queue:
        n = queue.pop()
        if n == end:
            return True
        fresh = needs[n] - reached
        reached |= fresh
        queue.extend(fresh)
    return False


# ── impact ──────────────────────────────────────────────────────────────────────────────


class _Hurdle(Struct, frozen=True, order=True):
    """Objects of one kind that could not be listed, so that nobody knows what they use."""

    kind: str
    """Their resource type."""
    instance: str
    """Their provider instance."""
    cause: str
    """Why they could not be listed."""

    def __str__(self) -> str:
        cause = f": {mask_secrets(self.cause)}" if self.cause else ""
        return (
            f"whether a {self.kind} uses it is not known, because those of {self.instance} could "
            f"not be listed{cause}"
        )


class _User(Struct, frozen=True, order=True):
    """An object that uses a deleted one and stays."""

    name: str
    """What a plan calls it."""
    verb: str
    needed: bool

    def __str__(self) -> str:
        return f"{self.name} {self.verb} it"


class _Candidate(Struct, frozen=True):
    """An object that exists after the plan, and can use others."""

    identity: Identity
    name: str
    """What a plan calls it."""
    attributes: FrozenMap
    unread: bool = False
    """It could not be read: the attributes are the recorded ones."""


def name_users(
    changes: Sequence[Change], providers: Mapping[str, Provider], look: Look, state: State
) -> Sequence[Change]:
    """The changes; each deletion names the objects that use what it deletes and stay, and waits if
    some of those that can use it could not be asked.

    These can be declared, recorded, or live without belonging to any state. To find the latter,
    kinds of other providers are listed, so this is called only if something is deleted.
    """
    every = {**(look.configured.providers if look.configured else {}), **providers}
    types = {name: kind for item in every.values() for name, kind in item.types.items()}
    if not any(map(_HAS_USES, types.values())):
        return changes
    # Also the blocked deletions: whoever lifts the block has to know what it means.
    gone = {c.identity: n for n, c in enumerate(changes) if c.action is Action.DELETE}
    facts = {instance: observation.facts for instance, observation in look.world.items()}
    candidates = [*list_managed(changes, types, look, state)]
    hurdles: set[_Hurdle] = set()
    losers = {identity.provider for identity in gone}
    for instance, provider in sorted(every.items()):
        if not losers - {provider.name}:
            continue
        for sweep, system in _list_users(instance, provider, look, hurdles):
            facts[instance] = system
            listed = instance in look.world and instance not in look.unasked
            readings = look.world[instance].readings if listed else {}
            candidates += _list_others(sweep, types[sweep.kind], system, readings, state)
    users: dict[Identity, set[_User]] = defaultdict(set)
    unread: dict[Identity, set[str]] = defaultdict(set)
    partners = list_partners(facts)
    for user in candidates:
        for identity, use in find_used(user.identity, user.attributes, types, partners, gone):
            users[identity].add(_User(user.name, use.verb, use.needed))
            if user.unread:
                unread[identity].add(f"{user.name} {use.verb} it, and could not be read")
    result = list(changes)
    for identity, n in gone.items():
        unclear = sorted(hurdle for hurdle in hurdles if _can_use(hurdle, identity, types))
        reasons = [*map(str, unclear), *sorted(unread[identity])]
        result[n] = _add_users(changes[n], sorted(users[identity]))
        if reasons and result[n].effective:
            result[n] = wait_for(result[n], join_first(reasons))
    return result


def _can_use(hurdle: _Hurdle, used: Identity, types: Mapping[str, ResourceType]) -> bool:
    """True if objects of the kind that could not be listed can use this object."""
    kinds = types[hurdle.kind].used_kinds
    return Identity(hurdle.instance, "", "").provider != used.provider and (
        not kinds or used.kind in kinds
    )


def list_managed(
    changes: Sequence[Change], types: Mapping[str, ResourceType], look: Look, state: State
) -> Iterator[_Candidate]:
    """The declared and recorded objects of kinds that use others, as the plan leaves them."""
    planned = {change.identity: change for change in changes}
    for instance, observation in look.world.items():
        # What was not read for this selection is listed like the objects of others.
        for identity, reading in () if instance in look.unasked else observation.readings.items():
            kind = types.get(identity.kind)
            if kind is None or kind.uses is None:
                continue
            change, row = planned.get(identity), state.objects.get(identity)
            # What cannot be read is as it was recorded, as far as anybody knows.
            attributes = row.attributes if row else None
            if isinstance(reading, Observed | Absent):
                attributes = reading.attributes if isinstance(reading, Observed) else None
            name = row.owners[0] if row else _name_unmanaged(identity)
            if change is not None:
                name = change.address
                if change.effective and change.action is not Action.FORGET:
                    attributes = change.after
            if attributes is not None:
                unread = isinstance(reading, Hidden | Failed)
                yield _Candidate(
                    identity, name, kind.canonical(attributes, observation.facts), unread
                )


def _list_users(
    instance: str, provider: Provider, look: Look, hurdles: set[_Hurdle]
) -> Iterator[tuple[Sweep, Facts]]:
    """Full listings of the kinds that can use objects of others. hurdles: gets those that could not
    be listed."""
    kinds = [k.name for k in provider.types.values() if k.uses is not None and k.expand is None]
    session, own_session = look.sessions.get(instance), False
    if not kinds:
        return
    if session is None and instance in look.unread:
        hurdles.update(_Hurdle(kind, instance, look.unread[instance].message) for kind in kinds)
        return
    if session is None:
        if look.configured is None or instance not in look.configured.providers:
            return
        try:
            session, own_session = look.configured.open(instance), True
        except KafkaformError as error:
            hurdles.update(_Hurdle(kind, instance, error.message) for kind in kinds)
            return
    try:
        for kind in kinds:
            sweep = session.sweep(kind, Depth.FULL)
            if sweep.coverage.kind is CoverageKind.FAILED:
                fault = sweep.coverage.fault
                hurdles.add(_Hurdle(kind, instance, fault.message if fault else ""))
            yield sweep, session.facts
    finally:
        if own_session:
            session.close()


def _list_others(
    sweep: Sweep, kind: ResourceType, facts: Facts, managed: Container[Identity], state: State
) -> Iterator[_Candidate]:
    """The live objects of a listing that were not read otherwise."""
    for item in sweep.items:
        if item.identity not in managed:
            row = state.objects.get(item.identity)
            name = row.owners[0] if row else _name_unmanaged(item.identity)
            yield _Candidate(item.identity, name, kind.canonical(item.attributes, facts))


def _name_unmanaged(identity: Identity) -> str:
    return f"{identity.kind} {identity.key} (not managed)"


def _add_users(change: Change, users: Sequence[_User]) -> Change:
    """The change with a risk for those that stop working, and a note for all others."""
    if not users:
        return change
    needing = [user for user in users if user.needed]
    optional_users = [user for user in users if not user.needed]
    return add_findings(
        change,
        *((USED.find(_join_users(needing)),) if needing else ()),
        *((MENTIONED.find(_join_users(optional_users)),) if optional_users else ()),
    )


def _join_users(users: Sequence[_User]) -> str:
    """One sentence with the first few of them, and the number of the others."""
    return join_first([str(user) for user in users])


def join_first(names: Sequence[str]) -> str:
    hidden_count = len(names) - NAMED
    return ", ".join((*names[:NAMED], f"and {hidden_count:,} more") if hidden_count > 0 else names)


# ── what does not exist ─────────────────────────────────────────────────────────────────


def tell_missing_uses(
    changes: Sequence[Change],
    types: Mapping[str, ResourceType],
    providers: Mapping[str, Provider],
    look: Look,
    facts: Mapping[str, Facts],
) -> Sequence[Change]:
    """The changes; each that begins to use an object of another provider that no change makes and
    that does not exist has a caution."""
    partners = list_partners(facts)
    declared = frozenset(change.identity for change in changes)
    elsewhere = look.elsewhere.identities
    questions: dict[int, dict[Use, list[Identity]]] = {}
    for n, change in enumerate(changes):
        find = types[change.identity.kind].uses
        if find is None or change.after is None or not change.effective:
            continue
        old = () if change.before is None else find(change.before)
        for use in find(change.after):
            key = None if use.pattern or not use.needed or use in old else read_key(use, types)
            identities = [
                Identity(instance, use.kind, key)
                for instance in partners[change.identity.instance]
                if key is not None
                and instance.partition(".")[0] != change.identity.provider
                and (provider := providers.get(instance))
                and use.kind in provider.types
            ]
            if identities and declared.isdisjoint(identities) and elsewhere.isdisjoint(identities):
                questions.setdefault(n, {})[use] = identities
    if not questions:
        return changes
    absent = _find_absent(
        {i for uses in questions.values() for ids in uses.values() for i in ids}, look
    )
    result = list(changes)
    for n, uses in questions.items():
        missing = [use for use, identities in uses.items() if absent.issuperset(identities)]
        names = declared | elsewhere
        result[n] = add_findings(
            changes[n],
            *(
                USED_MISSING.find(
                    f"it {use.verb} {use.kind} {use.key}, which is neither declared nor live",
                    fix=suggest(use.key, _list_names(uses[use], names, look)) or None,
                )
                for use in missing
            ),
        )
    return result


def _find_absent(identities: Collection[Identity], look: Look) -> set[Identity]:
    """Those of these objects that certainly do not exist: a failed read proves nothing."""
    absent: set[Identity] = set()
    for instance in sorted({identity.instance for identity in identities}):
        own = sorted(identity for identity in identities if identity.instance == instance)
        readings = look.sessions[instance].read(own, depth=Depth.NAMES)
        absent |= {i for i, reading in readings.items() if isinstance(reading, Absent)}
    return absent


def _list_names(
    identities: Sequence[Identity], declared: Collection[Identity], look: Look
) -> Iterator[str]:
    """The names of the objects that these could have been meant to be."""
    for identity in identities:
        sweeps = look.collect_sweeps(identity.instance, {identity.kind: Depth.NAMES})
        yield from (item.identity.key for item in sweeps[identity.kind].items)
        type_key = identity.instance, identity.kind
        yield from (item.key for item in declared if (item.instance, item.kind) == type_key)


# ── rights ──────────────────────────────────────────────────────────────────────────────


class _Question(Struct, frozen=True):
    """What one change makes its system need."""

    uses: tuple[Use, ...]
    """What the object works with."""
    stays: bool
    """The plan leaves the object as it is, so only what it loses matters."""


def tell_missing_rights(
    changes: Sequence[Change],
    types: Mapping[str, ResourceType],
    providers: Mapping[str, Provider],
    look: Look,
    facts: Mapping[str, Facts],
) -> Sequence[Change]:
    """The changes; each that makes its system use what it has no right to has a risk, or a note
    where the rights are not known for certain. So has an object that stays, if another change of
    this plan takes away a right that it has now."""
    # As above: almost every plan ends here.
    if not any(map(_ACTS_AS, facts.values())):
        return changes
    # Each system is asked once for all users: it has to be listed, and can be large.
    questions_by_system: dict[tuple[str, str], dict[int, _Question]] = defaultdict(dict)
    for n, change in enumerate(changes):
        find, principal = types[change.identity.kind].uses, facts[change.identity.instance].acts_as
        stays = not change.effective or change.action is Action.FORGET
        attributes = change.before if stays else change.after
        if find is None or principal is None or attributes is None:
            continue
        if uses := tuple(use for use in find(attributes) if use.rights):
            for instance in _list_deciders(change.identity, providers, facts):
                questions_by_system[instance, principal][n] = _Question(uses, stays)
    result = list(changes)
    for (instance, principal), questions in questions_by_system.items():
        provider, system = providers[instance], facts[instance]
        instances = {name for name, partner in facts.items() if partner.scope_id == system.scope_id}
        system_changes = [change for change in changes if change.identity.instance in instances]
        if not any(
            change.effective and change.identity.kind in provider.access_needs
            for change in system_changes
        ):
            questions = {n: question for n, question in questions.items() if not question.stays}
        if not questions:
            continue
        sweeps = look.collect_sweeps(instance, provider.access_needs)
        uses_of = {
            n: list(expand_patterns(question.uses, system_changes, look, instance))
            for n, question in questions.items()
        }
        all_uses = sorted({use for uses in uses_of.values() for use in uses})
        missing = provider.find_missing_rights(principal, all_uses, system_changes, sweeps, system)
        lacked: Collection[MissingRight] = ()
        if any(question.stays for question in questions.values()):
            lacked = provider.find_missing_rights(principal, all_uses, (), sweeps, system)
        lacked_before = {(gap.use, gap.right) for gap in lacked}
        for n, question in questions.items():
            newly_missing = [gap for gap in missing if gap.use in uses_of[n]]
            if question.stays:
                newly_missing = [
                    gap for gap in newly_missing if (gap.use, gap.right) not in lacked_before
                ]
            result[n] = _add_missing(result[n], principal, newly_missing, stays=question.stays)
    return result


def expand_patterns(
    uses: Sequence[Use], changes: Sequence[Change], look: Look, instance: str
) -> Iterator[Use]:
    """The uses; a pattern is replaced by the objects that fit it after these changes."""
    for use in uses:
        if not use.pattern:
            yield use
            continue
        items = look.collect_sweeps(instance, {use.kind: Depth.NAMES})[use.kind].items
        kind_changes = [change for change in changes if change.identity.kind == use.kind]
        keys = {item.identity.key for item in items if not item.details.get("internal")}
        effective = [change for change in kind_changes if change.effective]
        keys -= {change.identity.key for change in effective if change.after is None}
        keys |= {change.identity.key for change in effective if change.after is not None}
        fits = match_pattern(use.key)
        yield from (replace(use, key=key) for key in sorted(keys) if fits(key))


def _list_deciders(
    user: Identity, providers: Mapping[str, Provider], facts: Mapping[str, Facts]
) -> Collection[str]:
    """One provider instance for each system that decides what this object's system may use."""
    deciders: dict[str, str] = {}
    for instance in list_partners(facts)[user.instance]:
        if (provider := providers.get(instance)) and provider.access_needs:
            deciders.setdefault(facts[instance].scope_id, instance)
    return deciders.values()


def _add_missing(
    change: Change, principal: str, missing: Sequence[MissingRight], *, stays: bool
) -> Change:
    lacks: dict[tuple[bool, str], list[str]] = defaultdict(list)
    for gap in missing:
        lacks[gap.use.pattern, gap.doubt].append(gap.right)
    verb = "loses" if stays else "lacks"
    sentences = {key: f"{principal} {verb} {join_first(names)}" for key, names in lacks.items()}
    effect = "it fails as soon as this plan is applied" if stays else "it fails"
    sure = sentences.pop((False, ""), None)
    doubtful = (
        RIGHT_MISSING.find(
            f"{'it leaves out what it may not read' if pattern else effect}: {text}"
            f"{f', unless {doubt}' if doubt else ''}",
            level=Level.CAUTION,
        )
        for (pattern, doubt), text in sentences.items()
    )
    certain = (RIGHT_MISSING.find(f"{effect}: {sure}"),) if sure else ()
    return add_findings(change, *certain, *doubtful)
