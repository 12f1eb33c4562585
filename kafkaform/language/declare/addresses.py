"""Read expressions that name a resource, a provider instance or attributes, and have no value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...core.address import Address, render_key
from ...syntax.nodes import Attr, Block, Expression, Index, LegacyIndex, Lit, Root, Tuple
from ...syntax.parse import parse_expression
from ..expressions.code import get_literal
from ..values.faults import EvalError, Location, suggest_near
from ..values.types import drop_parentheses

Key = Callable[[Expression], str | int]
"""Reads the key in the brackets of an address."""


def unquote_reference(node: Expression) -> Expression:
    """The reference in a string, as Terraform 0.11 wrote references; any other node as it is."""
    text = get_literal(node)
    inner = None if text is None else parse_expression(text, node.range.file)[0]
    return node if inner is None or isinstance(inner, Lit) else inner


def spell_name(node: Expression) -> str | None:
    """The text of `NAME` or `NAME.ALIAS`, also in parentheses or quotes; None for anything else."""
    target = drop_parentheses(unquote_reference(node))
    if isinstance(target, Root):
        return target.name
    if isinstance(target, Attr) and isinstance(target.target, Root):
        return f"{target.target.name}.{target.name}"
    return None


def parse_address_node(node: Expression, key: Key | None = None) -> Address:
    """The address of a resource (`TYPE.NAME`, `TYPE.NAME["KEY"]`, also behind `module.NAME`) or of
    a module. Raises EvalError. key: reads keys; without it they must be constants."""
    words = _split_words(drop_parentheses(node), key or read_constant_key)
    modules = []
    # `module.a.module.b["k"].TYPE.NAME`: pairs in front are modules. What is left is a resource,
    # or nothing, and then the address is that of the last module.
    while len(words) >= 2 and words[0] == ("module", None):
        name, instance_key = words[1]
        modules.append(f"module.{name}{render_key(instance_key)}")
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
    """`a.b["c"]` as [("a", None), ("b", "c")]; empty for any other expression."""
    # The outermost node is the last step of the text, so the words come in reverse order.
    words: list[tuple[str, str | int | None]] = []
    instance_key: str | int | None = None
    while not isinstance(node, Root):
        if isinstance(node, LegacyIndex):
            instance_key, node = node.index, node.target
        elif isinstance(node, Index):
            instance_key, node = key(node.key), node.target
        if not isinstance(node, Attr):
            return []
        words.append((node.name, instance_key))
        instance_key, node = None, node.target
    return [(node.name, None), *reversed(words)]


def read_constant_key(node: Expression) -> str | int:
    """A key that is a constant. Raises EvalError."""
    value = node.value if isinstance(node, Lit) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise EvalError(node, "The key of an address must be a constant", 'For example: ["eu"].')
    return value


def read_depends_on(node: Expression) -> list[tuple[Address, Expression]]:
    """The addresses of a `depends_on` list, each with its place. Raises EvalError."""
    if not isinstance(node, Tuple):
        raise EvalError(
            node, "depends_on must be a list of addresses", "depends_on = [kafka_topic.a]"
        )
    return [(_parse_need(item), item) for item in node.items if not _is_read_early(item)]


def _parse_need(item: Expression) -> Address:
    try:
        return parse_address_node(unquote_reference(item))
    except EvalError as fault:  # at the place in the file
        raise EvalError(item, fault.summary, fault.detail, fault.advice) from None


def _is_read_early(item: Expression) -> bool:
    """Whether it names a data source or something ephemeral, which comes before any change."""
    node = drop_parentheses(unquote_reference(item))
    words = spell_name(node.target if isinstance(node, Attr) else node) or spell_name(node) or ""
    return words.partition(".")[0] in ("data", "ephemeral")


def read_provider_instance(
    node: Expression | None, default: str, instances: Mapping[str, str], location: Location
) -> str:
    """The instance that `provider = NAME.ALIAS` names, or the default one. Raises EvalError.

    default: the name of the provider; instances: name in the module -> instance; location: of the
    block."""
    if node is None:
        if default not in instances:
            raise EvalError(
                location,
                f"The module has no provider {default}",
                f"Its caller passes {', '.join(instances) or 'none'} to it.",
                f"Add {default} = … to providers in the module block, or set provider here.",
            )
        return instances[default]
    name = spell_name(node)
    if name is None:
        detail = "An instance with a key comes from a provider block with for_each."
        raise EvalError(
            node,
            "This is not the name of a provider",
            detail if isinstance(node, Index) else "",
            f"Write {default} or {default}.ALIAS.",
        )
    # The provider decides before the name: an alias of another provider is never right, whether
    # it exists or not.
    instance = instances.get(name, name)
    if instance.partition(".")[0] != default:
        raise EvalError(node, f"This type belongs to the provider {default}, not to {name}")
    if name not in instances:
        raise EvalError(
            node, f"There is no provider instance {name}", advice=suggest_near(name, instances)
        )
    return instance


def read_ignored_paths(lifecycle: Block, name: str) -> tuple[tuple[str, Expression], ...] | None:
    """The paths of `ignore_changes` or `ignore_changes_except`, each with its place; `*` for `all`.
    None if the argument is not given. Raises EvalError."""
    node = lifecycle.get_argument(name)
    if node is None:
        return None
    if isinstance(node, Root) and node.name == "all":  # a keyword of Terraform, without brackets
        return (("*", node),)
    if not isinstance(node, Tuple):
        raise EvalError(
            node,
            f"{name} must be a list of paths, or all",
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
