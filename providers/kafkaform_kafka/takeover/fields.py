"""Take a map of a file apart field by field, so that no field of it is dropped silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path

from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ForeignFiles, ForeignObject, Omission

from .documents import (
    WHOLE,
    BrokenDocument,
    YamlNode,
    describe_template,
    is_template,
    read_documents,
)


class Unfit(Exception):
    """A part of a file does not have the form that its tool documents."""

    def __init__(self, position: str, reason: str) -> None:
        super().__init__(reason)
        self.omission = Omission(position, reason)


class Findings:
    """What was found in the files so far."""

    def __init__(self, paths: Sequence[Path] = ()) -> None:
        self.system = ""
        """The cluster that the next objects are in, as the files name it."""
        self.paths = paths
        """What was asked to be read."""
        self.objects: list[ForeignObject] = []
        self.omissions: list[Omission] = []
        self.named: set[Path] = set()
        """Files that other files name, such as schemas, and that declare nothing themselves."""
        self.notes: list[str] = []
        """What was assumed about all of the files."""

    def add(
        self, kind: str, arguments: FrozenMap, position: str, positions: FrozenMap = EMPTY
    ) -> None:
        """positions: as in `ForeignObject`."""
        self.objects.append(ForeignObject(kind, arguments, position, self.system, positions))

    def omit(self, position: str, reason: str) -> None:
        self.omissions.append(Omission(position, reason))

    def read_documents(self, name: str, content: bytes, tool: str) -> Iterator[YamlNode]:
        """The documents of a file. One that is not YAML is an omission. Raises UsageError for a
        text that exceeds a limit."""
        for document in read_documents(name, content, tool):
            if isinstance(document, BrokenDocument):
                self.omit(document.position, document.reason)
            else:
                yield document

    @contextmanager
    def contain(self) -> Iterator[None]:
        """Turn an unfit part into an omission. What was added inside before it is taken back, so
        that no object is taken over in part."""
        count = len(self.objects)
        try:
            yield
        except Unfit as fault:
            del self.objects[count:]
            self.omissions.append(fault.omission)

    def finish(self) -> ForeignFiles:
        omissions = tuple(
            omission
            for omission in dict.fromkeys(self.omissions)
            if Path(omission.place.rpartition(":")[0]).resolve() not in self.named
        )
        return ForeignFiles(tuple(self.objects), omissions, tuple(self.notes))


class Fields:
    """The fields of one map. `close` reports those that nobody has asked for."""

    def __init__(self, node: YamlNode, findings: Findings, title: str) -> None:
        """title: a phrase for the map in messages: `topic 'orders'`. Raises Unfit if the node is no
        map."""
        if node.kind != "map":
            raise Unfit(node.position, f"{title}: a map of fields was expected, not {_name(node)}")
        self.position, self.title, self.findings = node.position, title, findings
        self._given: dict[str, YamlNode] = dict(node.value)
        self._left = dict(self._given)

    def find(self, name: str) -> YamlNode | None:
        """The value of a field, None if it is missing or null."""
        node = self._left.pop(name, None) or self._given.get(name)
        return None if node is None or node.kind == "null" else node

    @property
    def names(self) -> tuple[str, ...]:
        """All fields, in the order of the file."""
        return tuple(self._given)

    def locate(self, name: str) -> str:
        """The position of a field; of the map if it is missing."""
        return self._given[name].position if name in self._given else self.position

    def text(self, name: str) -> str | None:
        """A scalar as it is written."""
        node = self.find(name)
        return None if node is None else read_text(node, f"{self.title}: {name}")

    def pattern(self, name: str) -> str | None:
        """A scalar in which the tool itself fills placeholders in braces."""
        node = self.find(name)
        return None if node is None else read_pattern(node, f"{self.title}: {name}")

    def require_pattern(self, name: str) -> str:
        text = self.pattern(name)
        if not text:
            raise Unfit(self.position, f"{self.title}: {name} is missing")
        return text

    def require_text(self, name: str) -> str:
        text = self.text(name)
        if not text:
            raise Unfit(self.position, f"{self.title}: {name} is missing")
        return text

    def number(self, name: str) -> int | None:
        """A whole number."""
        node = self.find(name)
        return None if node is None else read_number(node, f"{self.title}: {name}")

    def flag(self, name: str) -> bool | None:
        """true or false."""
        node = self.find(name)
        if node is None:
            return None
        if node.kind not in ("bool", "text") or node.value.lower() not in ("true", "false"):
            title = f"{self.title}: {name} is neither true nor false"
            raise Unfit(node.position, f"{title}{_quote(node)}")
        return bool(node.value.lower() == "true")

    def items(self, name: str) -> tuple[YamlNode, ...]:
        """The elements of a list; none if it is missing."""
        node = self.find(name)
        if node is None:
            return ()
        if node.kind != "list":
            raise Unfit(node.position, f"{self.title}: {name} is no list, but {_name(node)}")
        elements: tuple[YamlNode, ...] = node.value
        return elements

    def texts(self, name: str) -> tuple[str, ...]:
        """The elements of a list of scalars."""
        return tuple(read_text(node, f"{self.title}: {name}") for node in self.items(name))

    def entries(self, name: str) -> dict[str, YamlNode]:
        """The entries of a map whose keys are names; none if it is missing."""
        node = self.find(name)
        if node is None:
            return {}
        if node.kind != "map":
            raise Unfit(node.position, f"{self.title}: {name} is no map, but {_name(node)}")
        return dict(node.value)

    def table(self, name: str, title: str = "") -> Fields | None:
        """A map, whose fields the caller takes and closes; None if it is missing."""
        node = self.find(name)
        return None if node is None else Fields(node, self.findings, title or self.title)

    def config(self, name: str, *, variables: bool = True) -> FrozenMap:
        """A map of configs as texts; a list is joined with commas. variables: see `read_text`."""
        return read_config(self.entries(name), f"{self.title}: {name}", variables=variables)

    def trace(self, arguments: Mapping[str, str]) -> FrozenMap:
        """The positions of fields that become arguments: field -> argument. The entries of a map
        have their own: `config.retention.ms`."""
        positions: dict[str, Value] = {}
        for name, argument in arguments.items():
            node = self._given.get(name)
            if node is None:
                continue
            positions[argument] = node.position
            entries = node.value if node.kind == "map" else {}
            positions |= {f"{argument}.{key}": entry.position for key, entry in entries.items()}
        return FrozenMap(positions)

    def skip(self, *names: str) -> None:
        """Pass over fields that say nothing about an object."""
        for name in names:
            self._left.pop(name, None)

    def leave(self, reason: str, *names: str) -> None:
        """Report fields that are known and not taken over, unless they are empty."""
        for name in names:
            node = self.find(name)
            if node is not None and (node.kind not in ("list", "map") or node.value):
                self.findings.omit(self.locate(name), f"{self.title}: {name}: {reason}")

    def close(self) -> None:
        """Report every field that was not asked for."""
        for name, node in self._left.items():
            self.findings.omit(node.position, f"{self.title}: the field {name} is not known")


def read_text(node: YamlNode, title: str, *, variables: bool = True) -> str:
    """A scalar as text. Raises Unfit, also for a template. variables: `${NAME}` is a template; in
    the configs of a connector, such as `orders_${topic}`, it is a value."""
    text = read_pattern(node, title)
    if is_template(text, variables=variables):
        raise Unfit(node.position, f"{title} is {describe_template(text, text, '')}")
    return text


def read_pattern(node: YamlNode, title: str) -> str:
    """A scalar as text, whatever braces it has. Raises Unfit."""
    if node.kind in ("list", "map", "null"):
        raise Unfit(node.position, f"{title} is no text, but {_name(node)}")
    return str(node.text or node.value)


def read_number(node: YamlNode, title: str) -> int:
    """A whole number; as a text too, as templates write it. Raises Unfit."""
    text = node.value if node.kind in ("int", "float", "text") else ""
    if not WHOLE.fullmatch(text):
        raise Unfit(node.position, f"{title} is no whole number{_quote(node)}")
    return int(text)


def read_decimal(node: YamlNode, title: str) -> Value:
    """A number, exact. Raises Unfit."""
    try:
        number = Decimal(node.value if node.kind in ("int", "float", "text") else "")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number.adjusted()) > 20:
        raise Unfit(node.position, f"{title} is no number that kafkaform can use{_quote(node)}")
    return int(number) if number == number.to_integral_value() else number


def _quote(node: YamlNode) -> str:
    """The value in a message. Only values that should be numbers are quoted: none is a secret."""
    if node.kind in ("list", "map", "null"):
        return f", but {_name(node)}"
    text = str(node.text or node.value)
    return f": {text[:_LONGEST]!r}{' ...' if len(text) > _LONGEST else ''}"


_LONGEST = 60
"""Characters of a value in a message."""


def read_config(entries: dict[str, YamlNode], title: str, *, variables: bool = True) -> FrozenMap:
    """Configs by name as texts. Raises Unfit for a map inside; a null is left out."""
    config = {}
    for name, node in entries.items():
        if node.kind == "null":
            continue
        elements = node.value if node.kind == "list" else (node,)
        texts = [read_text(element, f"{title}.{name}", variables=variables) for element in elements]
        config[name] = ",".join(texts)
    return FrozenMap(config)


def _name(node: YamlNode) -> str:
    return {"list": "a list", "map": "a map", "null": "nothing"}.get(node.kind, "a single value")
