"""States as bytes: one line for each member and each object, sorted, so that equal states are equal
bytes.

The checksum is the SHA-256 of the file without the line of the checksum. So every byte counts, and
`grep -v '^"checksum"' FILE | sha256sum` proves a file without kafkaform.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import chain
from typing import Any, NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from ..core import canonical
from ..core.address import is_object_address
from ..core.errors import StorageError
from ..core.head import Head
from ..core.resource import Identity
from ..core.value import FrozenMap, SecretRef, Value
from .model import (
    FORMAT,
    PROTECTIONS,
    SEALED_FORMAT,
    ListedObject,
    Row,
    State,
    StateOutline,
    outline_state,
)

MEMBERS = frozenset(
    {
        "audit_head",
        "checksum",
        "format",
        "kafkaform_version",
        "lineage",
        "objects",
        "outputs",
        "providers",
        "serial",
    }
)
_SHOWN = 80
"""How many characters of a member a message shows."""
_CHECKSUM = re.compile(rb'\{\n"audit_head":[^\n]*\n("checksum":"([0-9a-f]{64})",\n)')
# A brace, and the five members that sort before the objects.
_BEFORE_ROWS = re.compile(rb'(?:[^\n]*\n){6}"objects":\[\n')
_AFTER_ROWS = b"\n],\n"
_PIECE = 1 << 20
"""Bytes of objects that are parsed at once."""


class _Wrong(ValueError):
    """A part of a state breaks a rule; the message says which and how."""


def encode(state: State) -> bytes:
    """The bytes of a state, with a final newline. Raises StorageError for a state that could not be
    read again."""
    # A state that nobody can read is worse than none: every later command would stop at it, and the
    # last sound version would be one save further away.
    head = state.audit_head
    anchor = FrozenMap(seq=head.seq, hash=head.hash) if head else None
    try:
        _require_sound(state, anchor)
        rows = ",\n".join(
            _render_line(identity, row) for identity, row in sorted(state.objects.items())
        )
    except _Wrong as error:
        raise StorageError(f"the state contradicts itself: {error}", _UNSAVED) from None
    members = {
        "audit_head": canonical.dumps(anchor),
        "format": canonical.dumps(SEALED_FORMAT if state.sealed else FORMAT),
        "kafkaform_version": canonical.dumps(state.kafkaform_version),
        "lineage": canonical.dumps(state.lineage),
        "objects": f"[\n{rows}\n]" if rows else "[]",
        "outputs": canonical.dumps(state.outputs),
        "providers": canonical.dumps(state.providers),
        "serial": canonical.dumps(state.serial),
    }
    first, *lines = [f'"{name}":{text}' for name, text in members.items()]
    start = f"{{\n{first},\n".encode("ascii")
    remainder = (",\n".join(lines) + "\n}\n").encode("ascii")
    checksum = hashlib.sha256(start + remainder).hexdigest()
    return start + f'"checksum":"{checksum}",\n'.encode("ascii") + remainder


_UNSAVED = (
    "This is a bug in kafkaform; please report it. The state is unchanged, and the audit log has "
    "every outcome."
)
ADVICE = (
    "Do not repair it by hand. Restore an earlier version of it, then run apply, which takes what "
    "came after that from the audit log."
)


def decode(data: bytes, file: str, advice: Callable[[], str] = lambda: ADVICE) -> State:
    """The state in these bytes. file: the name of the file, for messages; advice: what to do about
    a damaged one.

    Raises StorageError for anything that is not, byte for byte, a state that was saved.
    """
    # An empty file, such as a full disk leaves behind, is damage and never an empty state: that
    # would turn every object into one that nobody manages.
    try:
        frame, pieces = _cut_rows(data)
        members = _parse_members(frame, file)
        if _compute_checksum(data) != members["checksum"]:
            raise _Wrong("its checksum is wrong: it was damaged, or edited by hand")
        lists = chain((members["objects"],), map(canonical.loads, pieces))
        return _build_state(members, chain.from_iterable(lists))
    except (_Wrong, canonical.CanonicalError) as error:
        raise StorageError(f"{file} cannot be used: {error}", advice()) from None


class _Outlined(Struct, frozen=True):
    """The members of a state that an outline needs."""

    format: int
    checksum: str
    providers: dict[str, str]
    objects: list[ListedObject]


def decode_outline(
    data: bytes, file: str, advice: Callable[[], str] = lambda: ADVICE
) -> StateOutline:
    """The outline of the state in these bytes, in a twentieth of the time of `decode`, with the
    same arguments. Raises StorageError for bytes that are not those of a saved state."""
    # A parser that passes over all other members. It reads every way to write a name in JSON, but
    # does not look for whatever else is wrong: the checksum shows that kafkaform wrote the bytes.
    try:
        members = msgspec.json.decode(data, type=_Outlined)
        sound = members.checksum == _compute_checksum(data)
    except msgspec.MsgspecError:
        sound = False
    if not sound or members.format not in (FORMAT, SEALED_FORMAT):
        return outline_state(decode(data, file, advice))
    return StateOutline(members.providers, members.objects, lambda: decode(data, file, advice))


def _cut_rows(data: bytes) -> tuple[bytes, Iterator[bytes]]:
    """A state without its objects, and those as lists of JSON. Anything that is not laid out as a
    state stays whole."""
    # Parsed all at once, the objects take more memory than what becomes of them.
    before = _BEFORE_ROWS.match(data)
    end = data.find(_AFTER_ROWS, before.end()) if before else -1
    if before is None or end < 0:
        return data, iter(())
    return data[: before.end()] + data[end:], _cut_pieces(data, before.end(), end)


def _cut_pieces(data: bytes, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        # A line is an object, and no text in it can contain a newline.
        cut = data.find(b",\n", start + _PIECE, end)
        stop = end if cut < 0 else cut
        yield b"[%b]" % data[start:stop]
        start = stop + 2


def _parse_members(data: bytes, file: str) -> FrozenMap:
    if not data:
        raise _Wrong("it is empty")
    document = canonical.loads(data)
    if not isinstance(document, FrozenMap) or "format" not in document:
        raise _Wrong("it is not a kafkaform state")
    number = document["format"]
    if type(number) is int and number > SEALED_FORMAT:
        # Before the checksum and the members, which a later format may define differently.
        raise StorageError(
            f"{file} has state format {number}, written by kafkaform "
            f"{document.get('kafkaform_version', '(unknown)')}; this version reads up to "
            f"{SEALED_FORMAT}",
            "Use that version of kafkaform or a newer one. Nothing was changed.",
        )
    if number not in (FORMAT, SEALED_FORMAT) or type(number) is not int:
        formats = f"{FORMAT} and {SEALED_FORMAT}"
        raise _Wrong(f"its format is {_clip(number)}; this version reads {formats}")
    _refuse_other_members(document, MEMBERS, "the state")
    return document


def _compute_checksum(data: bytes) -> str:
    match = _CHECKSUM.match(data)
    if match is None:
        return ""
    # Views, because a state can be large: copies of its parts would be the most memory of a plan.
    view = memoryview(data)
    hashed = hashlib.sha256(view[: match.start(1)])
    hashed.update(view[match.end(1) :])
    return hashed.hexdigest()


def encode_row(row: Row) -> FrozenMap:
    """A row as the record of an edit contains it: the same members as in the state file."""
    return FrozenMap(_list_row_members(row))


def decode_row(data: Value, source: str) -> Row:
    """The row that `encode_row` made. source: for messages. Raises StorageError."""
    try:
        return _build_row("the row", data)
    except _Wrong as error:
        raise StorageError(f"{source}: {error}", DAMAGED_EDIT) from None


DAMAGED_EDIT = (
    "Run `kafkaform audit verify` to find out whether the log was changed. Nothing was sent."
)


# ── to data ─────────────────────────────────────────────────────────────────────────────


def _require_sound(state: State, anchor: FrozenMap | None) -> None:
    members: dict[str, Value] = {
        "kafkaform_version": state.kafkaform_version,
        "lineage": state.lineage,
        "serial": state.serial,
        "objects": (),
        "providers": state.providers,
        "outputs": state.outputs,
        "audit_head": anchor,
    }
    if fault := _find_fault(members, _STATE_RULES):
        _refuse("the state", fault)


def _render_line(identity: Identity, row: Row) -> str:
    if identity != row.identity:
        raise _Wrong(f"{identity} is recorded as {row.identity}")
    try:
        return row._line
    except AttributeError:
        data = _list_row_members(row)
        sound = getattr(row, "_sound", False)
        if not sound and (fault := _find_fault(data, _select_row_rules(data))):
            _refuse(f"object {row.identity.kind} {row.identity.key}", fault)
        force_setattr(row, "_line", canonical.dumps(data))
        return row._line


def _list_row_members(row: Row) -> dict[str, Value]:
    return {
        "instance": row.identity.instance,
        "kind": row.identity.kind,
        "identity": row.identity.key,
        "owners": row.owners,
        "origin": row.origin,
        "attributes": row.attributes,
        "incarnation": row.incarnation,
        "protected": row.protected,
        "owner": row.owner,
        "labels": row.labels,
        "depends_on": row.depends_on,
        "secret_version": row.secret_version,
        # Few rows have these, and earlier versions refuse a row that does.
        **({"reported": row.reported} if row.reported else {}),
        **({"park": row.park} if row.park is not None else {}),
    }


# ── from data: each member has a rule, and a rule that is broken is named ───────────────


def _is_name(value: Value) -> bool:
    return isinstance(value, str) and value != ""


def _is_output(value: Value) -> bool:
    """True for a value without secrets and a flag that says whether it is sensitive."""
    return (
        isinstance(value, FrozenMap)
        and value.keys() >= {"value", "sensitive"}
        and isinstance(value["sensitive"], bool)
        and not has_secret(value["value"])
    )


def has_secret(value: Value) -> bool:
    """True if this value contains a secret reference; a state contains none."""
    if isinstance(value, FrozenMap):
        return any(map(has_secret, value.values()))
    if isinstance(value, tuple):
        return any(map(has_secret, value))
    return isinstance(value, SecretRef)


def _is_count(value: Value) -> bool:
    return type(value) is int and value >= 0


def _is_any(value: Value) -> bool:
    return True


_TEXT, _OPTIONAL_TEXT = frozenset({str}), frozenset({str, type(None)})
_MAP, _LIST, _COUNT = frozenset({FrozenMap}), frozenset({tuple}), frozenset({int})
_OPTIONAL_MAP = frozenset({FrozenMap, type(None)})

Rules = Mapping[str, tuple[frozenset[Any], Callable[[Any], bool], str]]
"""Name of a member -> the types of its values, whether one of them is allowed, and what is allowed
in words."""

_STATE_RULES: Rules = {
    "kafkaform_version": (_TEXT, _is_any, "text"),
    "lineage": (_TEXT, bool, "text that is not empty"),
    "serial": (_COUNT, lambda v: v >= 0, "a whole number, 0 or more"),
    "objects": (_LIST, _is_any, "a list"),
    "providers": (
        _MAP,
        lambda v: all(map(_is_name, v.values())),
        "an object of scope ids that are not empty",
    ),
    "outputs": (
        _MAP,
        lambda v: all(map(_is_output, v.values())),
        "an object of outputs, each with `value` and `sensitive`, none secret",
    ),
    "audit_head": (_OPTIONAL_MAP, lambda v: v is None or _is_head(v), "null, or seq and hash"),
}
_ROW_RULES: Rules = {
    "instance": (_TEXT, bool, "text that is not empty"),
    "kind": (_TEXT, bool, "text that is not empty"),
    "identity": (_TEXT, _is_any, "text"),
    "owners": (
        _LIST,
        lambda v: bool(v) and all(map(is_object_address, v)),
        "a list of addresses that is not empty",
    ),
    "origin": (_COUNT, lambda v: v > 0, "the number of an audit record, 1 or more"),
    "attributes": (_MAP, _is_any, "an object"),
    "incarnation": (_OPTIONAL_TEXT, _is_any, "text or null"),
    "protected": (_TEXT, lambda v: v in PROTECTIONS, f"one of {', '.join(PROTECTIONS)}"),
    "owner": (_OPTIONAL_TEXT, _is_any, "text or null"),
    "labels": (
        _MAP,
        lambda v: all(isinstance(text, str) for text in v.values()),
        "an object of texts",
    ),
    "depends_on": (_LIST, lambda v: all(map(is_object_address, v)), "a list of addresses"),
    "secret_version": (_OPTIONAL_TEXT, _is_any, "text or null"),
}
_LATER_ROW_RULES: Rules = {
    "reported": (
        _MAP,
        lambda v: bool(v) and not has_secret(v),
        "an object of values that is not empty",
    ),
    "park": (_COUNT, lambda v: v > 0, "a number of milliseconds, 1 or more"),
}
"""Of members that only some rows have."""


def find_row_fault(name: str, value: Value) -> str:
    """What the member of a row has to be, if it must not be this value; otherwise an empty text."""
    types, rule, expected = (_LATER_ROW_RULES if name in _LATER_ROW_RULES else _ROW_RULES)[name]
    return "" if value.__class__ in types and rule(value) else expected


def _is_head(value: Value) -> bool:
    return (
        isinstance(value, FrozenMap)
        and value.keys() == {"seq", "hash"}
        and _is_count(value["seq"])
        and _is_name(value["hash"])
    )


def _build_state(members: FrozenMap, rows: Iterable[Value]) -> State:
    if fault := _find_fault(members, _STATE_RULES):
        _refuse("the state", fault)
    objects: dict[Identity, Row] = {}
    for number, data in enumerate(rows):
        row = _build_row(f"objects[{number}]", data)
        if row.identity in objects:
            raise _Wrong(f"{row.identity} is recorded twice")
        objects[row.identity] = row
    head = members["audit_head"]
    return State(
        lineage=members["lineage"],
        serial=members["serial"],
        objects=objects,
        providers=members["providers"],
        outputs=members["outputs"],
        audit_head=Head(head["seq"], head["hash"]) if head else None,
        kafkaform_version=members["kafkaform_version"],
        sealed=members["format"] == SEALED_FORMAT,
    )


def _build_row(subject: str, data: Value) -> Row:
    if not isinstance(data, FrozenMap):
        raise _Wrong(f"{subject} is not an object")
    rules = _select_row_rules(data)
    _refuse_other_members(data, rules.keys(), subject)
    if fault := _find_fault(data, rules):
        _refuse(f"{subject} ({_clip(data['kind'])} {_clip(data['identity'])})", fault)
    members: dict[str, Any] = dict(data)
    identity = Identity(members.pop("instance"), members.pop("kind"), members.pop("identity"))
    row = Row(identity, **members)
    force_setattr(row, "_sound", True)
    return row


def _select_row_rules(data: Mapping[str, Value]) -> Rules:
    """The rules for a row with these members."""
    later_members = data.keys() & _LATER_ROW_RULES.keys()
    return (
        {**_ROW_RULES, **{name: _LATER_ROW_RULES[name] for name in later_members}}
        if later_members
        else _ROW_RULES
    )


def _find_fault(data: Mapping[str, Value], rules: Rules) -> tuple[str, str] | None:
    """The first member that breaks its rule, and what it has to be; None if there is none."""
    for name, (types, rule, expected) in rules.items():
        value = data[name]
        if value.__class__ not in types or (rule is not _is_any and not rule(value)):
            return name, expected
    return None


def _refuse_other_members(data: FrozenMap, members: Set[str], subject: str) -> None:
    if data.keys() == members:
        return
    if missing := sorted(members - data.keys()):
        raise _Wrong(f"{subject} lacks the members {', '.join(missing)}")
    if unknown := sorted(data.keys() - members):
        raise _Wrong(f"{subject} has unknown members: {', '.join(map(_clip, unknown))}")


def _clip(value: Value) -> str:
    # A damaged file may contain anything, also a member of a megabyte.
    text = str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _refuse(subject: str, fault: tuple[str, str]) -> NoReturn:
    name, expected = fault
    raise _Wrong(f"`{name}` of {subject} is not {expected}")
