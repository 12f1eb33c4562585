"""The functions of the language: pure, without network, clock or environment.

Left out on purpose: what differs from run to run (timestamp, uuid, bcrypt), what tells of the
machine (pathexpand, abspath), and anything that could read more than the configuration's root.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    assume,
    collection,
    dates,
    digests,
    encoding,
    formatting,
    kind,
    mappings,
    network,
    number,
    secrets,
    sets,
    string,
    units,
    yamltext,
)
from .files import Read, file_functions
from .patterns import pattern_functions
from .spec import Function


def function_groups(read: Read | None = None) -> Mapping[str, tuple[Function, ...]]:
    """Every function under the heading that the documentation has for it."""
    return {
        "Kafka's units": units.FUNCTIONS,
        "Lists, tuples and sets": (*collection.FUNCTIONS, *sets.FUNCTIONS),
        "Maps and objects": mappings.FUNCTIONS,
        "Strings": (*string.FUNCTIONS, *formatting.FUNCTIONS, *pattern_functions()),
        "Numbers": number.FUNCTIONS,
        "Types and secrets": (*kind.FUNCTIONS, *secrets.FUNCTIONS),
        "Encodings": (*encoding.FUNCTIONS, *yamltext.FUNCTIONS),
        "Digests": digests.FUNCTIONS,
        "Files": file_functions(read),
        "Dates": dates.FUNCTIONS,
        "Network addresses": network.FUNCTIONS,
        "Assumptions": assume.FUNCTIONS,
    }


def function_table(read: Read | None = None) -> Mapping[str, Function]:
    """Every function by name. read: how files are read; None turns those functions off."""
    return {each.name: each for group in function_groups(read).values() for each in group}
