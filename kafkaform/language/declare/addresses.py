"""Expressions that name a resource or a provider instance instead of yielding a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...core.address import Address, render_key
from ...syntax.nodes import Attr, Block, Expression, Index, LegacyIndex, Lit, Root, Tuple
from ..values.faults import EvalError, Place, suggest_near
from ..values.types import drop_parentheses

Key = Callable[[Expression], str | int]
"""The value of the brackets of an address."""


def spell_name(node: Expression) -> str | None:
    """`kafka` or `kafka.eu` as it is spelled, in brackets or not; None for anything else."""
    target = drop_parentheses(node)
    if isinstance(target, Root):
        return target.name
    if isinstance(target, Attr) and isinstance(target.target, Root):
        return f"{target.target.name}.{target.name}"
    return None


def parse_address_node(node: Expression, key: Key | None = None) -> Address:
    """The address that `TYPE.NAME`, `TYPE.NAME["KEY"]` or either behind `module.NAME` spells,
    or that of a module itself. Raises EvalError."""
    words = _split_words(drop_parentheses(node), key or read_constant_key)
    modules = []
    while len(words) >= 2 and words[0] == ("module", None):
        name, found = words[1]
        modules.append(f"module.{name}{render_key(found)}")
        words = words[2:]
    if modules and not words:
        return Address("", "", None, tuple(modules))
    if len(words) == 2 and words[0][1] is None and words[0][0] != "data":
        return Address(words[0][0], *words[1], tuple(modules))
    raise EvalError(
        node,
        "This is not the address of a resource",
        advice='Write TYPE.NAME, TYPE.NAME["KEY"] or module.NAME.TYPE.NAME.',
    )


def _split_words(node: Expression, key: Key) -> list[tuple[str, str | int | None]]:
    """`a.b["c"]` as [("a", None), ("b", "c")]; empty if it is something else."""
    found: list[tuple[str, str | int | None]] = []
    inside: str | int | None = None
    while not isinstance(node, Root):
        if isinstance(node, LegacyIndex):
            inside, node = node.index, node.target
        elif isinstance(node, Index):
            inside, node = key(node.key), node.target
        if not isinstance(node, Attr):
            return []
        found.append((node.name, inside))
        inside, node = None, node.target
    return [(node.name, None), *reversed(found)]


def read_constant_key(node: Expression) -> str | int:
    """A key that is written out. Raises EvalError."""
    value = node.value if isinstance(node, Lit) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise EvalError(node, "The key of an address must be written out")
    return value


def read_depends_on(node: Expression) -> list[tuple[Address, Expression]]:
    """The addresses of a `depends_on` list, each with its place. Raises EvalError."""
    if not isinstance(node, Tuple):
        raise EvalError(
            node, "depends_on takes a list of addresses", "depends_on = [kafka_topic.a]"
        )
    return [(parse_address_node(item), item) for item in node.items if not _is_data(item)]


def _is_data(node: Expression) -> bool:
    """Whether it names a data source, which is read before anything is changed."""
    return (spell_name(drop_parentheses(node)) or "").startswith("data.") or (
        isinstance(node, Attr) and (spell_name(node.target) or "").startswith("data.")
    )


def read_provider_instance(
    node: Expression | None, default: str, known: Mapping[str, str], place: Place
) -> str:
    """The instance that `provider = kafka.eu` names, else the default one. known: name in the
    module -> instance; place: of the block. Raises EvalError."""
    if node is None:
        if default not in known:
            raise EvalError(
                place,
                f"The module was not handed a provider {default}",
                f"Its providers map has {', '.join(known) or 'no entries'}.",
                f"Add {default} = … to providers in the module block, or name one here.",
            )
        return known[default]
    name = spell_name(node)
    if name is None:
        raise EvalError(
            node, "This does not name a provider", f"Write {default} or {default}.ALIAS."
        )
    found = known.get(name, name)
    if found.partition(".")[0] != default:
        raise EvalError(node, f"This type belongs to the provider {default}, not to {name}")
    if name not in known:
        raise EvalError(
            node, f"There is no provider instance {name}", advice=suggest_near(name, known)
        )
    return found


def read_ignored_paths(lifecycle: Block, name: str) -> tuple[tuple[str, Expression], ...] | None:
    """The paths of `ignore_changes` and its like, each with its place; `*` for `all`, None if
    they are not given. Raises EvalError."""
    node = lifecycle.get_argument(name)
    if node is None:
        return None
    if isinstance(node, Root) and node.name == "all":
        return (("*", node),)
    if not isinstance(node, Tuple):
        raise EvalError(
            node,
            f"{name} takes a list of paths, or all",
            'Write [description, config["retention.*"]].',
        )
    return tuple((_render_path(item), item) for item in node.items)


def _render_path(node: Expression) -> str:
    if isinstance(node, Lit) and isinstance(node.value, str):
        return node.value
    if isinstance(node, Root):
        return node.name
    if isinstance(node, Attr):
        return f"{_render_path(node.target)}.{node.name}"
    if isinstance(node, Index):
        return f"{_render_path(node.target)}.{read_constant_key(node.key)}"
    raise EvalError(node, "This is not a path", 'Write description or config["retention.ms"].')
