"""Expressions that name a resource or a provider instance instead of yielding a value."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..core.address import Address
from ..syntax.nodes import Attr, Expression, Index, LegacyIndex, Lit, Root, Tuple
from .faults import EvalError, near
from .types import bare

Key = Callable[[Expression], str | int]
"""The value of the brackets of an address."""


def address_of(node: Expression, key: Key | None = None) -> Address:
    """The address that `TYPE.NAME` or `TYPE.NAME["KEY"]` spells. Raises EvalError."""
    target = bare(node)
    found: str | int | None = None
    if isinstance(target, LegacyIndex):
        found, target = target.index, target.target
    elif isinstance(target, Index):
        found, target = (key or constant_key)(target.key), target.target
    if isinstance(target, Attr) and isinstance(target.target, Root):
        return Address(target.target.name, target.name, found)
    raise EvalError(
        node, "This is not the address of a resource", 'Write TYPE.NAME or TYPE.NAME["KEY"].'
    )


def constant_key(node: Expression) -> str | int:
    """A key that is written out. Raises EvalError."""
    value = node.value if isinstance(node, Lit) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise EvalError(node, "The key of an address must be written out")
    return value


def depends_on(node: Expression | None) -> list[tuple[Address, Expression]]:
    """The addresses of a `depends_on` list, each with its place. Raises EvalError."""
    if node is None:
        return []
    if not isinstance(node, Tuple):
        raise EvalError(
            node, "depends_on takes a list of addresses", "depends_on = [kafka_topic.a]"
        )
    return [(address_of(item), item) for item in node.items]


def provider_instance(node: Expression | None, default: str, known: Collection[str]) -> str:
    """The instance that `provider = kafka.eu` names, else the default one. Raises EvalError."""
    if node is None:
        return default
    target = bare(node)
    name = ""
    if isinstance(target, Root):
        name = target.name
    elif isinstance(target, Attr) and isinstance(target.target, Root):
        name = f"{target.target.name}.{target.name}"
    if not name:
        raise EvalError(
            node, "This does not name a provider", f"Write {default} or {default}.ALIAS."
        )
    if name.partition(".")[0] != default:
        raise EvalError(node, f"This type belongs to the provider {default}, not to {name}")
    if name != default and name not in known:
        raise EvalError(node, f"There is no provider instance {name}", advice=near(name, known))
    return name


def ignored(node: Expression | None) -> tuple[tuple[str, Expression], ...]:
    """The paths of `ignore_changes`, each with its place; `*` for `all`. Raises EvalError."""
    if node is None:
        return ()
    if isinstance(node, Root) and node.name == "all":
        return (("*", node),)
    if not isinstance(node, Tuple):
        raise EvalError(
            node,
            "ignore_changes takes a list of paths, or all",
            'Write [partitions, config["retention.*"]].',
        )
    return tuple((_path(item), item) for item in node.items)


def _path(node: Expression) -> str:
    if isinstance(node, Lit) and isinstance(node.value, str):
        return node.value
    if isinstance(node, Root):
        return node.name
    if isinstance(node, Attr):
        return f"{_path(node.target)}.{node.name}"
    if isinstance(node, Index):
        return f"{_path(node.target)}.{constant_key(node.key)}"
    raise EvalError(node, "This is not a path", 'Write partitions or config["retention.ms"].')
