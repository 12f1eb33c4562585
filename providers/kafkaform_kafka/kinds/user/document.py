"""Makes the rows of `describe users`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from kafkaform.core.resource import Observed
from kafkaform.core.value import FrozenMap


def list_users(items: Sequence[Observed], name: str, _: Mapping[str, str]) -> tuple[FrozenMap, ...]:
    """One row for each user, with its credentials."""
    users: dict[str, list[FrozenMap]] = {}
    for item in sorted(items, key=lambda item: item.identity.key):
        credential = FrozenMap(
            mechanism=item.attributes["scram_mechanism"],
            iterations=item.attributes["scram_iterations"],
        )
        users.setdefault(item.attributes["username"], []).append(credential)
    return tuple(
        FrozenMap(name=user, credentials=tuple(credentials))
        for user, credentials in sorted(users.items())
        if fnmatchcase(user, name)
    )
