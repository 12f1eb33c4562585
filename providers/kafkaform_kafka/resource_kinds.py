"""The kinds of objects that this provider manages: one line for each folder of `kinds/`."""

from __future__ import annotations

from .kinds.acl import resource_type as acl
from .kinds.config import resource_type as config
from .kinds.feature import resource_type as feature
from .kinds.group import resource_type as group
from .kinds.kind import ResourceKind
from .kinds.leaders import resource_type as leaders
from .kinds.quota import resource_type as quota
from .kinds.rights import resource_type as rights
from .kinds.token import resource_type as token
from .kinds.topic import resource_type as topic
from .kinds.user import resource_type as user

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
