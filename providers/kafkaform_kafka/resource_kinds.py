"""The kinds of objects that this provider manages: one line for each folder of `kinds/`."""

from __future__ import annotations

from .kinds.acl import kind as acl
from .kinds.config import kind as config
from .kinds.feature import kind as feature
from .kinds.group import kind as group
from .kinds.kind import ResourceKind
from .kinds.leaders import kind as leaders
from .kinds.quota import kind as quota
from .kinds.rights import kind as rights
from .kinds.token import kind as token
from .kinds.topic import kind as topic
from .kinds.user import kind as user

KINDS: tuple[ResourceKind, ...] = (
    *topic.KINDS,
    *quota.KINDS,
    *user.KINDS,
    *acl.KINDS,
    *config.KINDS,
    *leaders.KINDS,
    *token.KINDS,
    *feature.KINDS,
    *rights.KINDS,
    *group.KINDS,
)
"""In the order of the documentation."""
