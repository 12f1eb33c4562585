"""Which provider instance a block uses, and the keys of provider blocks with for_each."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ...core.address import render_key
from ...core.schema import STRING
from ...core.text.display import make_sentence
from ...core.value import EMPTY
from ...syntax.nodes import Expression
from ..declare.addresses import read_provider_instance
from ..declare.modules import Module
from ..expressions.code import Code, Context, Env
from ..values.conversion import convert_value
from ..values.faults import ConvertFault, EvalError, Location, Poisoned, suggest_near
from ..values.value import Computed, unmark


class ProviderChoice(Struct, frozen=True):
    """The provider instance that a block uses."""

    name: str
    """Its name in the module of the block."""
    instance: str
    """The instance of the root, without the key of a block with for_each."""
    key: Expression | None = None
    """The key that the block names."""
    code: Code | None = None
    """The compiled key."""


class ProviderKeys(Struct, frozen=True):
    """The provider instances with keys, as one instance of a module sees them."""

    declared: Mapping[str, frozenset[str] | None] = EMPTY
    """Provider block with for_each -> its keys, None after a fault."""
    handed: Mapping[str, str] = EMPTY
    """Name in the module -> the key that its caller chose, as in `["eu"]`."""


def compile_choice(
    node: Expression | None, provider: str, module: Module, context: Context, location: Location
) -> ProviderChoice:
    """Which instance a block uses. node: its argument `provider`; provider: the name of the one
    that its type belongs to. Raises EvalError."""
    providers, repeated = module.providers, module.repeated
    name, key = read_provider_instance(node, provider, providers, repeated, location)
    code = None if key is None else context.compile_node(key)
    return ProviderChoice(name, providers[name], key, code)


def choose_instance(choice: ProviderChoice, keys: ProviderKeys, env: Env) -> str:
    """The name of the instance. Raises EvalError, Deferred or Poisoned."""
    if choice.key is None or choice.code is None:
        return f"{choice.instance}{keys.handed.get(choice.name, '')}"
    declared = keys.declared.get(choice.instance)
    if declared is None:  # its block has a fault
        raise Poisoned
    value, marks = unmark(choice.code(env))
    if marks:
        raise EvalError(
            choice.key,
            "The key of a provider instance cannot depend on a sensitive value",
            "It becomes part of the name of the instance, which is shown everywhere.",
        )
    if isinstance(value, Computed):
        raise value.defer()
    try:
        key = convert_value(value, STRING)
    except ConvertFault as fault:
        summary = "The key of a provider instance must be a string"
        raise EvalError(choice.key, summary, make_sentence(fault)) from None
    if not isinstance(key, str) or key not in declared:
        suffix = render_key(key) if isinstance(key, str) else "[null]"
        raise EvalError(
            choice.key,
            f"There is no provider instance {choice.instance}{suffix}",
            f"The keys of its for_each are {', '.join(sorted(declared)) or 'none'}.",
            suggest_near(key, declared) if isinstance(key, str) else "",
        )
    return f"{choice.instance}{render_key(key)}"
