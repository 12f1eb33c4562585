"""Parse YAML into nodes that know their line, within limits.

A document that is not YAML, and a template, is listed as left out; the others are read.

Only scalars, lists and maps with text keys exist here, whatever tags a file has: nothing in a file
can name a class. An alias counts as much as what it stands for, so a file cannot unfold into more
than MAX_NODES (a "billion laughs").

Each tool's own parser reads a plain scalar differently: YAML 1.1 says that `no` is false and 010 is
8, and the parsers follow it to different degrees. Source: `github.com/ghodss/yaml` and
`sigs.k8s.io/yaml` on go-yaml 2.4 (`resolve.go`), whose values become JSON;
jackson-dataformat-yaml 2.17 (`YAMLParser._decodeScalar`) on SnakeYAML's resolver.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import yaml  # type: ignore[import-untyped]  # has no stubs
from msgspec import Struct

from kafkaform.core.errors import UsageError

Scalar = tuple[str, str]
"""Its kind (null, bool, int, float or text), and its value as the parser hands it on."""
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


def _spell(words: tuple[str, ...]) -> frozenset[str]:
    """The spellings that YAML 1.1 allows: true, True, TRUE."""
    return frozenset(text for word in words for text in (word, word.capitalize(), word.upper()))


_BOOLS: Mapping[str, str] = {
    **dict.fromkeys(_spell(_TRUE), "true"),
    **dict.fromkeys(_spell(_FALSE), "false"),
}
_GO_BOOLS: Mapping[str, str] = {
    **_BOOLS,
    **{"y": "true", "Y": "true", "n": "false", "N": "false"},
}
_RADIX = re.compile(r"([-+]?)0(b[01]+|x[0-9a-fA-F]+|o?[0-7]+)")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_GO_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_JAVA_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
)
_LONGEST_NUMBER = 80
_BASES = {"b": 2, "x": 16, "o": 8}


def _read_whole(text: str) -> str | None:
    """A whole number in decimal, hexadecimal, binary or octal digits."""
    if _DECIMAL.fullmatch(text):
        # Not through int(), which refuses texts of more than 4,300 digits.
        return "0" if text.strip("+-") == "0" else text.removeprefix("+")
    if len(text) > _LONGEST_NUMBER or (match := _RADIX.fullmatch(text)) is None:
        return None
    digits = match[2]
    base = _BASES.get(digits[0], 8)
    return str(int(match[1] + digits.lstrip("bxo"), base))


def _resolve_go(text: str) -> Scalar:
    if text in _NULLS:
        return "null", ""
    if text in _GO_BOOLS:
        return "bool", _GO_BOOLS[text]
    plain = text.replace("_", "")
    # `_` alone is a text for it, too.
    if plain and (whole := _read_whole(plain)) is not None:
        return "int", whole
    if _GO_FLOAT.fullmatch(plain):
        return "float", _write_json(float(plain))
    return "text", text


def _write_json(number: float) -> str:
    """A number as Go writes it into JSON: 1.0e+9 is 1000000000."""
    if number and not 1e-6 <= abs(number) < 1e21:
        return repr(number)
    plain = f"{Decimal(repr(number)):f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _resolve_java(text: str) -> Scalar:
    if text in _NULLS:
        return "null", ""
    if text in _BOOLS:
        return "bool", _BOOLS[text]
    if "o" not in text and not text.startswith("_"):
        whole = _read_whole(text.replace("_", ""))
        if whole is not None:
            return "int", whole
    if _JAVA_FLOAT.fullmatch(text):
        return "float", _write_double(float(text.replace("_", "")))
    # Times such as 1:30, numbers of base 60 in YAML 1.1, stay texts.
    return "text", text


def _write_double(number: float) -> str:
    """`Double.toString`: 1.0e+9 is 1.0E9."""
    if not math.isfinite(number):
        return repr(number)
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number) if "." in repr(number) else f"{number:.1f}"
    digits, _, exponent = f"{Decimal(repr(number)).normalize():E}".partition("E")
    return f"{digits if '.' in digits else f'{digits}.0'}E{int(exponent)}"


class Dialect(Struct, frozen=True):
    """How the parser of a tool reads plain scalars."""

    resolve: Callable[[str], Scalar]
    keeps_texts: bool = False
    """Where the tool asks for a text, it gets the scalar as it is written."""


DIALECTS: Mapping[str, Dialect] = {
    "strimzi": Dialect(_resolve_go),
    "topicctl": Dialect(_resolve_go),
    # Both look at a tree of JSON, in which the scalars have their types already.
    "jikkou": Dialect(_resolve_java),
    "julieops": Dialect(_resolve_java),
    # It binds fields and maps of texts directly, and Jackson then hands the characters on.
    "kafka-gitops": Dialect(_resolve_java, keeps_texts=True),
}


class TemplateLanguage(Struct, frozen=True):
    """A language that files are written in before they are YAML."""

    name: str
    mark: re.Pattern[str]
    """What only this language has."""
    command: str
    """What renders it; empty if that can be one of many tools."""


LANGUAGES: Sequence[TemplateLanguage] = (
    TemplateLanguage(
        "a Helm template",
        re.compile(
            r"\{\{-?\s*(?:/\*|[.$]|include\b|template\b|range\b|if\b|else\b|end\b|with\b|define\b"
            r"|tpl\b|toYaml\b|required\b|default\b|printf\b|quote\b)"
        ),
        "`helm template`",
    ),
    TemplateLanguage("a Handlebars template", re.compile(r"\{\{\{|\{\{[#/^>!&~]"), ""),
    TemplateLanguage("a Jinja template", re.compile(r"\{%|\{#"), ""),
    TemplateLanguage("an ERB template", re.compile(r"<%"), ""),
    TemplateLanguage("a template", re.compile(r"\{\{"), ""),
    TemplateLanguage("a text with variables", re.compile(r"\$\{\w+\}"), "`envsubst`"),
)
"""The first one with a mark in the text is the language of it."""
_COMMANDS: Mapping[str, str] = {"jikkou": "`jikkou prepare --files ...`"}
"""Tools that render their templates themselves."""
_CONTROL = re.compile(rb"^[ \t]*(?:\{\{|\{%|<%)", re.MULTILINE)
_JINJA = re.compile(r"\{\{|\{%|\{#")
_COMMENT = re.compile(r"\s*#")


def find_template(content: bytes, tool: str) -> tuple[int, str] | None:
    """The first line with a mark of a template, from 1, and what to do; None if there is none.

    A comment is no line of a template, except for a tool that renders comments, too.
    """
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        if tool not in _COMMANDS and _COMMENT.match(line):
            continue
        # A variable alone is also a value of YAML, so it does not make a file a template.
        if any(language.mark.search(line) for language in LANGUAGES[:-1]):
            return number, describe_template(line, content.decode(errors="replace"), tool)
    return None


def is_rendered_whole(content: bytes) -> bool:
    """Whether there are conditions or loops around parts of the text, so that no part of it can be
    read alone."""
    return _CONTROL.search(content) is not None


def describe_template(text: str, whole: str, tool: str) -> str:
    """What the text is, and what to do first. whole: the text around it, which may say more."""
    if tool in _COMMANDS and _JINJA.search(text):
        name, command = "a Jinja template", _COMMANDS[tool]
    else:
        language = next(language for language in LANGUAGES if language.mark.search(whole))
        name, command = language.name, language.command
    means = f", for example with {command}," if command else ""
    return f"{name}: render it first{means} and take over the result"


def is_template(text: str, *, variables: bool = True) -> bool:
    """Whether a value has a mark of a template in it. variables: `${NAME}` is one, too."""
    languages = LANGUAGES if variables else LANGUAGES[:-1]
    return any(language.mark.search(text) for language in languages)


MAX_NODES = 2_000_000
MAX_DEPTH = 64
_TAGS: Mapping[str, str] = {
    f"tag:yaml.org,2002:{name}": name for name in ("null", "bool", "int", "float")
}
_MERGE = "<<"


class YamlNode(Struct, frozen=True):
    """A value of a file."""

    position: str
    """`file:line`."""
    kind: str
    """null, bool, int, float, text, list or map."""
    value: Any
    """A scalar as the tool's parser hands it on, a tuple of nodes, or a map of nodes by key."""
    size: int = 1
    """How many nodes it has when all aliases are unfolded."""
    text: str = ""
    """Of a scalar: what the tool reads where it asks for a text, if that is not the value."""

    def get(self, name: str) -> YamlNode | None:
        """A field; None if it is missing, or if this is no map."""
        return self.value.get(name) if self.kind == "map" else None


class BrokenDocument(Exception):
    """A text that is not YAML, or YAML that no tool reads."""

    def __init__(self, position: str, reason: str) -> None:
        super().__init__(reason)
        self.position, self.reason = position, reason


class _NodeBuilder:
    """Builds nodes from the events of one text. above: the lines of its file before it."""

    def __init__(self, file: str, events: Iterator[Any], dialect: Dialect, above: int) -> None:
        self.file, self.events, self.dialect, self.above = file, events, dialect, above
        self.anchors: dict[str, YamlNode] = {}
        self.left = MAX_NODES

    def read_documents(self) -> Iterator[YamlNode]:
        for event in self.events:
            match type(event).__name__:
                case "DocumentStartEvent":
                    self.anchors = {}
                    yield self.read_node(next(self.events), 0)

    def read_node(self, event: Any, depth: int) -> YamlNode:
        position = f"{self.file}:{self.above + event.start_mark.line + 1}"
        if depth > MAX_DEPTH:
            raise UsageError(f"{position}: more than {MAX_DEPTH} levels inside each other")
        node = self._build(event, position, depth)
        self.left -= 1 if event.anchor is None or node.size == 1 else node.size
        if self.left < 0:
            raise UsageError(f"{position}: more than {MAX_NODES} values, with all aliases")
        if event.anchor and type(event).__name__ != "AliasEvent":
            self.anchors[event.anchor] = node
        return node

    def _build(self, event: Any, position: str, depth: int) -> YamlNode:
        match type(event).__name__:
            case "AliasEvent":
                if event.anchor not in self.anchors:
                    raise BrokenDocument(position, "an alias without an anchor before it")
                return self.anchors[event.anchor]
            case "ScalarEvent":
                return self._build_scalar(position, event)
            case "SequenceStartEvent":
                items = tuple(self._read_items(depth))
                return YamlNode(position, "list", items, 1 + sum(item.size for item in items))
            case _:
                return self._read_map(position, depth)

    def _build_scalar(self, position: str, event: Any) -> YamlNode:
        kind, value = "text", event.value
        if event.implicit[0] or event.tag in _TAGS:
            kind, value = self.dialect.resolve(event.value)
        if event.tag in _TAGS and kind != _TAGS[event.tag]:
            kind, value = _TAGS[event.tag], event.value
        return YamlNode(position, kind, value, 1, event.value if self.dialect.keeps_texts else "")

    def _read_items(self, depth: int) -> Iterator[YamlNode]:
        while type(event := next(self.events)).__name__ != "SequenceEndEvent":
            yield self.read_node(event, depth + 1)

    def _read_map(self, position: str, depth: int) -> YamlNode:
        fields: dict[str, YamlNode] = {}
        bases: list[YamlNode] = []
        size = 1
        while type(event := next(self.events)).__name__ != "MappingEndEvent":
            key = self.read_node(event, depth + 1)
            value = self.read_node(next(self.events), depth + 1)
            size += value.size
            if not isinstance(key.value, str):
                raise BrokenDocument(key.position, "a list or map is the name of a field")
            name = key.text or key.value
            if name == _MERGE:
                bases += value.value if value.kind == "list" else [value]
                continue
            if name in fields:
                raise BrokenDocument(key.position, f"the field {name!r} is declared twice")
            fields[name] = value
        for base in bases:
            if base.kind != "map":
                raise BrokenDocument(base.position, "<< needs a map")
            fields = {**base.value, **fields}
        return YamlNode(position, "map", fields, size)


def read_documents(name: str, content: bytes, tool: str) -> Iterator[YamlNode | BrokenDocument]:
    """Every document of a YAML or JSON file that is not empty, as this tool reads it, and what is
    not YAML.

    Raises UsageError with `name` and the line for a text that exceeds a limit; no message repeats
    anything of the text.
    """
    try:
        yield from list(_parse(name, content, tool))
    except BrokenDocument as fault:
        documents = [(0, content)] if is_rendered_whole(content) else list(_divide(content))
        if len(documents) < 2:
            yield _explain(name, content, tool, fault)
            return
        for above, document in documents:
            try:
                yield from list(_parse(name, document, tool, above))
            except BrokenDocument as own:
                yield _explain(name, document, tool, own, above)


def _explain(
    name: str, content: bytes, tool: str, fault: BrokenDocument, above: int = 0
) -> BrokenDocument:
    """The fault, or that the text is a template."""
    if (template := find_template(content, tool)) is None:
        return fault
    line, reason = template
    return BrokenDocument(f"{name}:{above + line}", reason)


def _divide(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The documents of a text with the number of lines above each. No anchor reaches from one
    document into another, and `---` begins a line nowhere else."""
    start, lines = 0, content.splitlines(keepends=True)
    for number, line in enumerate([*lines, b"---"]):
        if _SEPARATOR.match(line) and number > start:
            document = lines[start:number]
            if not all(_NOTHING.match(text) for text in document):
                yield start, b"".join(document)
            start = number


def _parse(name: str, content: bytes, tool: str, above: int = 0) -> Iterator[YamlNode]:
    """Raises BrokenDocument, UsageError."""
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        events = yaml.parse(content, Loader=loader)
        builder = _NodeBuilder(name, events, DIALECTS[tool], above)
        yield from (node for node in builder.read_documents() if node.kind != "null")
    except (yaml.YAMLError, UnicodeDecodeError) as fault:
        raise _describe_fault(name, content, above, fault) from None
    except RecursionError:
        raise UsageError(f"{name}: too many levels inside each other") from None


def _describe_fault(name: str, content: bytes, above: int, fault: Any) -> BrokenDocument:
    # Its own text can quote the file, and so a password.
    context, problem = getattr(fault, "context", None) or "", getattr(fault, "problem", None) or ""
    mark = getattr(fault, "problem_mark", None)
    if context.startswith(_BEGUN) and fault.context_mark is not None:
        # The parser notices it lines later, maybe at the end of the file.
        mark = fault.context_mark
    reason = next(
        (explanation for phrase, explanation in _PROBLEMS.items() if phrase in problem), ""
    )
    if mark is not None:
        line = mark.line
    else:  # a character or an encoding that is not allowed
        start = getattr(fault, "position", None) or getattr(fault, "start", 0)
        line, reason = content[:start].count(b"\n"), "a character that YAML does not allow"
    text = f"this is not YAML: {reason}" if reason else "this is not YAML"
    return BrokenDocument(f"{name}:{above + line + 1}", f"{text}; correct it, and run this again")


_SEPARATOR = re.compile(rb"---(?:\s|$)")
_NOTHING = re.compile(rb"\s*(?:#.*)?$|%|---\s*$|\.\.\.")
_BEGUN = ("while scanning a", "while parsing a flow")
"""What a fault of the parser begins with if the fault is where the construct begins."""
_PROBLEMS: Mapping[str, str] = {
    "could not find expected ':'": "a key without a colon",
    "cannot start any token": "a value begins with a tab or a special character",
    "mapping values are not allowed": "a second colon in one line",
    "did not find expected key": "wrong indentation, or text after a quoted value",
    "did not find expected '-' indicator": "wrong indentation of a list",
    "did not find expected ',' or": "a bracket or brace that is not closed",
    "unexpected end of stream": "a quote that is not closed",
    "expected <block end>": "wrong indentation",
    "undefined alias": "an alias without an anchor before it",
}
"""A part of the parser's own words -> what is wrong."""


# Bounded: Kafka has no longer numbers, and int() refuses texts of more than 4,300 digits.
WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
"""A whole number as every parser of YAML reads it; 0123 and 1_000 mean different things to them."""
