"""What differs between two protobuf files, field by field, in words. Fields are the same if they
have the same number: records contain nothing else of them."""

from __future__ import annotations

from collections.abc import Iterator

from .edits import EditKind, SchemaEdit
from .protobuf import ProtobufEnum, ProtobufField, ProtobufFile, ProtobufMessage


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
