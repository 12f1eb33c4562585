"""Differences between two attribute maps, path by path.

Both sides are canonical, so equal things are equal values. Paths are one or two parts long: an
attribute, or one key of a map attribute. So no general library compares the objects: map keys
contain dots ("retention.ms"), and 10,000 objects must cost milliseconds (decisions/005).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ..core.canonical import dumps
from ..core.change import Path, PathChange
from ..core.resource import Lifecycle, Observed, Reading
from ..core.schema import ObjectSchema
from ..core.text import inline, render_quantity, render_with_exact
from ..core.value import EMPTY, FrozenMap, SecretRef, Value
from ..provider.contract import ResourceType


def flatten(attributes: FrozenMap | None) -> dict[Path, Value]:
    """path -> value of everything that is set and can be read back, which excludes secrets.

    A map attribute contributes its entries.
    """
    return {p: v for p, v in _walk_leaves(attributes) if not isinstance(v, SecretRef)}


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
    (the object goes) every path of `before` is listed. Secrets are never compared, since nobody
    can read them back; with before=None (the object is new) they are listed, as references.
    fallbacks: path as text -> the value that is in effect where that path is not set.
    """
    if after is not None and before is not None:
        before = select_managed(before, after)
    old = flatten(before)
    new = flatten(after) if before is not None else dict(_walk_leaves(after))
    paths = (path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path))
    return tuple(
        PathChange(
            path,
            old.get(path),
            new.get(path),
            effective=_find_fallback(path, new, schema, fallbacks),
            sensitive=_is_sensitive(schema, path),
            effective_before=_find_fallback(path, old, schema, fallbacks),
        )
        for path in paths
    )


def _find_fallback(
    path: Path, values: Mapping[Path, Value], schema: ObjectSchema, fallbacks: FrozenMap
) -> Value:
    """What is in effect at a path where these values set nothing; None where they do."""
    fallback = fallbacks.get(render_path(path)) if fallbacks else None
    if fallback is None or path not in values:
        return fallback
    # The default of an attribute can be a word for what is in effect anyway (`INHERITED`).
    attribute = schema.find(path[0]) if len(path) == 1 else None
    return fallback if attribute is not None and values[path] == attribute.default else None


def select_managed(before: FrozenMap, after: FrozenMap) -> FrozenMap:
    """The attributes of `before` that `after` manages: the pre-image of a change."""
    return FrozenMap({n: v for n, v in before.items() if after.get(n) is not None})


def agrees(target: FrozenMap, live: FrozenMap) -> bool:
    """True if `live` has everything that `target` sets.

    Almost every object of a large plan does, so no paths are made to find that out.
    """
    if target == live:
        return True
    return all(live.get(name) == value for name, value in target.items() if value is not None)


def equals_target(target: FrozenMap, live: Observed) -> bool:
    """True if the live object is exactly what `target` asks for, apart from what others own and
    from values that would be in effect anyway."""
    target_leaves, live_leaves = flatten(target), flatten(live.attributes)
    names = {path[0] for path in target_leaves} | {n for n, v in target.items() if v is not None}
    unset = list_unset(target, live)
    compared = {
        p for p in live_leaves if p[0] in names and p not in live.foreign and p not in unset
    } | target_leaves.keys()
    return {p: live_leaves[p] for p in compared if p in live_leaves} == target_leaves


def list_unset(target: FrozenMap | None, live: Observed) -> dict[Path, Value]:
    """The values of a live object that `target` does not set and that would be in effect without
    the object. Some systems report such values as if they were set on each object."""
    unset: dict[Path, Value] = {}
    for text, value in live.fallbacks.items():
        path = parse_path(text)
        if _get_leaf(live.attributes, path) == value and _get_leaf(target, path) is None:
            unset[path] = value
    return unset


def hide_reported(reading: Reading, reported: FrozenMap) -> Reading:
    """The reading without the values that an earlier run found to be reported although nothing sets
    them. Another value than then, or one that is not in effect anyway, is shown.

    reported: path as text -> value, as a row records it.
    """
    if not reported or not isinstance(reading, Observed):
        return reading
    paths = [
        path
        for path, value in list_unset(None, reading).items()
        if reported.get(render_path(path)) == value
    ]
    return replace(reading, attributes=lay_over(reading.attributes, paths, EMPTY))


def _get_leaf(attributes: FrozenMap | None, path: Path) -> Value:
    value = (attributes or EMPTY).get(path[0])
    if len(path) == 1:
        return value
    return value.get(path[1]) if isinstance(value, FrozenMap) else None


def compare_gone(attributes: FrozenMap, schema: ObjectSchema) -> tuple[PathChange, ...]:
    """The drift of an object that no longer exists: all of it, at the empty path."""
    hidden = any(_is_sensitive(schema, (name,)) for name in attributes)
    return (PathChange((), attributes, None, sensitive=hidden),)


def render_path(path: Path) -> str:
    """A path as globs, fallbacks and messages write it: `config.retention.ms`."""
    return ".".join(path)


def parse_path(text: str) -> Path:
    """The path that `render_path` wrote."""
    name, dot, key = text.partition(".")
    return (name, key) if dot else (name,)


def render_leaf(path: Path, value: Value, kind: ResourceType) -> str:
    """The value at a path as messages write it: with its unit; a sensitive one is not shown."""
    if value is None:
        return "not set"
    if _is_sensitive(kind.schema, path):
        return "(sensitive)"
    unit = kind.unit(path) if kind.unit else ""
    if unit and render_quantity(value, unit):
        return render_with_exact(value, unit)
    return inline(dumps(value))


def render_sides(name: str, before: str, now: str) -> str:
    """What a message says about a value that is not as a plan saw it."""
    return f"{name} was {before} and is {now} now"


def is_ignored(path: Path, lifecycle: Lifecycle) -> bool:
    """True if the block leaves this path to others."""
    # The list of what counts wins: with it, everything that it does not name is left to others.
    only = lifecycle.ignore_changes_except
    if only is not None:
        return not _matches_any(path, only)
    return _matches_any(path, lifecycle.ignore_changes)


def _matches_any(path: Path, globs: Iterable[str]) -> bool:
    """True if a glob names this path or the attribute that contains it."""
    text = render_path(path)
    # `fnmatch.fnmatch` ignores case on some systems, and a plan must not depend on the computer.
    return any(fnmatch.fnmatchcase(text, glob) or glob == path[0] for glob in globs)


def lay_over(target: FrozenMap, paths: Iterable[Path], source: FrozenMap) -> FrozenMap:
    """`target` with the values of `source` at these paths; removed where `source` has none."""
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
    """What a state row keeps of attributes: those that are set, without secrets."""
    return FrozenMap(
        {
            name: FrozenMap({k: v for k, v in value.items() if not isinstance(v, SecretRef)})
            if isinstance(value, FrozenMap)
            else value
            for name, value in attributes.items()
            # Nobody can read a secret back, so a row with one would differ from every reading.
            if value is not None and not isinstance(value, SecretRef)
        }
    )


def _is_sensitive(schema: ObjectSchema, path: Path) -> bool:
    attribute = schema.find(path[0])
    return attribute is not None and (attribute.sensitive or attribute.secret)
