"""`provider` blocks, and the default instances that are used without one."""

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
"""What a schema cannot say of a provider block: (attribute, fault without a place)."""

Connect = Callable[[str, FrozenMap], tuple[FrozenMap, Sequence[tuple[str, Diagnostic]]]]
"""What an instance connects with, of what its block says, and what is refused."""


class ProviderInfo(Struct, frozen=True):
    """What the language knows of a provider."""

    schema: ObjectSchema
    check: Check = lambda _: ()
    connect: Connect = lambda _, config: (config, ())


def configure_provider(
    block: ProviderBlock, info: ProviderInfo, context: Context, env: Env, report: Report
) -> ProviderConfig | None:
    """One provider instance, or None after a fault."""
    place, what = Header(block.block), f"provider.{block.instance}"
    arguments = compile_arguments(
        block.block.body, info.schema, context, place, render_title(block.block), report, ("alias",)
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
    config, refused = info.connect(block.instance, config)
    for name, fault in refused or info.check(config):
        report(_place_fault(name, fault, block, info.schema))
    if refused:
        return None
    return ProviderConfig(block.name, block.instance, config, block.block.header_range)


def _place_fault(
    name: str, fault: Diagnostic, block: ProviderBlock, schema: ObjectSchema
) -> Diagnostic:
    """The fault at the argument that gives this attribute, without the line of a secret."""
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
    """The default instance that `block` needs and no provider block configures."""
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
    defaults: dict[str, Value] = {name: a.default for name, a in schema.attributes.items()}
    defaults.update(dict.fromkeys(schema.blocks))
    config, refused = info.connect(instance, FrozenMap(defaults))
    for _, fault in refused:
        report(replace(fault, range=place.range, excerpt=place.excerpt))
    return ProviderConfig(instance, instance, config, place.range)
