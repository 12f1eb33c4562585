"""Reads and writes just enough of Java class files (JVMS §4) to do without a compiler."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4}
_SIZES |= {18: 4, 19: 2, 20: 2}
"""Tag of a constant -> bytes that follow it; 1 is text with its own length."""


def enum_names(jar: Path, name: str) -> list[str]:
    """The constants of an enum class in a jar, in the order of its source."""
    with zipfile.ZipFile(jar) as archive:
        data = archive.read(f"{name}.class")
    text, at = _texts(data)
    (interfaces,) = struct.unpack_from(">H", data, at + 6)
    return list(_fields(data, text, at + 8 + 2 * interfaces, f"L{name};"))


def _texts(data: bytes) -> tuple[dict[int, str], int]:
    """Constant number -> text, and where the constants end."""
    (count,) = struct.unpack_from(">H", data, 8)
    found, at, number = {}, 10, 1
    while number < count:
        tag = data[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            found[number] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            at += 1 + _SIZES[tag]
        number += 2 if tag in (5, 6) else 1
    return found, at


def _fields(data: bytes, text: dict[int, str], at: int, kind: str) -> Iterator[str]:
    (count,) = struct.unpack_from(">H", data, at)
    at += 2
    for _ in range(count):
        _, name, descriptor, attributes = struct.unpack_from(">HHHH", data, at)
        at += 8
        for _ in range(attributes):
            at += 6 + struct.unpack_from(">I", data, at + 2)[0]
        if text[descriptor] == kind:
            yield text[name]


# ── writing ─────────────────────────────────────────────────────────────────────────────

OLD = 49
"""Class files of this version (Java 5) are verified without stack maps (JVMS §4.10)."""

_PUBLIC, _SUPER = 0x0001, 0x0020
_LDC, _DUP, _RETURN, _ATHROW, _NEW = 0x12, 0x59, 0xB1, 0xBF, 0xBB
_VIRTUAL, _SPECIAL, _INTERFACE, _IFEQ = 0xB6, 0xB7, 0xB9, 0x99
_ALOAD_0, _ALOAD_1 = 0x2A, 0x2B


class _Pool:
    """Constants, each once, by number."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []

    def _put(self, entry: bytes) -> int:
        if entry not in self.entries:
            self.entries.append(entry)
        return self.entries.index(entry) + 1

    def text(self, value: str) -> int:
        data = value.encode()
        return self._put(b"\x01" + struct.pack(">H", len(data)) + data)

    def kind(self, name: str) -> int:
        return self._put(struct.pack(">BH", 7, self.text(name)))

    def string(self, value: str) -> int:
        return self._put(struct.pack(">BH", 8, self.text(value)))

    def method(self, owner: str, name: str, form: str, *, interface: bool = False) -> int:
        pair = self._put(struct.pack(">BHH", 12, self.text(name), self.text(form)))
        return self._put(struct.pack(">BHH", 11 if interface else 10, self.kind(owner), pair))


def policy(name: str, interface: str, rule: Rule, told: str) -> bytes:
    """A class of Kafka's plug-in interface for policies: `validate` throws
    PolicyViolationException(told) where the rule says so, and does nothing otherwise."""
    pool = _Pool()
    methods = [
        _method(pool, "<init>", "()V", _constructor(pool)),
        _method(pool, "configure", "(Ljava/util/Map;)V", bytes([_RETURN])),
        _method(pool, "close", "()V", bytes([_RETURN])),
        _method(pool, "validate", f"(L{interface}$RequestMetadata;)V",
                _validate(pool, f"{interface}$RequestMetadata", rule, told)),
    ]  # fmt: skip
    this, parent, face = pool.kind(name), pool.kind("java/lang/Object"), pool.kind(interface)
    shape = struct.pack(">HHHHHHH", _PUBLIC | _SUPER, this, parent, 1, face, 0, len(methods))
    constants = struct.pack(">H", len(pool.entries) + 1) + b"".join(pool.entries)
    head = struct.pack(">IHH", 0xCAFEBABE, 0, OLD)
    return head + constants + shape + b"".join(methods) + struct.pack(">H", 0)


@dataclass(frozen=True)
class Rule:
    """Forbids what has `text` as the answer to `getter().question(text)`. kind: the getter's
    type; interface: whether that type is one."""

    getter: str
    kind: str
    question: str
    form: str
    text: str
    interface: bool = False


def write_jar(path: Path, classes: dict[str, bytes]) -> None:
    """A jar with these classes, by name with slashes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in classes.items():
            archive.writestr(f"{name}.class", data)


def _constructor(pool: _Pool) -> bytes:
    parent = pool.method("java/lang/Object", "<init>", "()V")
    return struct.pack(">BBHB", _ALOAD_0, _SPECIAL, parent, _RETURN)


def _validate(pool: _Pool, request: str, rule: Rule, told: str) -> bytes:
    getter = pool.method(request, rule.getter, f"()L{rule.kind};")
    asks = pool.method(rule.kind, rule.question, rule.form, interface=rule.interface)
    error = "org/apache/kafka/common/errors/PolicyViolationException"
    code = struct.pack(">BBHBB", _ALOAD_1, _VIRTUAL, getter, _LDC, pool.string(rule.text))
    if rule.interface:
        code += struct.pack(">BHBB", _INTERFACE, asks, 2, 0)
    else:
        code += struct.pack(">BH", _VIRTUAL, asks)
    refusal = struct.pack(">BHBBB", _NEW, pool.kind(error), _DUP, _LDC, pool.string(told))
    refusal += struct.pack(">BH", _SPECIAL, pool.method(error, "<init>", "(Ljava/lang/String;)V"))
    refusal += bytes([_ATHROW])
    # A jump counts from its own first byte, and is three bytes long.
    return code + struct.pack(">Bh", _IFEQ, 3 + len(refusal)) + refusal + bytes([_RETURN])


def _method(pool: _Pool, name: str, form: str, code: bytes) -> bytes:
    body = struct.pack(">HHI", 3, 2, len(code)) + code + struct.pack(">HH", 0, 0)
    attribute = struct.pack(">HI", pool.text("Code"), len(body)) + body
    return struct.pack(">HHHH", _PUBLIC, pool.text(name), pool.text(form), 1) + attribute
