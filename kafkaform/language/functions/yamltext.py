"""`yamldecode` and `yamlencode`: YAML 1.2, with the additional words of go-cty-yaml (`yes`, `off`).

PyYAML only scans and parses here. Its own constructor reads YAML 1.1, so `012` would be 10 and
`1:30` 90, and it would build values without the limits that hostile texts make necessary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]  # has no stubs
from msgspec import Struct, field

from ...core.schema import STRING
from ..values.conversion import convert_value
from ..values.faults import LIMITS, FunctionFault, LimitFault
from ..values.value import (
    FIELDS,
    NULL,
    SEQUENCES,
    Null,
    Number,
    ObjectVal,
    TupleVal,
    Val,
    depth_of,
    normalise_text,
    parse_number,
    size_of,
    work_of,
)
from .dates import normalise_time
from .encoding import decode_base64
from .spec import Function, Param, make_string_param

# -- scalars


def _list_forms(*words: str) -> tuple[str, ...]:
    return tuple(form for word in words for form in (word, word.title(), word.upper()))


_WORDS: Mapping[str, Val] = {
    **dict.fromkeys(("", "~", *_list_forms("null")), NULL),
    **dict.fromkeys(_list_forms("y", "yes", "true", "on"), True),
    **dict.fromkeys(_list_forms("n", "no", "false", "off"), False),
}
_BASES = {"0o": 8, "0x": 16}
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:([Tt ])([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def _parse_number(source: str) -> Number | None:
    if _BASED.fullmatch(source) and len(source) <= LIMITS.digits:
        return int(source[2:], _BASES[source[:2]])
    return parse_number(source) if _NUMBER.fullmatch(source) else None


def _parse_date(source: str) -> str | None:
    """A point in time in the form of RFC 3339, which the language's functions use."""
    match = _DATE.fullmatch(source)
    if match is None or (match[4] and (match[4] == " ") == bool(match[8])):
        return None  # go-cty-yaml wants an offset from UTC behind a T, and none behind a blank
    month, day, hour, minute, second = (match[n].zfill(2) if match[n] else "00" for n in _PARTS)
    try:
        return normalise_time(f"{match[1]}-{month}-{day}T{hour}:{minute}:{second}{match[8] or 'Z'}")
    except FunctionFault:
        # A day that no month has: such a scalar stays a text.
        return None


_PARTS = (2, 3, 5, 6, 7)


def _parse_bool(source: str) -> bool | None:
    word = _WORDS.get(source)
    return word if isinstance(word, bool) else None


def _check_binary(source: str) -> str:
    decode_base64(source)
    return source


_TAGS: Mapping[str, Callable[[str], Val | None]] = {
    "str": normalise_text,
    "binary": _check_binary,
    "bool": _parse_bool,
    "int": _parse_number,
    "float": _parse_number,
    "null": lambda source: NULL,
    "timestamp": _parse_date,
}
_PREFIX = "tag:yaml.org,2002:"


def _read_plain(source: str) -> Val:
    """The value of a word without quotes and tag."""
    if source in _WORDS:
        return _WORDS[source]
    if _NO_NUMBER.fullmatch(source):
        raise FunctionFault("infinite numbers and NaN are not supported", 0)
    for read in (_parse_date, _parse_number) if source[0] in "+-.0123456789" else ():
        value = read(source)
        if value is not None:
            return value
    return normalise_text(source)


# -- documents


class _YamlReader(Struct, eq=False):
    """Makes values of PyYAML's events."""

    events: Iterator[Any]
    anchors: dict[str, Val] = field(default_factory=dict)
    """The values that aliases can refer to, by name."""
    open: set[str] = field(default_factory=set)
    """The names of anchors whose value is not complete yet: such an alias would contain itself."""
    count: int = 0
    """How many values the text means. The value of an alias is shared in memory, but counts
    each time: nine lines of aliases can mean a billion values ("billion laughs")."""

    def read_document(self) -> Val:
        kinds = [type(next(self.events)).__name__, type(next(self.events)).__name__]
        if kinds[1] != "DocumentStartEvent":
            raise FunctionFault("there is no YAML document in the text", 0)
        value = self.read_value(next(self.events), LIMITS.depth)
        next(self.events)
        if type(next(self.events)).__name__ != "StreamEndEvent":
            raise FunctionFault("there is more than one YAML document in the text", 0)
        return value

    def read_value(self, event: Any, depth: int) -> Val:
        """depth: how many levels of collections are still allowed."""
        kind = type(event).__name__
        if kind == "AliasEvent":
            return self._read_alias(event.anchor)
        self._count_values(1)
        if depth < 0:
            raise FunctionFault("the text is nested too deeply", 0)
        if event.anchor:
            self.open.add(event.anchor)
        value = _READERS[kind](self, event, depth)
        if event.anchor:
            self.open.discard(event.anchor)
            self.anchors[event.anchor] = value
        return value

    def _count_values(self, count: int) -> None:
        self.count += count
        if self.count > LIMITS.elements:
            raise LimitFault(f"the text stands for more than {LIMITS.elements:,} values", 0)

    def _read_alias(self, name: str) -> Val:
        if name in self.open or name not in self.anchors:
            raise FunctionFault(
                f"*{name[:60]} refers to an anchor that is not defined before it", 0
            )
        self._count_values(size_of(self.anchors[name]))
        return self.anchors[name]

    def read_scalar(self, event: Any, _: int) -> Val:
        tag = (event.tag or "").removeprefix(_PREFIX)
        if not tag:
            return normalise_text(event.value) if event.style else _read_plain(event.value)
        if tag not in _TAGS:
            raise FunctionFault(f"the tag {event.tag[:60]} is not supported", 0)
        value = _TAGS[tag](event.value)
        if value is None:
            raise FunctionFault(f"a value has the tag !!{tag}, which does not fit it", 0)
        return value

    def read_sequence(self, event: Any, depth: int) -> Val:
        _expect_tag(event, "seq")
        items = []
        while type(inner := next(self.events)).__name__ != "SequenceEndEvent":
            items.append(self.read_value(inner, depth - 1))
        return TupleVal(tuple(items))

    def read_mapping(self, event: Any, depth: int) -> Val:
        _expect_tag(event, "map")
        fields: dict[str, Val] = {}
        own_names: set[str] = set()
        while type(key := next(self.events)).__name__ != "MappingEndEvent":
            if _is_merge(key):
                for merged_fields in self._read_merged(depth):
                    fields.update(merged_fields)
                continue
            name = self._read_key(key)
            if name in own_names:
                raise FunctionFault(f"the key {name[:60]} occurs twice in one mapping", 0)
            own_names.add(name)
            fields[name] = self.read_value(next(self.events), depth - 1)
        return ObjectVal(fields)

    def _read_key(self, event: Any) -> str:
        """The text of a key, as it is written: `n` is not converted to false."""
        if type(event).__name__ != "ScalarEvent" or isinstance(self.read_value(event, 0), Null):
            raise FunctionFault("a key must be a string", 0)
        return normalise_text(event.value)

    def _read_merged(self, depth: int) -> Iterator[Mapping[str, Val]]:
        """The fields that `<<:` adds: of a mapping, or of each mapping in a sequence."""
        value = self.read_value(next(self.events), depth - 1)
        for mapping in value.items if isinstance(value, TupleVal) else (value,):
            if not isinstance(mapping, ObjectVal):
                raise FunctionFault("only mappings can be merged into a mapping with <<", 0)
            self._count_values(len(mapping.fields))
            yield mapping.fields


_READERS: Mapping[str, Callable[[_YamlReader, Any, int], Val]] = {
    "ScalarEvent": _YamlReader.read_scalar,
    "SequenceStartEvent": _YamlReader.read_sequence,
    "MappingStartEvent": _YamlReader.read_mapping,
}


def _expect_tag(event: Any, tag: str) -> None:
    if event.tag not in (None, _PREFIX + tag):
        raise FunctionFault(f"the tag {event.tag[:60]} is not supported", 0)


def _is_merge(event: Any) -> bool:
    if type(event).__name__ != "ScalarEvent":
        return False
    return bool(
        event.tag == f"{_PREFIX}merge" or not (event.tag or event.style or event.value != "<<")
    )


def _yamldecode(source: str) -> Val:
    try:
        return _YamlReader(yaml.parse(source, Loader=yaml.SafeLoader)).read_document()
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        position = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise FunctionFault(f"the text is not YAML{position}", 0) from None


# -- writing


def _yamlencode(value: Val) -> Val:
    indented = size_of(value) + 2 * depth_of(value) * work_of(value)  # at most, with indentation
    if indented > 2 * LIMITS.characters:
        raise LimitFault("the value is too large for one string", 0)
    events = (
        yaml.StreamStartEvent(),
        yaml.DocumentStartEvent(explicit=False),
        *_make_events(value),
        yaml.DocumentEndEvent(explicit=False),
        yaml.StreamEndEvent(),
    )
    written = str(yaml.emit(events, Dumper=yaml.SafeDumper, allow_unicode=True))
    return written.removeprefix("--- ")  # which the library puts before a lone empty string


def _make_events(value: Val) -> Iterator[Any]:
    """The events for writing a value."""
    # Strings are always quoted (or literal, with several lines), so none can be read as a bool.
    if isinstance(value, SEQUENCES):
        yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False)
        for item in value.items:
            yield from _make_events(item)
        yield yaml.SequenceEndEvent()
    elif isinstance(value, FIELDS):
        yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=False)
        for name in sorted(value.fields):
            yield from _make_events(name)
            yield from _make_events(value.fields[name])
        yield yaml.MappingEndEvent()
    elif isinstance(value, str):
        style = "|" if "\n" in value else '"'
        yield yaml.ScalarEvent(None, None, (True, True), value, style=style)
    else:
        yield yaml.ScalarEvent(None, None, (True, True), _render_word(value))


def _render_word(value: Val) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if isinstance(value, Null) else str(convert_value(value, STRING))


FUNCTIONS = (
    Function(
        "yamldecode",
        "The value of a YAML text.",
        _yamldecode,
        (make_string_param(),),
        cost=48,
        characters=0.25,
        steps=100,
    ),
    Function(
        "yamlencode",
        "The value as YAML, with sorted keys.",
        _yamlencode,
        (Param("value", null=True),),
        cost=2,
        characters=0.5,
        steps=100,
    ),
)
