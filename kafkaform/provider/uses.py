"""Which objects work with which, of all providers (`ResourceType.uses`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ..core.resource import Facts, Identity, Use
from ..core.value import FrozenMap
from .contract import ResourceType

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
        return lambda key: False

    def fits(key: str) -> bool:
        try:
            return compiled.fullmatch(key, timeout=PATTERN_SECONDS) is not None
        except TimeoutError:
            return False

    return fits


def read_key(use: Use, types: Mapping[str, ResourceType]) -> str | None:
    """The key of the used object, None for a name that its type cannot have."""
    try:
        return types[use.kind].import_key(use.key) if use.kind in types else None
    except ValueError:
        return None
