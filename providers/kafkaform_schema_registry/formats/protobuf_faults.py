"""What keeps a text from being a protobuf file: its form, and numbers and names that collide.

Source: https://protobuf.dev/programming-guides/proto3/ (field numbers, reserved, enums).
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.diagnostics import suggest

from .faults import SchemaFault, locate_fault
from .protobuf import (
    MAX_NUMBER,
    NotProtobuf,
    ProtobufEnum,
    ProtobufFile,
    ProtobufMessage,
    open_protobuf,
)

SCALARS = frozenset(
    {
        *("double", "float", "bool", "string", "bytes"),
        *(f"{sign}int{bits}" for sign in ("", "u", "s") for bits in (32, 64)),
        *(f"{sign}fixed{bits}" for sign in ("", "s") for bits in (32, 64)),
    }
)
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
    for path, message in file.messages.items():
        yield from _check_message(path, message)
        if not elsewhere:
            yield from _check_types(message, path, file)
    for path, enum in file.enums.items():
        yield from _check_enum(path, enum, file.syntax)


def _check_message(path: str, message: ProtobufMessage) -> Iterator[Fault]:
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
            text = f"{field_path} has the number {field.number:,}: possible are 1 to {MAX_NUMBER:,}"
            yield f"{text} without {FORBIDDEN[0]:,} to {FORBIDDEN[1]:,}", field.offset, ""
        if any(_contains(limits, field.number) for limits in message.reserved):
            yield f"{field_path} has the number {field.number}, which is reserved", field.offset, ""
        if field.name in message.reserved_names:
            yield f"{field_path} has a name that is reserved", field.offset, ""
        names[field.name] = field.number
        numbers.setdefault(field.number, field.name)


def _contains(limits: tuple[int, int], number: int) -> bool:
    return limits[0] <= number <= limits[1]


def _check_types(message: ProtobufMessage, path: str, file: ProtobufFile) -> Iterator[Fault]:
    """Types that neither protobuf nor the file has; imports can define any."""
    if any(not name.startswith(GOOGLE) for name in file.imports):
        return
    type_names = {*file.messages, *file.enums}
    ends = {name.rpartition(".")[2] for name in type_names}
    for field in message.fields:
        inner = field.type.removeprefix("map<").removesuffix(">").rpartition(", ")[2]
        has_type = inner in SCALARS or inner.rpartition(".")[2] in ends
        if (
            not has_type
            and not inner.lstrip(".").startswith("google.protobuf.")
            and inner != "group"
        ):
            text = f'there is no type "{inner}" for {path}.{field.name}'
            yield text, field.offset, suggest(inner, [*SCALARS, *type_names])


def _check_enum(path: str, enum: ProtobufEnum, syntax: str) -> Iterator[Fault]:
    names: set[str] = set()
    numbers: dict[int, str] = {}
    if syntax == "proto3" and enum.values and enum.values[0][1] != 0:
        name, _, offset = enum.values[0]
        yield f"the first value of the enum {path}, {name}, is not 0", offset, ""
    for name, number, offset in enum.values:
        if name in names:
            yield f"the value {name} of the enum {path} is there twice", offset, ""
        elif number in numbers and not enum.aliases:
            text = f"the values {numbers[number]} and {name} of the enum {path} are both {number}"
            yield text, offset, ""
        names.add(name)
        numbers.setdefault(number, name)
