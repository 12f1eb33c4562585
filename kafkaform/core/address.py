"""Addresses: the names of declared objects, such as `module.eu.kafka_topic.orders["a"]`."""

from __future__ import annotations

import fnmatch
import json
import re
from functools import cache
from json.encoder import encode_basestring
from sys import intern
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

CLOSURE = "park"
"""The name of what takes access to a parked object away: `kafka_topic.orders/park["Read"]`."""
_NAME = r"[^\W\d][\w-]*+"
_KEY = r'\[(?:"(?:[^"\\]|\\.)*"|\d+)\]'
# Compiled when they are first used, and then kept by `re`: `validate` parses no address.
_ADDRESS = (
    rf"(?P<modules>(?:module\.{_NAME}(?:{_KEY})?\.)*)(?P<data>data\.)?"
    rf"(?P<type>{_NAME})\.(?P<name>{_NAME})(?P<key>{_KEY})?(?:/(?P<child>{_NAME}{_KEY}))?"
)
_PLAIN_KEY = r'\[(?:"[^"\\\x00-\x1f]*"|0|[1-9][0-9]{0,8})\]'
_PLAIN = (
    rf"(?:module\.{_NAME}(?:{_PLAIN_KEY})?\.)*"
    rf"{_NAME}\.{_NAME}(?:{_PLAIN_KEY})?(?:/{_NAME}{_PLAIN_KEY})?"
)
"""Addresses whose keys have no escapes, so that nothing of them has to be parsed."""
_MODULE = rf"module\.{_NAME}(?:{_KEY})?"
_MODULES = rf"{_MODULE}(?:\.{_MODULE})*"


class _WithText:
    """A slot that is not a field, so that it is not compared, copied or stored."""

    __slots__ = ("_text",)
    _text: str


class Address(_WithText, Struct, frozen=True, order=True):
    """The name of one declared object, of a block, or of a module (`module.eu`)."""

    type: str
    """The resource type; empty for a module."""
    name: str
    """The label of the block; empty for a module."""
    key: str | int | None = None
    """The for_each key or the count index, None without either."""
    module: tuple[str, ...] = ()
    """Steps such as `module.eu` or `module.eu["a"]`, outermost first."""
    child: str | None = None
    """The part of a composite that the object is: `part["…"]`."""

    def __str__(self) -> str:
        # A large plan compares and sorts addresses by their text many times.
        try:
            return self._text
        except AttributeError:
            own = (self.type, f"{self.name}{render_key(self.key)}") if self.type else ()
            child = "" if self.child is None else f"/{self.child}"
            text = ".".join((*self.module, *own)) + child
            # Interned: the rows of the state have the same text, and it is then stored once.
            force_setattr(self, "_text", intern(text))
            return self._text

    @property
    def resource(self) -> Address:
        """The block without instance key and child: `kafka_topic.orders`."""
        return replace(self, key=None, child=None)

    def nest_in(self, module: tuple[str, ...]) -> Address:
        """The same address as seen from outside the module that contains it."""
        return replace(self, module=(*module, *self.module)) if module else self

    def contains(self, address: Address) -> bool:
        """True if `other` is this address, one of its instances or children, or in this module.

        A module step without a key stands for all instances of the module.
        """
        steps = address.module[: len(self.module)]
        if not (len(steps) == len(self.module) and all(map(_covers, self.module, steps))):
            return False
        if not self.type:
            return True
        return (
            len(address.module) == len(self.module)
            and (self.type, self.name) == (address.type, address.name)
            and (self.key is None or is_same_key(self.key, address.key))
            and (self.child is None or self.child == address.child)
        )


def render_key(key: str | int | None) -> str:
    """An instance key as addresses write it: `["a"]`, `[0]`, or an empty text."""
    if key is None:
        return ""
    return f"[{encode_basestring(key) if isinstance(key, str) else key}]"


def _covers(step: str, child_step: str) -> bool:
    return step == child_step or step == child_step.partition("[")[0]


def rename_address(address: Address, source: Address, target: Address) -> Address | None:
    """What `address` is called once `source` is called `target`, or None if it stays.

    A source without a key means all instances, which keep their keys, unless the target has
    one: then it means the instance without a key (as in Terraform's `moved` blocks).
    """
    *outer, last = (*source.module, "") if source.type else source.module
    if address.module[: len(outer)] != tuple(outer):
        return None
    if source.type:
        if address.resource != source.resource:
            return None
        if source.child is not None and source.child != address.child:
            return None
        key = _rename_key(address.key, source.key, target.key)
        child = address.child if source.child is None else target.child
        return None if key is _STAYS else replace(target, key=key, child=child)
    depth = len(outer)
    if len(address.module) <= depth:
        return None
    step = _rename_step(address.module[depth], last, target.module[-1])
    if step is None:
        return None
    remaining = address.module[depth + 1 :]
    return replace(address, module=(*target.module[:-1], step, *remaining))


# None is a key as well: that of an object without one.
_STAYS: Any = object()


def _rename_key(key: Any, source: Any, target: Any) -> Any:
    if source is not None:
        return target if is_same_key(key, source) else _STAYS
    if target is not None:
        return target if key is None else _STAYS
    return key


def _rename_step(step: str, source: str, target: str) -> str | None:
    if "[" in source or "[" in target:
        return target if step == source else None
    name, bracket, key = step.partition("[")
    return f"{target}{bracket}{key}" if name == source else None


def is_same_key(first: str | int | None, second: str | int | None) -> bool:
    """Instance keys are equal only with equal types: [0] is not ["0"]."""
    return type(first) is type(second) and first == second


def parse_address(text: str) -> Address:
    """The address that this text names. Raises ValueError with what was expected."""
    if re.fullmatch(_MODULES, text.strip()):
        return Address("", "", None, tuple(re.findall(_MODULE, text)))
    match = re.fullmatch(_ADDRESS, text.strip())
    if match is None or match["data"]:
        raise ValueError(f'{text!r} is not an address; expected TYPE.NAME or TYPE.NAME["KEY"]')
    try:
        key = _parse_key(match["key"]) if match["key"] else None
    except ValueError:
        raise ValueError(
            f"{text!r} is not an address: {match['key']} is not an instance key"
        ) from None
    modules = tuple(re.findall(_MODULE, match["modules"]))
    return Address(match["type"], match["name"], key, modules, match["child"])


def is_object_address(text: Any) -> bool:
    """True if `parse_address` reads this as the address of an object, in its one spelling."""
    if not isinstance(text, str):
        return False
    if _compile_plain().fullmatch(text):
        return True
    match = re.fullmatch(_ADDRESS, text)
    if match is None or match["data"]:
        return False
    try:
        return match["key"] is None or _parse_key(match["key"]) is not None
    except ValueError:
        return False


@cache
def _compile_plain() -> re.Pattern[str]:
    # A log and a state have hundreds of thousands of addresses; the cache of `re` takes as long as
    # the match.
    return re.compile(_PLAIN)


def _parse_key(bracketed: str) -> Any:
    """The instance key between the brackets. Raises ValueError."""
    return json.loads(bracketed[1:-1])


def is_closure(address: str) -> bool:
    """True for the address of what takes access to a parked object away."""
    child = f"{CLOSURE}["
    if f"/{child}" not in address:
        return False
    # An instance key can contain the same text.
    try:
        parsed = parse_address(address)
    except ValueError:
        return False
    return parsed.child is not None and parsed.child.startswith(child)


def matches(pattern: str, address: str) -> bool:
    """True if a --target / --exclude / --adopt glob names this address.

    `*` and `?` are wildcards, brackets are literal, because they contain instance keys. A pattern
    without an instance key names every instance, and one that ends with a module all below it.
    """
    literal = pattern.replace("[", "[[]")
    return (
        fnmatch.fnmatchcase(address, literal)
        or fnmatch.fnmatchcase(address, literal + "[[]*")
        or fnmatch.fnmatchcase(address, literal + "/*")
        or (pattern.rpartition(".")[0].split(".")[-1] == "module" or pattern == "module")
        and fnmatch.fnmatchcase(address, literal + ".*")
    )
