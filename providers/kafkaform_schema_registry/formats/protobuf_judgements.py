"""What differs between two protobuf schemas, in words, and what keeps a text from being a protobuf
file: its form, and numbers and names that collide.

Source: https://protobuf.dev/programming-guides/proto3/ (field numbers, reserved, enums).
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.diagnostics import suggest

from .faults import EditKind, SchemaEdit, SchemaFault, locate_fault
from .protobuf import (
    MAX_NUMBER,
    NotProtobuf,
    ProtobufEnum,
    ProtobufField,
    ProtobufFile,
    ProtobufMessage,
    open_protobuf,
    read_integer,
)


def list_protobuf_edits(before: ProtobufFile, after: ProtobufFile) -> tuple[SchemaEdit, ...]:
    """The differences in the order of the new file; nothing for equal files."""
    return tuple(_compare_files(before, after))


def _compare_files(before: ProtobufFile, after: ProtobufFile) -> Iterator[SchemaEdit]:
    if before.package != after.package:
        sides = before.package or "none", after.package or "none"
        text = f"the package changes from {sides[0]} to {sides[1]}"
        yield SchemaEdit(EditKind.NAME_CHANGED, "package", text, *sides)
    if before.syntax != after.syntax:
        text = f"the syntax changes from {before.syntax} to {after.syntax}"
        yield SchemaEdit(EditKind.TYPE_CHANGED, "syntax", text, before.syntax, after.syntax)
    for path, message in after.messages.items():
        if path in before.messages:
            yield from _compare_messages(path, before.messages[path], message)
        else:
            size = _count_fields(message)
            text = f"message {path} is added: {size}"
            yield SchemaEdit(EditKind.FIELD_ADDED, path, text, after=f"message, {size}")
    for path, message in before.messages.items():
        if path not in after.messages:
            size = _count_fields(message)
            text = f"message {path} is removed: {size}"
            yield SchemaEdit(EditKind.FIELD_REMOVED, path, text, f"message, {size}")
    for path, enum in after.enums.items():
        if path in before.enums:
            yield from _compare_enums(path, before.enums[path], enum)
        else:
            text = f"enum {path} is added"
            yield SchemaEdit(EditKind.SYMBOL_ADDED, path, text, after="enum")
    for path in before.enums:
        if path not in after.enums:
            text = f"enum {path} is removed"
            yield SchemaEdit(EditKind.SYMBOL_REMOVED, path, text, "enum")
    if before.imports != after.imports:
        sides = ", ".join(before.imports) or "none", ", ".join(after.imports) or "none"
        text = f"the imports change from {sides[0]} to {sides[1]}"
        yield SchemaEdit(EditKind.REMARK, "import", text, *sides)


def _count_fields(message: ProtobufMessage) -> str:
    number = len(message.fields)
    return "1 field" if number == 1 else f"{number} fields"


def _compare_messages(
    path: str, before: ProtobufMessage, after: ProtobufMessage
) -> Iterator[SchemaEdit]:
    old = {field.number: field for field in before.fields}
    new = {field.number: field for field in after.fields}
    for number, field in new.items():
        field_path = f"{path}.{field.name}"
        description = f"{field.describe()} = {number}"
        if number in old:
            yield from _compare_fields(path, old[number], field)
        else:
            is_required = field.label == "required"
            kind = EditKind.FIELD_DEMANDED if is_required else EditKind.FIELD_ADDED
            yield SchemaEdit(
                kind, field_path, f"field {field_path} is added: {description}", after=description
            )
    for number, field in old.items():
        if number not in new:
            field_path = f"{path}.{field.name}"
            description = f"{field.describe()} = {number}"
            text = f"field {field_path} is removed: {description}"
            if not any(first <= number <= last for first, last in after.reserved):
                text += f", and the number {number} is not reserved"
            yield SchemaEdit(EditKind.FIELD_REMOVED, field_path, text, description)
    if (before.reserved, before.reserved_names) != (after.reserved, after.reserved_names):
        sides = _show_reserved(before), _show_reserved(after)
        text = f"message {path}: reserved changes from {sides[0]} to {sides[1]}"
        yield SchemaEdit(EditKind.REMARK, f"{path} reserved", text, *sides)


def _compare_fields(path: str, before: ProtobufField, after: ProtobufField) -> Iterator[SchemaEdit]:
    field_path = f"{path}.{after.name}"
    if before.name != after.name:
        text = f"field {path}.{before.name} = {before.number} is called {after.name} from now on"
        yield SchemaEdit(EditKind.FIELD_RENAMED, field_path, text, before.name, after.name)
    if before.describe() != after.describe():
        sides = before.describe(), after.describe()
        text = f"field {field_path}: the type changes from {sides[0]} to {sides[1]}"
        yield SchemaEdit(EditKind.TYPE_CHANGED, field_path, text, *sides)


def _show_reserved(message: ProtobufMessage) -> str:
    ranges = (
        str(first) if first == last else f"{first}-{last}" for first, last in message.reserved
    )
    return ", ".join((*ranges, *message.reserved_names)) or "none"


def _compare_enums(path: str, before: ProtobufEnum, after: ProtobufEnum) -> Iterator[SchemaEdit]:
    old = {number: name for name, number, _ in reversed(before.values)}
    new = {number: name for name, number, _ in reversed(after.values)}
    for number, name in reversed(new.items()):
        description = f"value {name} = {number}"
        if number not in old:
            text = f"enum {path}: the value {name} = {number} is added"
            yield SchemaEdit(EditKind.SYMBOL_ADDED, path, text, after=description)
        elif old[number] != name:
            text = f"enum {path}: the value {old[number]} = {number} is called {name} from now on"
            sides = f"value {old[number]} = {number}", description
            yield SchemaEdit(EditKind.FIELD_RENAMED, path, text, *sides)
    for number, name in reversed(old.items()):
        if number not in new:
            text = f"enum {path}: the value {name} = {number} is removed"
            yield SchemaEdit(EditKind.SYMBOL_REMOVED, path, text, f"value {name} = {number}")


SCALARS = frozenset(
    {
        *("double", "float", "bool", "string", "bytes"),
        *(f"{sign}int{bits}" for sign in ("", "u", "s") for bits in (32, 64)),
        *(f"{sign}fixed{bits}" for sign in ("", "s") for bits in (32, 64)),
    }
)
SYNTAXES = ("proto2", "proto3")
"""The syntaxes that a file can name; files of an edition name none."""
INTEGERS = SCALARS - {"double", "float", "bytes", "bool", "string"}
KEYS = SCALARS - {"double", "float", "bytes"}
"""The types of the keys of maps."""
MAX_ENUM = 2**31 - 1
FORBIDDEN = (19000, 19999)
"""Numbers of fields that protobuf keeps for itself."""
GOOGLE = "google/protobuf/"
"""Imports that every registry has."""

Fault = tuple[str, int, str]
"""A part of a sentence, at which character, and what to do."""


def find_protobuf_faults(text: str, *, elsewhere: bool) -> Iterator[SchemaFault]:
    """Each fault with its place. elsewhere: the file refers to others, which define the types that
    it does not."""
    try:
        file = open_protobuf(text)
    except NotProtobuf as error:
        yield locate_fault(text, str(error), min(error.offset, len(text)))
        return
    for fault, offset, fix in _find_faults(file, elsewhere=elsewhere):
        yield locate_fault(text, fault, offset, fix)


def _find_faults(file: ProtobufFile, *, elsewhere: bool) -> Iterator[Fault]:
    if file.syntax not in SYNTAXES and not file.syntax.isdigit():
        text = f'there is no syntax "{file.syntax}"'
        yield text, 0, suggest(file.syntax, SYNTAXES) or "Write proto3 or proto2."
    for path, message in file.messages.items():
        names: dict[str, int] = {}
        numbers: dict[int, str] = {}
        for field in message.fields:
            field_path = f"{path}.{field.name}"
            if field.name in names:
                yield f"the field {field_path} is there twice", field.offset, ""
            if field.number in numbers:
                namesake = numbers[field.number]
                text = f"the fields {namesake} and {field.name} of {path} both have the number"
                yield f"{text} {field.number}", field.offset, "Give one of them another number."
            if not 1 <= field.number <= MAX_NUMBER or _contains(FORBIDDEN, field.number):
                text = f"{field_path} has the number {field.number:,}: possible are 1 to"
                limits = f"{MAX_NUMBER:,} without {FORBIDDEN[0]:,} to {FORBIDDEN[1]:,}"
                yield f"{text} {limits}", field.offset, ""
            if any(_contains(span, field.number) for span in message.reserved):
                yield (
                    f"{field_path} has the number {field.number}, which is reserved",
                    field.offset,
                    "",
                )
            if field.name in message.reserved_names:
                yield f"{field_path} has a name that is reserved", field.offset, ""
            yield from _check_form(field, field_path, file.syntax)
            names[field.name] = field.number
            numbers.setdefault(field.number, field.name)
        for offset in message.extensions if file.syntax == "proto3" else ():
            yield f"{path} has extensions, which {file.syntax} does not have", offset, ""
    if not elsewhere:
        yield from _check_types(file)
    for path, enum in file.enums.items():
        yield from _check_enum(path, enum, file.syntax)
    yield from _check_scopes(file)


def _check_scopes(file: ProtobufFile) -> Iterator[Fault]:
    """Names that are there twice in one scope: the fields and oneofs of a message share theirs with
    the types in it, and the values of an enum with what stands beside the enum."""
    scopes: dict[str, dict[str, str]] = {"": {}, **{path: {} for path in file.messages}}
    for kind, paths in (("message", file.messages), ("enum", file.enums)):
        for path in paths:
            outer, _, name = path.rpartition(".")
            scopes[outer][name] = f"the {kind} {path}"
    for path, message in file.messages.items():
        scope = scopes[path]
        oneofs = {field.oneof: f"the oneof {path}.{field.oneof}" for field in message.fields}
        for field in message.fields:
            if namesake := scope.get(field.name) or oneofs.get(field.name):
                text = f"the field {path}.{field.name} has the name of {namesake}"
                yield text, field.offset, "Give one of them another name."
            if namesake := scope.get(field.oneof):
                text = f"{oneofs[field.oneof]} has the name of {namesake}"
                yield text, field.offset, "Give one of them another name."
        scope |= {field.name: f"the field {path}.{field.name}" for field in message.fields}
    for path, enum in file.enums.items():
        scope = scopes[path.rpartition(".")[0]]
        for name, _, offset in enum.values:
            if namesake := scope.get(name):
                text = f"the value {name} of the enum {path} has the name of {namesake}"
                yield text, offset, "The values of an enum share the names that are around it."
        scope |= {name: f"the value of {path}" for name, _, _ in enum.values}


def _check_form(field: ProtobufField, field_path: str, syntax: str) -> Iterator[Fault]:
    """What a field of its kind must not have."""
    key = field.type.removeprefix("map<").partition(",")[0] if field.type[:4] == "map<" else ""
    if key and key not in KEYS:
        near = suggest(key, KEYS) or "Keys are whole numbers, bool or string."
        yield f'{field_path} is a map whose keys cannot be of the type "{key}"', field.offset, near
    if field.label and (key or field.oneof):
        place = "a map" if key else f"in the oneof {field.oneof}"
        yield f"{field_path} is {place}, and cannot be {field.label}", field.offset, ""
    if key and field.oneof:
        yield f"{field_path} is a map, which a oneof cannot have", field.offset, ""
    if not field.label and not key and not field.oneof and syntax == "proto2":
        text = f"{field_path} has no label, which {syntax} demands"
        yield text, field.offset, 'Write optional before it, or syntax = "proto3" at the top.'
    if field.type == "group" and syntax == "proto3":
        yield f"{field_path} is a group, which {syntax} does not have", field.offset, ""
    if field.default:
        yield from _check_default(field, field_path, syntax)
    if field.label == "required" and syntax == "proto3":
        text = f"{field_path} is required, which {syntax} does not have"
        yield text, field.offset, "Leave the word out."


def _check_default(field: ProtobufField, field_path: str, syntax: str) -> Iterator[Fault]:
    if syntax == "proto3":
        text = f"{field_path} has a default, which {syntax} does not have"
        yield text, field.offset, "Leave the option out."
        return
    if field.type in ("string", "bytes"):
        fits = field.default.startswith('"')
    elif field.type == "bool":
        fits = field.default in ("true", "false")
    else:
        # Floats and the values of enums have more forms.
        fits = field.type not in INTEGERS or read_integer(field.default) is not None
    if not fits:
        yield f"the default of {field_path} is no {field.type}: {field.default}", field.offset, ""


def _contains(limits: tuple[int, int], number: int) -> bool:
    return limits[0] <= number <= limits[1]


def _check_types(file: ProtobufFile) -> Iterator[Fault]:
    """Types that neither protobuf nor the file has; imports can define any."""
    foreign = any(not name.startswith(GOOGLE) for name in file.imports)
    if foreign or file.package.startswith("google."):
        return
    type_names = {*file.messages, *file.enums}
    ends = {name.rpartition(".")[2] for name in type_names}
    uses = [
        (_find_inner_type(field.type), f"{path}.{field.name}", field.offset)
        for path, message in file.messages.items()
        for field in message.fields
    ]
    uses += [(name, "a service", offset) for name, offset in file.messages_of_services]
    for name, user, offset in uses:
        is_google = name.lstrip(".").startswith("google.protobuf.")
        if is_google and not file.imports:
            text = f"{name} is not imported, and {user} has this type"
            yield text, offset, f'Write import "{GOOGLE}….proto"; at the top.'
        elif not (
            is_google or name in SCALARS or name == "group" or name.rpartition(".")[2] in ends
        ):
            text = f'there is no type "{name}" for {user}'
            yield text, offset, suggest(name, [*SCALARS, *type_names])


def _find_inner_type(text: str) -> str:
    """The type itself, or that of a map's values."""
    return text.removeprefix("map<").removesuffix(">").rpartition(", ")[2]


def _check_enum(path: str, enum: ProtobufEnum, syntax: str) -> Iterator[Fault]:
    names: set[str] = set()
    numbers: dict[int, str] = {}
    if not enum.values:
        yield f"the enum {path} has no value", 0, ""
    if syntax == "proto3" and enum.values and enum.values[0][1] != 0:
        name, _, offset = enum.values[0]
        yield f"the first value of the enum {path}, {name}, is not 0", offset, ""
    for name, number, offset in enum.values:
        if name in names:
            yield f"the value {name} of the enum {path} is there twice", offset, ""
        elif number in numbers and not enum.aliases:
            text = f"the values {numbers[number]} and {name} of the enum {path} are both {number}"
            yield text, offset, ""
        if not -MAX_ENUM - 1 <= number <= MAX_ENUM:
            text = f"the value {name} of the enum {path} is {number:,}, which is no int32"
            yield text, offset, ""
        names.add(name)
        numbers.setdefault(number, name)
