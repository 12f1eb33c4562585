"""ACLs, and those whom they concern, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..kinds.acl.resource_type import EVERYTHING, Acl
from .authorizer import PREFIXED

OTHER = "\U0010fffd"
"""What nobody calls anything, and what is behind everything that begins the same."""
SHOWN = 3
"""So many of several are named."""


def describe_acl(acl: Acl) -> str:
    """An ACL in words."""
    where = "" if acl.host == EVERYTHING else f" from {acl.host}"
    return f"{acl.permission} {acl.operation} for {acl.principal} on {describe_pattern(acl)}{where}"


def describe_pattern(acl: Acl) -> str:
    """What an ACL is about, in words."""
    if acl.pattern_type == PREFIXED and acl.resource_name:
        return f"{acl.resource_type} {acl.resource_name}* (prefix)"
    if acl.resource_name in (EVERYTHING, ""):
        return f"every {acl.resource_type}"
    return f"{acl.resource_type} {acl.resource_name}"


def describe_names(acl: Acl, found: Sequence[str], asked: Sequence[str]) -> str:
    """The names, those that are an exception from the general one last."""
    kind = acl.resource_type
    if asked[0] not in found:
        return f"{kind} {join_words([describe_name(name) for name in dict.fromkeys(found)])}"
    left = [describe_name(name) for name in dict.fromkeys(asked) if name not in found]
    return describe_pattern(acl) + (f", but not on {join_words(left)}" if left else "")


def describe_people(found: Sequence[str], asked: Sequence[str]) -> str:
    if asked[0] not in found or not asked[0].endswith(OTHER):
        return join_words(list(dict.fromkeys(found)))
    left = [one for one in dict.fromkeys(asked) if one not in found]
    return "everybody" + (f" but {join_words(left)}" if left else "")


def describe_name(name: str) -> str:
    return f"{name.removesuffix(OTHER)}*" if name.endswith(OTHER) else name


def join_words(words: Sequence[str]) -> str:
    shown = [*words[:SHOWN]] if len(words) > SHOWN + 1 else [*words]
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
