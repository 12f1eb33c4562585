"""Read expressions that name a resource, a provider instance or attributes, and have no value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct

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


class ProviderName(Struct, frozen=True):
    """How a block or a module call names a provider instance."""

    name: str | None
    """NAME or NAME.ALIAS; None if it is anything else."""
    key: Expression | None
    """The key in `NAME.ALIAS[KEY]`: an instance of a provider block with for_each."""


def split_provider_name(node: Expression) -> ProviderName:
    """The name and the key of a provider instance."""
    target = drop_parentheses(unquote_reference(node))
    if isinstance(target, Index):
        return ProviderName(spell_name(target.target), target.key)
    return ProviderName(spell_name(target), None)


def list_provider_keys(nodes: Iterable[Expression | None]) -> list[Expression]:
    """The keys in these names of provider instances."""
    keys = (split_provider_name(node).key for node in nodes if node is not None)
    return [key for key in keys if key is not None]


def find_key_fault(
    provider: ProviderName, repeated: Collection[str], node: Expression
) -> EvalError | None:
    """What is wrong with the key of a provider instance, or with its absence. repeated: the names
    of provider blocks with for_each."""
    name = provider.name
    if provider.key is None and name in repeated:
        return EvalError(
            node,
            f"{name} has several instances",
            "Its provider block has for_each.",
            f'Write {name}["KEY"], or {name}[each.key] where the block has the same for_each.',
        )
    if provider.key is not None and name not in repeated:
        return EvalError(
            node,
            f"{name} has no instances with keys",
            "Only a provider block of the root folder with for_each has them.",
            f"Write {name}.",
        )
    return None


def read_provider_instance(
    node: Expression | None,
    default: str,
    instances: Mapping[str, str],
    repeated: Collection[str],
    location: Location,
) -> tuple[str, Expression | None]:
    """The name in the module of the instance that a block uses, which is the default one if it
    names none, and its key. Raises EvalError.

    default: the name of the provider; instances: name in the module -> instance; repeated: the
    names of provider blocks with for_each; location: of the block.
    """
    if node is None:
        if default not in instances:
            raise EvalError(
                location,
                f"The module has no provider {default}",
                f"Its caller passes {', '.join(instances) or 'none'} to it.",
                f"Add {default} = … to providers in the module block, or set provider here.",
            )
        return default, None
    provider = split_provider_name(node)
    name = provider.name
    if name is None:
        raise EvalError(
            node,
            "This is not the name of a provider",
            advice=f"Write {default} or {default}.ALIAS.",
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
    if (fault := find_key_fault(provider, repeated, node)) is not None:
        raise fault
    return name, provider.key


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
