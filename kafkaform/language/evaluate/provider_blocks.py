"""Evaluate `provider` blocks, and make the default instances that have none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic
from ...core.resource import ProviderConfig
from ...core.schema import ObjectSchema
from ...core.value import FrozenMap, Value
from ..declare.blocks import Header, render_title
from ..declare.declarations import ProviderBlock, ResourceBlock
from ..expressions.code import Context, Env
from ..values.faults import Deferred, Poisoned, Skipped, make_error
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


def configure_provider(
    block: ProviderBlock, info: ProviderInfo, context: Context, env: Env, report: Report
) -> ProviderConfig | None:
    """One provider instance; None after faults, which are reported."""
    location, title = Header(block.block), f"provider.{block.instance}"
    arguments = compile_arguments(
        block.block.body,
        info.schema,
        context,
        location,
        render_title(block.block),
        report,
        ("alias",),
    )
    try:
        config = evaluate_arguments(arguments, env, report, title)
    except Skipped as skipped:
        report(make_error(location, f"{title} needs {skipped}, which is skipped"))
        return None
    except Poisoned:
        return None
    except Deferred as deferred:
        report(make_deferred_fault(location, deferred, title))
        return None
    if config is None:
        return None
    # The check sees the completed settings, since the environment can set what the block lacks.
    config, refused = info.connect(block.instance, config)
    for name, fault in refused or info.check(config):
        report(_place_fault(name, fault, block, info.schema))
    if refused:
        return None
    return ProviderConfig(block.name, block.instance, config, block.block.header_range)


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
    header = Header(block.block)
    return replace(fault, range=header.range, excerpt=header.excerpt)


def make_default_provider(
    instance: str, info: ProviderInfo, block: ResourceBlock, title: str, report: Report
) -> ProviderConfig:
    """The default instance of a provider without a provider block. block: what needs it; title: its
    name in messages."""
    location, schema = Header(block.block), info.schema
    missing = [name for name, a in schema.attributes.items() if a.required and a.default is None]
    if missing:
        report(
            make_error(
                location,
                f"{title} needs the provider {instance}, which is not configured",
                f"A provider block with {', '.join(missing)} is missing.",
                f'Write provider "{instance}" {{ {missing[0]} = … }}.',
            )
        )
    # It is completed also after a fault, so that the same fault is not reported for every object.
    defaults: dict[str, Value] = {name: a.default for name, a in schema.attributes.items()}
    defaults.update(dict.fromkeys(schema.blocks))
    config, refused = info.connect(instance, FrozenMap(defaults))
    for _, fault in refused:
        report(replace(fault, range=location.range, excerpt=location.excerpt))
    return ProviderConfig(instance, instance, config, location.range)
