"""Schemas: what a block can contain. They check the configuration and make the reference docs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import force_setattr

from .value import EMPTY, FrozenMap, Value


class _WithHash:
    """A slot that is not a field, so that it is not compared, copied or stored."""

    __slots__ = ("_hash",)
    _hash: int


class Type(_WithHash, Struct, frozen=True):
    """The type of a value."""

    # The type of `[a, a]` contains the type of `a` twice, that of `[[a, a], [a, a]]` four times,
    # and so on: a hostile file of a few lines could ask for exponential work. So a hash is computed
    # once, and types that were found equal share their parts, which makes comparing linear.
    kind: str
    """string, number, bool, any, list, set, map, object or tuple. In schemas also text: a string,
    for which a block can contain a list of strings, which is joined with commas."""
    element: Type | None = None
    """The type of the elements of a list, set or map."""
    fields: FrozenMap = EMPTY
    """Name of a field of an object -> its Type."""
    items: tuple[Type, ...] = ()
    """The types of the items of a tuple."""
    optional: FrozenMap = EMPTY
    """Name of a field that can be left out -> its default value."""

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = hash((self.kind, self.element, self.fields, self.items, self.optional))
            force_setattr(self, "_hash", value)
            return value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type) or hash(self) != hash(other):
            return False
        own_fields = (self.kind, self.element, self.fields, self.items, self.optional)
        equal = own_fields == (other.kind, other.element, other.fields, other.items, other.optional)
        if equal:
            force_setattr(self, "element", other.element)
            force_setattr(self, "items", other.items)
            if [*self.fields] == [*other.fields]:
                force_setattr(self, "fields", other.fields)
        return equal

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
"""What every resource block can contain besides the attributes of its type. Attributes have other
names."""

STRING, NUMBER, BOOL, ANY = Type("string"), Type("number"), Type("bool"), Type("any")
TEXT = Type("text")


list_of = partial(Type, "list")
set_of = partial(Type, "set")
map_of = partial(Type, "map")
"""The type of a list, a set or a map of these elements."""


def object_of(fields: Mapping[str, Type], optional: Mapping[str, Value] | None = None) -> Type:
    """The type of an object. optional: name of a field that can be left out -> its default."""
    return Type("object", fields=FrozenMap(fields), optional=FrozenMap(optional or {}))


Refuses = Callable[[Any], Iterable[tuple[str, str]]]
"""A value -> why no system takes it: (summary, advice) for each reason."""


class KeySchema(Struct, frozen=True):
    """A key of a map attribute that the system knows, for people. All texts can be empty."""

    name: str
    type: str
    """In the system's words."""
    doc: str
    """What it is for."""
    default: str = ""
    """The value that counts without it."""
    unit: str = ""
    """The unit of its value."""
    values: str = ""
    """Which values are valid: `from 0 ms`."""
    choices: tuple[str, ...] = ()
    """Values that can be proposed."""


Keys = Callable[[], Iterable[KeySchema]]
"""Makes the keys of an attribute, when somebody asks for them."""


class AttributeSchema(Struct, frozen=True):
    """One attribute of a block."""

    name: str
    """What it is called."""
    type: Type
    """The type of its value."""
    doc: str
    """The sentence of the reference docs."""
    required: bool = False
    """It must be given."""
    computed: bool = False
    """The server sets it, so outputs can refer to it, and arguments cannot."""
    instead: str = ""
    """Of a computed attribute: what an argument can do instead of referring to it, as advice."""
    secret: bool = False
    """Its value is a secret reference and nothing else."""
    sensitive: bool = False
    """Its value is shown as `(sensitive)`."""
    whole: bool = False
    """Only integers are allowed."""
    default: Value = None
    """The value if it is left out; None for none."""
    choices: tuple[str, ...] = ()
    """The only values that are allowed; none: any value."""
    refuses: Refuses | None = None
    """A further check of the value."""
    aliases: tuple[str, ...] = ()
    """Other names with the same meaning."""
    # With --untrusted anybody may have written the block. Policy says how to work, not where and as
    # whom to connect, so the author of a pull request can say it.
    policy: bool = False
    """In a provider block: it is taken from an untrusted configuration, too."""
    expected: bool = False
    """Of a block alone: it says what to expect of the object. Rules that estimate use it, and no
    system and no state has it."""
    unread: bool = False
    """It says how the object is made or changed, and nobody can read it back afterwards."""
    names: bool = False
    """It names the object: if it is left out, the key of the identity is what others see."""
    ending: Callable[[Mapping[str, Value]], str] | None = None
    """Of a long text, which generated configuration keeps in a file of its own: the arguments of
    its object -> the ending of that file."""
    keys: Keys | None = None
    """Of a map: the keys that the system knows, which editors offer. Others are allowed, too."""


class ObjectSchema(Struct, frozen=True):
    """What a block can contain.

    The values of a nested block arrive as one FrozenMap under the name of that block, None if the
    block is missing.
    """

    doc: str
    """The sentences of the reference docs."""
    attributes: Mapping[str, AttributeSchema]
    """Name -> attribute."""
    blocks: Mapping[str, ObjectSchema] = field(default_factory=dict)
    """Name -> nested block; each can be given once."""
    conflicts: tuple[tuple[str, str], ...] = ()
    """Pairs of attributes that exclude each other."""

    def list_names(self) -> Iterator[str]:
        """Every name that the block can contain, aliases included."""
        for attribute in self.attributes.values():
            yield attribute.name
            yield from attribute.aliases
        yield from self.blocks

    def find(self, name: str) -> AttributeSchema | None:
        """The attribute with this name or alias, None if there is none."""
        if name in self.attributes:
            return self.attributes[name]
        return next((a for a in self.attributes.values() if name in a.aliases), None)


def make_schema(
    doc: str,
    *attributes: AttributeSchema,
    blocks: Mapping[str, ObjectSchema] | None = None,
    conflicts: tuple[tuple[str, str], ...] = (),
) -> ObjectSchema:
    """The schema of a block with these attributes."""
    return ObjectSchema(doc, {a.name: a for a in attributes}, dict(blocks or {}), conflicts)
