"""Differences between two attribute maps, path by path.

Both sides are canonical, so equal things are equal values. Paths are one or two deep by
construction: an attribute, or one key of a map attribute. That is why no general object differ
is used: map keys hold dots ("retention.ms"), and 10,000 objects must cost milliseconds.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator

from ..core.change import Path, PathChange
from ..core.resource import Lifecycle
from ..core.schema import ObjectSchema
from ..core.value import EMPTY, FrozenMap, Value


def flatten(attributes: FrozenMap | None) -> dict[Path, Value]:
    """path -> value of everything that is set; a map attribute contributes its entries."""
    flat: dict[Path, Value] = {}
    for name, value in (attributes or EMPTY).items():
        if isinstance(value, FrozenMap):
            flat.update({(name, key): item for key, item in value.items() if item is not None})
        elif value is not None:
            flat[(name,)] = value
    return flat


def compare(
    before: FrozenMap | None,
    after: FrozenMap | None,
    *,
    schema: ObjectSchema,
    fallbacks: FrozenMap = EMPTY,
) -> tuple[PathChange, ...]:
    """Every path that differs, sorted.

    An attribute that `after` leaves at None is not managed and not compared; with after=None
    (the object goes) every path of `before` is.
    """
    if after is not None and before is not None:
        managed = {name for name, value in after.items() if value is not None}
        before = FrozenMap({name: value for name, value in before.items() if name in managed})
    old, new = flatten(before), flatten(after)
    return tuple(
        PathChange(
            path,
            old.get(path),
            new.get(path),
            effective=fallbacks.get(dotted(path)) if path not in new else None,
            sensitive=_is_sensitive(schema, path),
        )
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path)
    )


def gone(attributes: FrozenMap, schema: ObjectSchema) -> tuple[PathChange, ...]:
    """The drift of an object that is not there any more: the whole of it, at the empty path."""
    hidden = any(_is_sensitive(schema, (name,)) for name in attributes)
    return (PathChange((), attributes, None, sensitive=hidden),)


def dotted(path: Path) -> str:
    """`config.retention.ms`: how globs, fallbacks and messages write a path."""
    return ".".join(path)


def ignored(path: Path, lifecycle: Lifecycle) -> bool:
    """True if the block leaves this path to others."""
    only = lifecycle.ignore_changes_except
    if only is not None:
        return not _named(path, only)
    return _named(path, lifecycle.ignore_changes)


def _named(path: Path, globs: Iterable[str]) -> bool:
    """True if a glob names this path or the attribute that holds it."""
    text = dotted(path)
    return any(fnmatch.fnmatchcase(text, glob) or glob == path[0] for glob in globs)


def lay_over(target: FrozenMap, paths: Iterable[Path], source: FrozenMap) -> FrozenMap:
    """`target` with the values that `source` has at these paths (removed where it has none)."""
    result: dict[str, Value] = dict(target)
    for path in paths:
        if len(path) == 1:
            result[path[0]] = source.get(path[0])
            continue
        name, key = path
        inner = result.get(name)
        entries = dict(inner) if isinstance(inner, FrozenMap) else {}
        entries.pop(key, None)
        origin = source.get(name)
        if isinstance(origin, FrozenMap) and key in origin:
            entries[key] = origin[key]
        result[name] = FrozenMap(entries)
    return FrozenMap(result)


def set_only(attributes: FrozenMap) -> FrozenMap:
    """The attributes that are set: what a state row keeps."""
    return FrozenMap({name: value for name, value in attributes.items() if value is not None})


def changed_names(paths: Iterable[PathChange]) -> Iterator[str]:
    """The top-level attribute names that these paths touch, each once, sorted."""
    yield from sorted({change.path[0] for change in paths})


def _is_sensitive(schema: ObjectSchema, path: Path) -> bool:
    attribute = schema.find(path[0])
    return attribute is not None and (attribute.sensitive or attribute.secret)
