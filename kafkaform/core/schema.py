"""Schemas: what a block may contain. They check configuration and generate the reference docs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import force_setattr

from .value import EMPTY, FrozenMap, Value


class _WithHash:
    """A slot that is no field: it takes no part in comparing, copying or storing."""

    __slots__ = ("_hash",)
    _hash: int


class Type(_WithHash, Struct, frozen=True):
    """kind: string · number · bool · any · list · set · map · object · tuple, and in schemas text:
    a string, for which a list of strings may be written that is joined with commas.

    element: of list, set and map; fields: of object (name -> Type); items: of tuple;
    optional: object fields that may be left out, with their default value.

    The type of `[a, a]` has the type of `a` twice, that of `[[a, a], [a, a]]` four times, and so
    on: written out it would be exponentially large. So a hash is computed once, and types that
    were found equal share their parts, which makes comparing linear.
    """

    kind: str
    element: Type | None = None
    fields: FrozenMap = EMPTY
    items: tuple[Type, ...] = ()
    optional: FrozenMap = EMPTY

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash((self.kind, self.element, self.fields, self.items, self.optional))
            force_setattr(self, "_hash", found)
            return found

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type) or hash(self) != hash(other):
            return False
        mine = (self.kind, self.element, self.fields, self.items, self.optional)
        same = mine == (other.kind, other.element, other.fields, other.items, other.optional)
        if same:
            force_setattr(self, "element", other.element)
            force_setattr(self, "items", other.items)
            if [*self.fields] == [*other.fields]:
                force_setattr(self, "fields", other.fields)
        return same

    def __str__(self) -> str:
        if self.element is not None:
            return f"{self.kind}({self.element})"
        if self.kind == "text":
            return "string"
        if self.kind == "object":
            inner = ", ".join(f"{name} = {kind}" for name, kind in self.fields.items())
            return f"object({{{inner}}})"
        if self.kind == "tuple":
            return f"tuple([{', '.join(map(str, self.items))}])"
        return self.kind


META_ARGUMENTS = ("provider", "for_each", "count", "depends_on", "owner", "labels")
META_BLOCKS = ("lifecycle",)
"""What every resource block may say beside the attributes of its type, whose names differ."""

STRING, NUMBER, BOOL, ANY = Type("string"), Type("number"), Type("bool"), Type("any")
TEXT = Type("text")


def list_of(element: Type) -> Type:
    return Type("list", element)


def set_of(element: Type) -> Type:
    return Type("set", element)


def map_of(element: Type) -> Type:
    return Type("map", element)


def object_of(fields: Mapping[str, Type], optional: Mapping[str, Value] | None = None) -> Type:
    return Type("object", fields=FrozenMap(fields), optional=FrozenMap(optional or {}))


Refuses = Callable[[Any], Iterable[tuple[str, str]]]


class AttributeSchema(Struct, frozen=True):
    """required: must be given; computed: the server sets it (legal in outputs only, never in
    arguments); secret: takes a secret reference and nothing else; sensitive: shown as
    `(sensitive)`; whole: integers only; refuses: yields what no system takes of a value, each as
    (summary, advice); aliases: other names that mean the same; policy: in a provider block, says
    how to work and not where and as whom to connect, so that the author of a pull request may
    say it (`--untrusted`)."""

    name: str
    type: Type
    doc: str
    required: bool = False
    computed: bool = False
    secret: bool = False
    sensitive: bool = False
    whole: bool = False
    default: Value = None
    choices: tuple[str, ...] = ()
    refuses: Refuses | None = None
    aliases: tuple[str, ...] = ()
    policy: bool = False


class ObjectSchema(Struct, frozen=True):
    """attributes by name; blocks: nested blocks, each at most once; conflicts: pairs of
    attributes that exclude each other. Values of a nested block arrive as one FrozenMap
    under the block's name (None if the block is not there)."""

    doc: str
    attributes: Mapping[str, AttributeSchema]
    blocks: Mapping[str, ObjectSchema] = field(default_factory=dict)
    conflicts: tuple[tuple[str, str], ...] = ()

    def list_names(self) -> Iterator[str]:
        """Every name that may stand in the block, aliases included."""
        for attribute in self.attributes.values():
            yield attribute.name
            yield from attribute.aliases
        yield from self.blocks

    def find(self, name: str) -> AttributeSchema | None:
        """The attribute of this name or alias."""
        if name in self.attributes:
            return self.attributes[name]
        return next((a for a in self.attributes.values() if name in a.aliases), None)


def make_schema(
    doc: str,
    *attributes: AttributeSchema,
    blocks: Mapping[str, ObjectSchema] | None = None,
    conflicts: tuple[tuple[str, str], ...] = (),
) -> ObjectSchema:
    return ObjectSchema(doc, {a.name: a for a in attributes}, dict(blocks or {}), conflicts)
