"""Connections from the environment: `KAFKAFORM_<INSTANCE>_<ATTRIBUTE>` says what a provider block
leaves out, so that one configuration serves every place that it is applied from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from ..core.dataclass import replace
from ..core.diagnostics import Diagnostic, Severity
from ..core.schema import BOOL, STRING, Attribute, ObjectSchema, list_of
from ..core.value import FrozenMap, SecretRef, Value
from ..language.providers import ProviderInfo

PREFIX = "KAFKAFORM_"
_OTHER = re.compile(r"[^A-Z0-9]")


def variable(instance: str, attribute: str) -> str:
    """The variable that gives an attribute of a provider block: `kafka.eu` and `ca_cert` are
    KAFKAFORM_KAFKA_EU_CA_CERT."""
    return PREFIX + _OTHER.sub("_", f"{instance}_{attribute}".upper())


def value_of(attribute: Attribute, source: str, text: str | None) -> Value:
    """What a text means: `true` and `false`, words between commas, or itself. A secret stays a
    reference, as in a file."""
    if text is None:
        return attribute.default
    if attribute.secret:
        return SecretRef("env", source)
    if attribute.type == list_of(STRING):
        return tuple(part.strip() for part in text.split(","))
    if attribute.type == BOOL:
        return text.strip().lower() == "true"
    return text


def completed(info: ProviderInfo, environ: Mapping[str, str], *, offline: bool) -> ProviderInfo:
    """The provider, whose blocks need not say what the environment does. offline: nobody
    connects, so nothing has to be said at all."""
    optional = {name: replace(one, required=False) for name, one in info.schema.attributes.items()}
    connect = partial(_completed, info.schema, environ, offline)
    return replace(info, schema=replace(info.schema, attributes=optional), connect=connect)


def _completed(
    schema: ObjectSchema,
    environ: Mapping[str, str],
    offline: bool,
    instance: str,
    config: FrozenMap,
) -> tuple[FrozenMap, tuple[tuple[str, Diagnostic], ...]]:
    given = {
        name: value_of(one, variable(instance, name), environ[variable(instance, name)])
        for name, one in schema.attributes.items()
        if config.get(name) == one.default and environ.get(variable(instance, name))
    }
    whole = FrozenMap({**config, **given})
    missing = [n for n, one in schema.attributes.items() if one.required and whole.get(n) is None]
    if offline:
        return whole, ()
    return whole, tuple((name, _missing(instance, schema.attributes[name])) for name in missing)


def _missing(instance: str, attribute: Attribute) -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        f'provider "{instance}" needs "{attribute.name}"',
        advice=f"{attribute.doc} Write it in the block, or set "
        f"{variable(instance, attribute.name)}.",
    )
