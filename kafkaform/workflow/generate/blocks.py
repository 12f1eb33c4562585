"""Write live objects as blocks, for `import --all`. Pure: the same objects, the same text.

Objects whose blocks would differ only in names and numbers share one block with `for_each`. What
identifies an object follows from the schema and the key of its type, so a new type needs no code
here.
"""

from __future__ import annotations

import json
import os.path
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from ...core.address import Address
from ...core.resource import Facts, Identity, Observed
from ...core.schema import AttributeSchema, ObjectSchema, Type
from ...core.value import FrozenMap, SecretRef, Value
from ...language.functions.number import render_call
from ...provider.contract import ResourceType
from ...syntax.write import (
    Code,
    NewBlock,
    Writable,
    is_identifier,
    quote_string,
    write_blocks,
    write_value,
)

PLACEHOLDER = SecretRef("env", "")
"""Stands for a secret, which nobody can read from the system."""

SEPARATORS = "._-/ "
_FOREIGN = re.compile(r"[^A-Za-z0-9_]+")
SECRET = "The {attribute} cannot be read: put it into {name}. It is sent when {version} changes."
_LONGEST_PREFIX = 60
_SEPARATOR = re.compile(f"[{re.escape(SEPARATORS)}]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def choose_arguments(item: Observed, kind: ResourceType, facts: Facts) -> FrozenMap:
    """The fewest arguments that declare the object: no defaults, nothing that the system sets, and
    of two arguments that exclude each other the one that leaves more to the system."""
    live = kind.written(item.attributes) if kind.written else item.attributes
    schema = kind.schema
    arguments = {
        name: live[name]
        for name, attribute in schema.attributes.items()
        if _is_needed(live.get(name), attribute)
    }
    for first, second in schema.conflicts:
        if first in arguments and second in arguments:
            del arguments[first]
    secret = (a.name for a in schema.attributes.values() if a.secret and a.required)
    complete = FrozenMap({**dict.fromkeys(secret, PLACEHOLDER), **arguments})
    return complete.with_items(_select_own_entries(complete, item, kind, facts))


def _is_needed(value: Value, attribute: AttributeSchema) -> bool:
    nothing = value is None or value == attribute.default or attribute.computed
    return not nothing and (attribute.required or value not in (FrozenMap(), ()))


def _select_own_entries(
    arguments: FrozenMap, item: Observed, kind: ResourceType, facts: Facts
) -> dict[str, FrozenMap]:
    """The maps without the entries that belong to others, because they stay if undeclared."""
    maps = {
        name: value for name, value in arguments.items() if isinstance(value, FrozenMap) and value
    }
    if not maps:
        return {}
    bare = fill_defaults(arguments.with_items(dict.fromkeys(maps, FrozenMap())), kind.schema)
    remaining = kind.target(bare, item, facts, False)
    return {name: value.without(remaining.get(name) or ()) for name, value in maps.items()}


def fill_defaults(arguments: FrozenMap, schema: ObjectSchema) -> FrozenMap:
    """All attributes of a block as the language evaluates it, with defaults filled in."""
    return FrozenMap(
        {
            name: arguments.get(name, attribute.default)
            for name, attribute in schema.attributes.items()
            if not attribute.computed
        }
    )


def write_amounts(kind: ResourceType, name: str, value: Writable) -> Writable:
    """An argument in which `retention("30d")` or `bytes("10MiB")` stands for each exact amount."""
    if kind.unit is None or not isinstance(value, FrozenMap):
        return value
    calls = {key: render_call(entry, kind.unit((name, key))) for key, entry in value.items()}
    return {key: Code(calls[key]) if calls[key] else entry for key, entry in value.items()}


def find_import_id(identity: Identity, kind: ResourceType) -> str | None:
    """The id that an import block has for the object, None if it cannot name the object."""
    try:
        return identity.key if kind.import_key(identity.key) == identity.key else None
    except ValueError:
        return None


class UndeclaredObject(Struct, frozen=True):
    """A live object without a block."""

    identity: Identity
    arguments: FrozenMap
    """The arguments of its block, without defaults."""
    id: str | None
    """Its id for an import block, None if such a block cannot name it."""


class TakenNames(Struct, frozen=True):
    """The names that are in use already."""

    blocks: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Resource type -> the names of its blocks."""
    locals: set[str] = field(default_factory=set)
    """The names of locals."""
    secrets: set[str] = field(default_factory=set)
    """The environment variables of secrets."""


def render_imports(pairs: Iterable[tuple[Address, str]]) -> str:
    """Write import blocks for objects that the configuration declares already."""
    return write_blocks(
        _make_import(_render_reference(address), quote_string(id)) for address, id in pairs
    )


def _render_reference(address: Address) -> str:
    """The address as an expression, whose keys are strings of HCL and not of JSON."""
    return _QUOTED.sub(lambda match: quote_string(json.loads(match[0])), str(address))


def generate_blocks(
    objects: Sequence[UndeclaredObject], types: Mapping[str, ResourceType], names: TakenNames
) -> str:
    """Write the blocks of all objects, with import blocks. Adds their names to `names`."""
    shapes: dict[tuple[Value, ...], list[UndeclaredObject]] = defaultdict(list)
    # Sorted, so that the text does not depend on the order of a listing.
    for item in sorted(objects, key=lambda item: item.identity):
        shapes[_compute_shape(item, types[item.identity.kind])].append(item)
    drafts = [_Draft(tuple(items), types[items[0].identity.kind]) for items in shapes.values()]
    drafts.sort(key=lambda draft: draft.order)
    return "\n".join(
        _render_single(draft, names) if len(draft.items) == 1 else _render_group(draft, names)
        for draft in drafts
    )


def _compute_shape(item: UndeclaredObject, kind: ResourceType) -> tuple[Value, ...]:
    """What objects must have in common to share a block: all lists and maps, and the attribute that
    the type is grouped by."""
    # An object with a secret gets a block of its own: its reader has to put the secret in.
    common: tuple[Value, ...] = tuple(
        (name, value)
        for name, value in sorted(item.arguments.items())
        if name == _find_grouping(kind) or isinstance(value, tuple | FrozenMap)
    )
    # A composite is imported by its own address, so it cannot share a block either.
    single = kind.expand is not None or any(_is_secret(kind.schema, n) for n in item.arguments)
    alone = item.identity.key if single else ""
    return (item.identity.instance, item.identity.kind, alone, *common)


def _find_grouping(kind: ResourceType) -> str:
    """The argument by which objects of this type are grouped into blocks; "" if there is none."""
    return kind.named_by[0] if kind.named_by else ""


def _is_secret(schema: ObjectSchema, name: str) -> bool:
    return name in schema.attributes and schema.attributes[name].secret


class _Draft(Struct, frozen=True):
    """Objects that share one block."""

    items: tuple[UndeclaredObject, ...]
    type: ResourceType

    @property
    def kind(self) -> str:
        return self.type.name

    @property
    def order(self) -> tuple[Identity, ...]:
        return tuple(item.identity for item in self.items)

    @property
    def given(self) -> list[str]:
        """Every argument that a member has, in the schema's order."""
        return [n for n in self.type.schema.attributes if any(n in i.arguments for i in self.items)]

    @property
    def varying(self) -> list[str]:
        return [n for n in self.given if len({item.arguments.get(n) for item in self.items}) > 1]

    @property
    def naming(self) -> list[str]:
        """The arguments that decide which object a block means, in the order of a name."""
        first = self.type.named_by
        return sorted(
            self._list_keyed(), key=lambda n: first.index(n) if n in first else len(first)
        )

    def _list_keyed(self) -> list[str]:
        if self.type.expand is not None:
            return [n for n in self.type.named_by if n in self.given]
        return [n for n in self.given if any(_is_part_of_key(self.type, i, n) for i in self.items)]


def find_prefix(item: UndeclaredObject, kind: ResourceType) -> str:
    """The first part of the object's name, as an identifier; empty if it is no word that the name
    of a file could contain."""
    naming = _Draft((item,), kind).naming
    names = drop_types([str(item.arguments[n]) for n in naming[:1]] or [item.identity.key])
    first, *_ = _SEPARATOR.split(names[0].lstrip(SEPARATORS))
    fits = first.isascii() and first.isalnum() and len(first) <= _LONGEST_PREFIX
    return make_identifier(first, "") if fits else ""


def _is_part_of_key(kind: ResourceType, item: UndeclaredObject, name: str) -> bool:
    """Whether the object would be another one with another value of this argument."""
    value = item.arguments.get(name)
    if not isinstance(value, str | int | Decimal):
        return False
    counterpart = f"{value} " if isinstance(value, str) else value + 1
    arguments = fill_defaults(item.arguments, kind.schema).with_items({name: counterpart})
    try:
        return kind.key(arguments) != item.identity.key
    except ValueError:  # no name that an object of this type can have, so the key is made of it
        return True


def _render_single(draft: _Draft, names: TakenNames) -> str:
    (item,) = draft.items
    labels = [str(item.arguments[name]) for name in draft.naming]
    name = make_unique(
        make_identifier("_".join(drop_types(labels)), get_noun(draft.kind)),
        names.blocks[draft.kind],
    )
    arguments = {n: _make_argument(draft, n, item.arguments[n], name, names) for n in draft.given}
    blocks = [_make_resource(draft, name, {n: value for n, (value, _) in arguments.items()})]
    address = f"{draft.kind}.{name}"
    id = address if draft.type.expand is not None else item.id
    blocks += [_make_import(address, quote_string(id))] if id is not None else []
    comments = "".join(f"# {comment}\n" for _, comment in arguments.values() if comment)
    return comments + write_blocks(blocks)


def _make_argument(
    draft: _Draft, argument: str, value: Value, block: str, names: TakenNames
) -> tuple[Writable, str]:
    """A value and its comment; a secret is replaced by a reference to an environment variable."""
    if not _is_secret(draft.type.schema, argument):
        return value, ""
    raised = next((n for n in draft.type.schema.attributes if n.endswith("_version")), "its block")
    keys = list(value) if isinstance(value, FrozenMap) else [""]
    # The comment names the very variables that the block refers to.
    variables = {
        key: make_unique(make_variable_name(*filter(None, (block, argument, key))), names.secrets)
        for key in keys
    }
    comment = SECRET.format(
        name=" and ".join(variables.values()),
        attribute=argument.replace("_", " "),
        version=raised,
    )
    references = {key: SecretRef("env", name) for key, name in variables.items()}
    return (FrozenMap(references) if isinstance(value, FrozenMap) else references[""]), comment


def _render_group(draft: _Draft, names: TakenNames) -> str:
    labels = _choose_labels(draft)
    name = make_unique(_choose_group_name(draft, labels), names.blocks[draft.kind])
    local = make_unique(f"{draft.kind}_{name}", names.locals)
    keyed = [
        n
        for n in draft.varying
        if all(
            item.arguments.get(n) == label for item, label in zip(draft.items, labels, strict=True)
        )
    ]
    own_names = [n for n in draft.varying if n not in keyed]
    entries = dict(zip(labels, draft.items, strict=True))
    arguments: dict[str, Writable] = {"for_each": Code(f"local.{local}")}
    for argument in draft.given:
        arguments[argument] = _make_shared_value(draft, argument, keyed, own_names)
    blocks = [
        NewBlock("locals", (), {local: _render_collection(entries, own_names)}),
        _make_resource(draft, name, arguments),
        *_make_imports(draft, name, local, labels),
    ]
    return write_blocks(blocks)


def _choose_labels(draft: _Draft) -> list[str]:
    """The instance keys: the varying parts of the objects' keys, or the whole keys if the parts are
    not unique."""
    varying_names = [n for n in draft.naming if n in draft.varying]
    labels = [
        " ".join(str(item.arguments[n]) for n in varying_names if n in item.arguments)
        for item in draft.items
    ]
    if len(set(labels)) == len(labels) and all(labels):
        return labels
    return [item.identity.key for item in draft.items]


def _make_shared_value(
    draft: _Draft, name: str, keyed: Collection[str], own_names: Sequence[str]
) -> Writable:
    """The value of an argument in the shared block."""
    if name in keyed:
        return Code("each.key")
    if name not in own_names:
        value: Value = draft.items[0].arguments[name]
        return value
    if not all(name in item.arguments for item in draft.items):
        return Code(f'lookup(each.value, "{name}", null)')
    return Code("each.value" if own_names == [name] else f"each.value.{name}")


def _render_collection(entries: Mapping[str, UndeclaredObject], own_names: Sequence[str]) -> Code:
    """The collection for `for_each`: a set of names, or a map with what differs."""
    if not own_names:
        return Code("toset([\n" + "".join(f"{quote_string(label)},\n" for label in entries) + "])")
    plain = len(own_names) == 1 and all(own_names[0] in item.arguments for item in entries.values())
    lines = (
        f"{quote_string(label)} = {_render_entry(item, own_names, plain)}\n"
        for label, item in entries.items()
    )
    return Code("{\n" + "".join(lines) + "}")


def _render_entry(item: UndeclaredObject, own_names: Sequence[str], plain: bool) -> str:
    """One line. plain: the value alone, since only one argument differs and all have it."""
    values = {
        name: write_value(item.arguments[name]) for name in own_names if name in item.arguments
    }
    if plain:
        return values[own_names[0]]
    return "{ " + ", ".join(f"{name} = {value}" for name, value in values.items()) + " }"


def _make_imports(
    draft: _Draft, name: str, local: str, labels: Sequence[str]
) -> Iterator[NewBlock]:
    ids = [item.id for item in draft.items]
    if any(id is None for id in ids):
        return
    target = f"{draft.kind}.{name}[each.key]"
    if ids == list(labels):
        yield _make_import(target, "each.key", Code(f"local.{local}"))
        return
    lines = (
        f"{quote_string(label)} = {quote_string(id or '')}\n"
        for label, id in zip(labels, ids, strict=True)
    )
    yield _make_import(target, "each.value", Code("{\n" + "".join(lines) + "}"))


def _make_resource(draft: _Draft, name: str, arguments: Mapping[str, Writable]) -> NewBlock:
    """The block of an object, or of several with `for_each`."""
    # If no import block can name the object, its own block adopts it.
    instance = draft.items[0].identity.instance
    provider: dict[str, Writable] = {"provider": Code(instance)} if "." in instance else {}
    adopted = draft.type.expand is None and any(item.id is None for item in draft.items)
    inner = (NewBlock("lifecycle", (), {"adopt": True}),) if adopted else ()
    written = {
        name: _leave_out_nulls(write_amounts(draft.type, name, value), draft.type.schema.find(name))
        for name, value in arguments.items()
    }
    return NewBlock("resource", (draft.kind, name), {**provider, **written}, inner)


def _leave_out_nulls(value: Writable, attribute: AttributeSchema | None) -> Writable:
    return value if attribute is None else _omit_optional(value, attribute.type)


def _omit_optional(value: Any, type_: Type) -> Any:
    """A value without the fields of its objects that can be left out and are null."""
    if type_.kind == "object" and isinstance(value, Mapping):
        return {
            name: _omit_optional(item, type_.fields[name])
            for name, item in value.items()
            if item is not None or name not in type_.optional
        }
    if type_.element is not None and isinstance(value, tuple):
        return tuple(_omit_optional(item, type_.element) for item in value)
    return value


def _make_import(target: str, id: str, iteration: Code | None = None) -> NewBlock:
    return NewBlock("import", (), {"for_each": iteration, "to": Code(target), "id": Code(id)})


def _choose_group_name(draft: _Draft, labels: Sequence[str]) -> str:
    """A name for the group: the attribute that the type is grouped by, or the common prefix."""
    first = _find_grouping(draft.type)
    if first in draft.given:
        (common,) = drop_types([str(draft.items[0].arguments[first])])
        return make_identifier(common, get_noun(draft.kind))
    common = os.path.commonprefix(list(labels))
    whole = common.rstrip(SEPARATORS) if common in labels else cut_at_separator(common)
    return make_identifier(whole, f"{get_noun(draft.kind)}s")


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
