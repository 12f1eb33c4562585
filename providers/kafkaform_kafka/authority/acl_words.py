"""Describes ACLs and principals in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..kinds.acl.resource_type import CLUSTER, EVERYTHING, NOUNS, Acl, parse_acl_key
from .authorizer import PREFIXED

# The highest character that is not a noncharacter: it sorts after every name with the same prefix.
OTHER = "\U0010fffd"
"""A name that no ACL contains: it stands for everybody, or everything, without an own ACL."""
SHOWN = 3
"""How many names are listed before the rest is counted."""


def describe_acl(acl: Acl) -> str:
    """`Allow User:app Write on topic "shop.orders" from any host`: all seven fields."""
    host = "any host" if acl.host == EVERYTHING else _quote_gaps(acl.host)
    principal = _quote_gaps(acl.principal)
    return f"{acl.permission} {principal} {acl.operation} on {_describe_resource(acl)} from {host}"


def describe_acl_key(key: str) -> str:
    """`describe_acl` of an identity's key, empty for another text."""
    try:
        return describe_acl(parse_acl_key(key))
    except ValueError:
        return ""


def _describe_resource(acl: Acl) -> str:
    noun = NOUNS.get(acl.resource_type, acl.resource_type)
    if acl.pattern_type == PREFIXED:
        return f"{noun}s with prefix {_quote(acl.resource_name)}"
    if acl.resource_name == EVERYTHING:
        return f"every {noun}"
    if (acl.resource_type, acl.resource_name) == ("Cluster", CLUSTER):
        return "the cluster"
    return f"{noun} {_quote(acl.resource_name)}"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _quote_gaps(text: str) -> str:
    """The text, quoted if it has a blank: a principal must not read like the rest of the
    sentence."""
    return _quote(text) if not text or '"' in text or any(map(str.isspace, text)) else text


def describe_pattern(acl: Acl) -> str:
    """The resource pattern of the ACL in words."""
    if acl.pattern_type == PREFIXED and acl.resource_name:
        return f"{acl.resource_type} {acl.resource_name}* (prefix)"
    if acl.resource_name in (EVERYTHING, ""):
        return f"every {acl.resource_type}"
    return f"{acl.resource_type} {acl.resource_name}"


def describe_names(acl: Acl, names: Sequence[str], candidates: Sequence[str]) -> str:
    """The resources in words: the names in `found`, or the pattern with its exceptions."""
    kind = acl.resource_type
    if candidates[0] not in names:
        return f"{kind} {join_words([describe_name(name) for name in dict.fromkeys(names)])}"
    exceptions = [describe_name(name) for name in dict.fromkeys(candidates) if name not in names]
    return describe_pattern(acl) + (f", but not on {join_words(exceptions)}" if exceptions else "")


def describe_principals(principals: Sequence[str], candidates: Sequence[str]) -> str:
    """The principals in words: those in `found`, or everybody with exceptions."""
    if candidates[0] not in principals or not candidates[0].endswith(OTHER):
        return join_words(list(dict.fromkeys(principals)))
    exceptions = [
        principal for principal in dict.fromkeys(candidates) if principal not in principals
    ]
    return "everybody" + (f" except {join_words(exceptions)}" if exceptions else "")


def describe_name(name: str) -> str:
    """A resource name in words, with `*` for OTHER."""
    return f"{name.removesuffix(OTHER)}*" if name.endswith(OTHER) else name


def join_words(words: Sequence[str]) -> str:
    """`a, b, c and 4 more`."""
    # One more than SHOWN is listed whole: "and 1 more" would not be shorter.
    listed = [*words[:SHOWN]] if len(words) > SHOWN + 1 else [*words]
    hidden_count = len(words) - len(listed)
    return ", ".join(listed) + (f" and {hidden_count} more" if hidden_count else "")
