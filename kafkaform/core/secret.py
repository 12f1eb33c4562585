"""Secrets in memory: they can be sent and compared, and nobody can show one by mistake."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, final

from msgspec import Struct

from .redaction import remember_secret

SHOWN = "<secret>"


@final
class Secret:
    """A text that must not be seen.

    Whatever shows values shows `<secret>`, and copying or writing it (pickle, copy, JSON) is
    refused. `reveal` is the only way to the text; `tests/unit/core/test_secret.py` lists its
    callers. The output filter knows the text as soon as the secret exists. An empty one is false.
    """

    __slots__ = ("__text",)
    __hash__ = None  # type: ignore[assignment]  # a hash reveals something about the text

    def __init__(self, text: str) -> None:
        self.__text = text
        remember_secret(text)

    def reveal(self) -> str:
        """The text itself, for the request that needs it."""
        return self.__text

    def __bool__(self) -> bool:
        return bool(self.__text)

    def __eq__(self, other: object) -> bool:
        """Equal to other secrets only; the time that this takes does not reveal how much agrees."""
        if not isinstance(other, Secret):
            return NotImplemented
        from hmac import compare_digest  # noqa: PLC0415  # it loads OpenSSL, for something that only tests do

        own_text, other_text = (s.__text.encode("utf-8", "surrogatepass") for s in (self, other))
        return compare_digest(own_text, other_text)

    def __repr__(self) -> str:
        return SHOWN

    def __format__(self, spec: str) -> str:
        return SHOWN

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Called by pickle, copy and deepcopy."""
        raise TypeError("a secret cannot be copied or written")


class NoSecret(Struct, frozen=True):
    """Why a reference has no secret. It is false, as an empty secret is."""

    reason: str
    """A sentence, never with a part of what a file or command contains."""
    advice: str = ""

    def __bool__(self) -> bool:
        return False


class PartialRepr(Struct, frozen=True):
    """A struct whose repr omits the fields that `_unshown` names."""

    _unshown: ClassVar[frozenset[str]]

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Name and value of each field that is shown, also for rich."""
        names = self.__struct_fields__
        return [(name, getattr(self, name)) for name in names if name not in self._unshown]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields})"
