"""Write long texts of objects, such as schemas, as files of their own beside generated
configuration, which reads them with `file()`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ...core.resource import Identity
from ...core.schema import AttributeSchema
from ...core.value import FrozenMap
from ...provider.contract import ResourceType
from ...syntax.write import Code, quote_string
from .blocks import UndeclaredObject

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120
"""Characters of a file name, without its ending."""


def extract_documents(
    items: Iterable[UndeclaredObject], types: Mapping[str, ResourceType]
) -> tuple[tuple[UndeclaredObject, ...], dict[str, str]]:
    """The objects with `file("schemas/NAME.avsc")` in place of each long text, and the files: path
    -> text. The paths are the same for the same objects, whatever their order is."""
    documents: dict[str, str] = {}
    paths: set[str] = set()
    changed: dict[int, UndeclaredObject] = {}
    indexed = sorted(enumerate(items), key=lambda pair: pair[1].identity)
    for index, item in indexed:
        codes: dict[str, Code] = {}
        for attribute, ending in list_texts(item.arguments, types[item.identity.kind]):
            path = choose_path(item.identity, ending, paths)
            documents[path] = str(item.arguments[attribute.name])
            codes[attribute.name] = Code(f"file({quote_string(path)})")
        arguments: Mapping[str, object] = {**item.arguments, **codes}
        changed[index] = replace(item, arguments=FrozenMap(arguments)) if codes else item
    return tuple(changed[index] for index in sorted(changed)), documents


def list_texts(arguments: FrozenMap, kind: ResourceType) -> Iterator[tuple[AttributeSchema, str]]:
    """The arguments that are files, with the endings of these."""
    for attribute in kind.schema.attributes.values():
        value = arguments.get(attribute.name)
        if attribute.ending is not None and isinstance(value, str) and value:
            yield attribute, attribute.ending(arguments)


def choose_path(identity: Identity, ending: str, paths: set[str]) -> str:
    """A path that no other document has, also where the case of letters makes no difference.
    paths: the paths of the others, in small letters."""
    folder = f"{identity.kind.rpartition('_')[2]}s"
    stem = _UNSAFE.sub("_", identity.key).strip("._")[:_LONGEST] or "document"
    number, name = 1, stem
    while f"{folder}/{name}{ending}".lower() in paths:
        number += 1
        name = f"{stem}_{number}"
    paths.add(f"{folder}/{name}{ending}".lower())
    return f"{folder}/{name}{ending}"
