"""The users of the simulated cluster and their rights."""

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
"""Operation -> the operations that imply it (StandardAuthorizer)."""


# Rights are set directly and do not follow from the simulated ACLs: a test chooses both.
class User(Struct, frozen=True):
    """A user of the simulated cluster."""

    name: str
    root: bool = False
    """True for a super user."""
    rights: frozenset[Right] = frozenset()

    @property
    def principal(self) -> str:
        return f"User:{self.name}"

    def may(self, operation: str, resource: str) -> bool:
        """True if the user is root, or has the operation or one that implies it."""
        if self.root:
            return True
        operations = _IMPLIED_BY.get(operation, (operation,))
        return any(
            right in operations and _covers(pattern, resource) for right, pattern in self.rights
        )

    def may_on_topic(self, operation: str, name: str) -> bool:
        """`may` for a topic."""
        return self.may(operation, f"topic:{name}")


def make_user(name: str, rights: Iterable[Right] = ()) -> User:
    """A user with these rights only."""
    return User(name, rights=frozenset(rights))


def _covers(pattern: str, resource: str) -> bool:
    if pattern.endswith("*"):
        return resource.startswith(pattern[:-1])
    return pattern == resource
