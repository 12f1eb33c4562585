"""Evaluate `provider` blocks, and make the default instances that have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import render_key
from ...core.diagnostics import Diagnostic
from ...core.resource import ProviderConfig
from ...core.schema import STRING, ObjectSchema
from ...core.text.display import make_sentence
from ...core.value import EMPTY, FrozenMap, Value
from ...syntax.nodes import Expression
from ..declare.addresses import read_provider_instance
from ..declare.blocks import Header, render_title
from ..declare.declarations import ProviderBlock, ResourceBlock
from ..declare.modules import Module
from ..expressions.code import Code, Context, Env
from ..values.conversion import convert_value
from ..values.faults import (
    ConvertFault,
    Deferred,
    EvalError,
    Place,
    Poisoned,
    Skipped,
    make_error,
    suggest_near,
)
from ..values.value import Computed, unmark
from .arguments import Report, compile_arguments, evaluate_arguments, make_deferred_fault

Check = Callable[[FrozenMap], Sequence[tuple[str, Diagnostic]]]
"""Finds faults that a schema cannot express: pairs of (attribute, fault without a place)."""

Connect = Callable[[str, FrozenMap], tuple[FrozenMap, Sequence[tuple[str, Diagnostic]]]]
"""Completes the settings of an instance, by the environment: (instance, settings of its block) ->
the settings to connect with, and what is refused."""


class ProviderInfo(Struct, frozen=True):
    """What the language knows about a provider."""

    schema: ObjectSchema
    check: Check = lambda _: ()
    connect: Connect = lambda _, config: (config, ())


# ── which instance a block uses ─────────────────────────────────────────────────────────


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

    known: Mapping[str, frozenset[str] | None] = EMPTY
    """Provider block with for_each -> its keys, None after a fault."""
    handed: Mapping[str, str] = EMPTY
    """Name in the module -> the key that its caller chose, as in `["eu"]`."""


def compile_choice(
    node: Expression | None, provider: str, module: Module, context: Context, place: Place
) -> ProviderChoice:
    """Which instance a block uses. node: its argument `provider`; provider: the name of the one
    that its type belongs to. Raises EvalError."""
    providers, repeated = module.providers, module.repeated
    name, key = read_provider_instance(node, provider, providers, repeated, place)
    code = None if key is None else context.compile_node(key)
    return ProviderChoice(name, providers[name], key, code)


def choose_instance(choice: ProviderChoice, keys: ProviderKeys, env: Env) -> str:
    """The name of the instance. Raises EvalError, Deferred or Poisoned."""
    if choice.key is None or choice.code is None:
        return f"{choice.instance}{keys.handed.get(choice.name, '')}"
    known = keys.known.get(choice.instance)
    if known is None:  # its block has a fault
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
    if not isinstance(key, str) or key not in known:
        shown = render_key(key) if isinstance(key, str) else "[null]"
        raise EvalError(
            choice.key,
            f"There is no provider instance {choice.instance}{shown}",
            f"The keys of its for_each are {', '.join(sorted(known)) or 'none'}.",
            suggest_near(key, known) if isinstance(key, str) else "",
        )
    return f"{choice.instance}{render_key(key)}"


# ── blocks ──────────────────────────────────────────────────────────────────────────────


def configure_provider(
    block: ProviderBlock,
    instance: str,
    info: ProviderInfo,
    context: Context,
    env: Env,
    report: Report,
) -> ProviderConfig | None:
    """One provider instance; None after faults, which are reported."""
    place, what = Header(block.block), f"provider.{instance}"
    title = render_title(block.block)
    meta = ("alias", "for_each") if block.several else ("alias",)
    arguments = compile_arguments(
        block.block.body, info.schema, context, place, title, report, meta
    )
    try:
        config = evaluate_arguments(arguments, env, report, what)
    except Skipped as skipped:
        report(make_error(place, f"{what} needs {skipped}, which is skipped"))
        return None
    except Poisoned:
        return None
    except Deferred as deferred:
        report(make_deferred_fault(place, deferred, what))
        return None
    if config is None:
        return None
    # The check sees the completed settings, since the environment can set what the block lacks.
    config, refused = info.connect(instance, config)
    for name, fault in refused or info.check(config):
        report(_place_fault(name, fault, block, info.schema))
    if refused:
        return None
    return ProviderConfig(block.name, instance, config, block.block.header_range)


def _place_fault(
    name: str, fault: Diagnostic, block: ProviderBlock, schema: ObjectSchema
) -> Diagnostic:
    """The fault at the argument that sets this attribute. The source line of a secret is left
    out."""
    attribute = schema.attributes.get(name)
    hide = attribute is not None and (attribute.secret or attribute.sensitive)
    for spelling, item in block.block.body.attributes.items():
        if schema.find(spelling) is attribute:
            return replace(fault, range=item.range, excerpt=None if hide else item.excerpt)
    place = Header(block.block)
    return replace(fault, range=place.range, excerpt=place.excerpt)


def make_default_provider(
    instance: str, info: ProviderInfo, block: ResourceBlock, what: str, report: Report
) -> ProviderConfig:
    """The default instance of a provider without a provider block. block: what needs it; what: its
    name in messages."""
    place, schema = Header(block.block), info.schema
    missing = [name for name, a in schema.attributes.items() if a.required and a.default is None]
    if missing:
        report(
            make_error(
                place,
                f"{what} needs the provider {instance}, which is not configured",
                f"A provider block with {', '.join(missing)} is missing.",
                f'Write provider "{instance}" {{ {missing[0]} = … }}.',
            )
        )
    # It is completed also after a fault, so that the same fault is not reported for every object.
    defaults: dict[str, Value] = {name: a.default for name, a in schema.attributes.items()}
    defaults.update(dict.fromkeys(schema.blocks))
    config, refused = info.connect(instance, FrozenMap(defaults))
    for _, fault in refused:
        report(replace(fault, range=place.range, excerpt=place.excerpt))
    return ProviderConfig(instance, instance, config, place.range)
