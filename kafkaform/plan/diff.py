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
from ..core.value import EMPTY, FrozenMap, SecretRef, Value


def flatten(attributes: FrozenMap | None) -> dict[Path, Value]:
    """path -> value of everything that is set and can be read back, which secrets cannot; a map
    attribute contributes its entries."""
    return {p: v for p, v in _walk_leaves(attributes) if not isinstance(v, SecretRef)}


def find_secrets(attributes: FrozenMap | None) -> dict[Path, SecretRef]:
    """path -> reference of every secret among the attributes: what `flatten` leaves out."""
    return {p: v for p, v in _walk_leaves(attributes) if isinstance(v, SecretRef)}


def _walk_leaves(attributes: FrozenMap | None) -> Iterator[tuple[Path, Value]]:
    for name, value in (attributes or EMPTY).items():
        entries = value.items() if isinstance(value, FrozenMap) else ()
        yield from (((name, key), item) for key, item in entries if item is not None)
        if value is not None and not isinstance(value, FrozenMap):
            yield (name,), value


def compare(
    before: FrozenMap | None,
    after: FrozenMap | None,
    *,
    schema: ObjectSchema,
    fallbacks: FrozenMap = EMPTY,
) -> tuple[PathChange, ...]:
    """Every path that differs, sorted.

    An attribute that `after` leaves at None is not managed and not compared; with after=None
    (the object goes) every path of `before` is. Secrets are never compared, since nobody can
    read them back; with before=None (the object is new) they are listed, as references.
    """
    if after is not None and before is not None:
        managed = {name for name, value in after.items() if value is not None}
        before = FrozenMap({name: value for name, value in before.items() if name in managed})
    old, new = flatten(before), flatten(after)
    if before is None:
        new.update(find_secrets(after))
    return tuple(
        PathChange(
            path,
            old.get(path),
            new.get(path),
            effective=fallbacks.get(render_path(path)) if path not in new else None,
            sensitive=_is_sensitive(schema, path),
        )
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path)
    )


def agrees(wanted: FrozenMap, live: FrozenMap) -> bool:
    """True if everything that `wanted` sets is so in `live`: what almost every object of a large
    plan is, found without looking at paths."""
    if wanted == live:
        return True
    return all(live.get(name) == value for name, value in wanted.items() if value is not None)


def compare_gone(attributes: FrozenMap, schema: ObjectSchema) -> tuple[PathChange, ...]:
    """The drift of an object that is not there any more: the whole of it, at the empty path."""
    hidden = any(_is_sensitive(schema, (name,)) for name in attributes)
    return (PathChange((), attributes, None, sensitive=hidden),)


def render_path(path: Path) -> str:
    """`config.retention.ms`: how globs, fallbacks and messages write a path."""
    return ".".join(path)


def is_ignored(path: Path, lifecycle: Lifecycle) -> bool:
    """True if the block leaves this path to others."""
    only = lifecycle.ignore_changes_except
    if only is not None:
        return not _matches_any(path, only)
    return _matches_any(path, lifecycle.ignore_changes)


def _matches_any(path: Path, globs: Iterable[str]) -> bool:
    """True if a glob names this path or the attribute that holds it."""
    text = render_path(path)
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


def keep_set_values(attributes: FrozenMap) -> FrozenMap:
    """The attributes that are set and no secrets: what a state row keeps."""
    return FrozenMap(
        {name: _drop_secrets(value) for name, value in attributes.items() if _is_recordable(value)}
    )


def _drop_secrets(value: Value) -> Value:
    if not isinstance(value, FrozenMap):
        return value
    return FrozenMap({k: v for k, v in value.items() if not isinstance(v, SecretRef)})


def _is_recordable(value: Value) -> bool:
    return value is not None and not isinstance(value, SecretRef)


def list_changed_names(paths: Iterable[PathChange]) -> Iterator[str]:
    """The top-level attribute names that these paths touch, each once, sorted."""
    yield from sorted({change.path[0] for change in paths})


def _is_sensitive(schema: ObjectSchema, path: Path) -> bool:
    attribute = schema.find(path[0])
    return attribute is not None and (attribute.sensitive or attribute.secret)
