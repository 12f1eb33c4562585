"""Choose the names of generated blocks, locals and variables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...syntax.write import is_identifier

SEPARATORS = "._-/ "
_FOREIGN = re.compile(r"[^A-Za-z0-9_]+")


def cut_at_separator(text: str) -> str:
    """Without the word that it breaks off in."""
    return text[: max((text.rfind(mark) for mark in SEPARATORS), default=-1) + 1]


def drop_types(texts: Iterable[str]) -> list[str]:
    """Without the type in front: `User:ci` is ci."""
    return [text.partition(":")[2] or text for text in texts]


def get_noun(kind: str) -> str:
    """`file` for `textstore_file`: the type without the name of its provider."""
    return kind.partition("_")[2] or kind


def make_identifier(text: str, otherwise: str) -> str:
    """The text as a name: small letters, digits, single _."""
    name = re.sub(r"_{2,}", "_", _FOREIGN.sub("_", text)).strip("_").lower() or otherwise
    return name if is_identifier(name) else f"{otherwise}_{name}"


def make_variable_name(*words: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", "_".join(words).upper())


def make_unique(name: str, names: set[str]) -> str:
    """The name, or the next free one with a number; taken from now on."""
    number, result = 1, name
    while result in names:
        number += 1
        result = f"{name}_{number}"
    names.add(result)
    return result
