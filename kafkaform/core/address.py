"""Addresses: how a user names one declared object, `module.eu.kafka_topic.orders["a"]`."""

from __future__ import annotations

import fnmatch
import json
import re
from dataclasses import dataclass, replace

_NAME = r"[^\W\d][\w-]*"
_KEY = r'\[(?:"(?:[^"\\]|\\.)*"|\d+)\]'
_ADDRESS = re.compile(
    rf"(?P<modules>(?:module\.{_NAME}(?:{_KEY})?\.)*)(?P<data>data\.)?"
    rf"(?P<type>{_NAME})\.(?P<name>{_NAME})(?P<key>{_KEY})?(?:/(?P<child>{_NAME}{_KEY}))?"
)
_MODULE = re.compile(rf"module\.{_NAME}(?:{_KEY})?")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """module: steps such as 'module.eu' or 'module.eu["a"]', outermost first; key: the
    for_each key (str) or count index (int); child: the part a type expanded to, 'acl["…"]'."""

    type: str
    name: str
    key: str | int | None = None
    module: tuple[str, ...] = ()
    child: str | None = None

    def __str__(self) -> str:
        key = "" if self.key is None else f"[{json.dumps(self.key, ensure_ascii=False)}]"
        child = "" if self.child is None else f"/{self.child}"
        return ".".join((*self.module, self.type, f"{self.name}{key}")) + child

    @property
    def resource(self) -> Address:
        """The block without instance key and child: `kafka_topic.orders`."""
        return replace(self, key=None, child=None)

    def contains(self, other: Address) -> bool:
        """True if `other` is this address, one of its instances or one of its children."""
        if (self.module, self.type, self.name) != (other.module, other.type, other.name):
            return False
        return (self.key is None or same_key(self.key, other.key)) and (
            self.child is None or self.child == other.child
        )


def same_key(one: str | int | None, other: str | int | None) -> bool:
    """Instance keys are equal only with equal types: [0] is not ["0"]."""
    return type(one) is type(other) and one == other


def parse_address(text: str) -> Address:
    """The address that this text names. Raises ValueError with what was expected."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or match["data"]:
        raise ValueError(f'{text!r} is not an address; expected TYPE.NAME or TYPE.NAME["KEY"]')
    key = json.loads(match["key"][1:-1]) if match["key"] else None
    modules = tuple(_MODULE.findall(match["modules"]))
    return Address(match["type"], match["name"], key, modules, match["child"])


def matches(pattern: str, address: str) -> bool:
    """True if a --target / --exclude / --adopt glob names this address.

    `*` and `?` are wildcards, brackets are literal (they hold instance keys). A pattern
    without an instance key names every instance, one with a module prefix all below it.
    """
    literal = pattern.replace("[", "[[]")
    return (
        fnmatch.fnmatchcase(address, literal)
        or fnmatch.fnmatchcase(address, literal + "[[]*")
        or fnmatch.fnmatchcase(address, literal + "/*")
        or (pattern.rpartition(".")[0].split(".")[-1] == "module" or pattern == "module")
        and fnmatch.fnmatchcase(address, literal + ".*")
    )
