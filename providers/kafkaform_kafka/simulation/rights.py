"""Who may do what in the simulated cluster."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

Right = tuple[str, str]
"""(operation, resource): `("Describe", "topic:orders")`, `("Create", "topic:app-*")` for a
prefix, `("AlterConfigs", "topic:*")` for all, `("Create", "cluster")`."""

CLUSTER = "cluster"

_IMPLIED_BY = {
    "Describe": ("Describe", "Read", "Write", "Delete", "Alter"),
    "DescribeConfigs": ("DescribeConfigs", "AlterConfigs"),
}
"""Operation -> the operations that allow it too (Kafka's AclAuthorizer rules)."""


class User(Struct, frozen=True):
    """root: a super user, whom no missing right stops."""

    name: str
    root: bool = False
    rights: frozenset[Right] = frozenset()

    @property
    def principal(self) -> str:
        return f"User:{self.name}"

    def may(self, operation: str, resource: str) -> bool:
        """True if the user is root or holds the operation, or one that implies it."""
        if self.root:
            return True
        operations = _IMPLIED_BY.get(operation, (operation,))
        return any(
            held in operations and _covers(pattern, resource) for held, pattern in self.rights
        )

    def may_on_topic(self, operation: str, name: str) -> bool:
        return self.may(operation, f"topic:{name}")


def make_user(name: str, rights: Iterable[Right] = ()) -> User:
    """An ordinary user with these rights and no others."""
    return User(name, rights=frozenset(rights))


def _covers(pattern: str, resource: str) -> bool:
    if pattern.endswith("*"):
        return resource.startswith(pattern[:-1])
    return pattern == resource
