"""What the installed providers and the language offer to a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from ..core.errors import KafkaformError
from ..core.schema import ObjectSchema
from ..language.evaluate.run import Schemas
from ..language.expressions.special_forms import FORMS
from ..language.functions import group_functions
from ..language.functions.spec import render_usage
from ..provider.registry import Registry
from ..workflow.configuration.evaluation import collect_schemas


class FunctionPage(NamedTuple):
    """A function, for people."""

    usage: str
    doc: str


class Library(Struct, frozen=True):
    """What a configuration can use."""

    schemas: Schemas
    simulations: Mapping[str, ObjectSchema]
    """Provider -> what a `simulate` block of it can contain."""
    functions: Mapping[str, FunctionPage]


def load_library() -> Library:
    """Everything that is installed. A provider that cannot be loaded is left out: what is wrong
    with it is a fault of each configuration that uses it."""
    registry = Registry()
    providers, simulations = {}, {}
    for name in registry.names:
        with suppress(KafkaformError):
            providers[name] = registry.load(name)
            simulations[name] = registry.load_simulation(name).settings
    pages = {
        function.name: FunctionPage(function.usage(), function.doc)
        for group in group_functions().values()
        for function in group
    }
    for name, form in FORMS.items():
        pages[name] = FunctionPage(render_usage(name, form.params, form.rest), form.doc)
    return Library(collect_schemas(providers), simulations, pages)
