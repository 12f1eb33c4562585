"""The functions of the language: pure, without network, clock or environment.

Left out on purpose: what differs from run to run (timestamp, uuid, bcrypt), what tells of the
machine (pathexpand, abspath), and anything that could read more than the configuration's root.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import collection, encoding, formatting, kind, number, sets, string
from .files import Read, file_functions
from .patterns import pattern_functions
from .secrets import FUNCTIONS as SECRETS
from .spec import Function

_PURE = (
    *collection.FUNCTIONS,
    *encoding.FUNCTIONS,
    *formatting.FUNCTIONS,
    *kind.FUNCTIONS,
    *number.FUNCTIONS,
    *sets.FUNCTIONS,
    *string.FUNCTIONS,
    *SECRETS,
)


def function_table(read: Read | None = None) -> Mapping[str, Function]:
    """Every function by name. read: how files are read; None turns those functions off."""
    return {each.name: each for each in (*_PURE, *pattern_functions(), *file_functions(read))}
