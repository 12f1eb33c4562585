"""Secrets in memory, and how they are kept out of everything that is written.

A `Secret` can be sent and compared, and nobody can show one by mistake. Masks are the second line
of defence: no secret should ever get there, but a server may repeat a password in an error message,
and a library may put one into an exception. A text is masked in all spellings in which programs
write it: raw, escaped, encoded.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, ClassVar, NoReturn, final
from urllib.parse import quote, quote_plus

from msgspec import Struct

from .diagnostics import Diagnostics
from .errors import KafkaformError

_PLAIN = re.compile(r"[\w .+/=%-]*", re.ASCII)
"""Texts that no program escapes."""

_HEADER = "-----"
"""How the first and the last line of a PEM text begin. They are no secret."""

MASK = "(secret)"
# A shorter text such as `on` or `1234` occurs in every second line by chance. Masking it would make
# the output useless, and would reveal the secret to everybody who sees what is missing.
SHORTEST = 6
"""Characters of the shortest secret that can be masked."""
FEW = 128
"""Up to so many different beginnings, one regular expression is faster than a look at each
position."""
_CLIPPED = ("…", '"…', '\\"…', "\\u2026", '\\"\\u2026')
"""What follows where a long text was cut, so that only the beginning of a secret is left."""
SECRET_TEXT = "<secret>"


def list_spellings(secret: str) -> set[str]:
    """Every form in which a text may contain the secret."""
    # Its lines as well: a program that writes line by line tears the secret up.
    lines = (line.strip() for line in secret.splitlines())
    texts = {secret, secret.strip(), *(line for line in lines if not line.startswith(_HEADER))}
    forms = {
        form for text in texts for form in (text, *_list_escapes(text), *_list_encodings(text))
    }
    # Escaped twice, such as in JSON that contains an error message that quotes the secret.
    return forms | {escaped for form in forms for escaped in _list_escapes(form)}


def _list_escapes(text: str) -> Iterator[str]:
    if _PLAIN.fullmatch(text) is None:
        for escape in _ESCAPES:
            yield escape(text)


def _escape_unprintable(text: str) -> str:
    r"""As `text.foreign.inline` writes it: invisible characters as \n, \x1b or \u202e."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _escape_template(text: str) -> str:
    """As HCL writes it in quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("${", "$${").replace("%{", "%%{")


_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: text.replace("\\", "\\\\").replace('"', '\\"'),
    lambda text: _escape_unprintable(text.replace("\\", "\\\\").replace('"', '\\"')),
    lambda text: text.encode("ascii", "backslashreplace").decode("ascii"),
    lambda text: text.replace("'", "'\"'\"'"),
    _escape_unprintable,
    _escape_template,
    html.escape,
)


def _list_encodings(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield data.hex().upper()
    # Base64 writes three bytes as four characters. Other bytes in front, such as the user name of
    # an Authorization header, shift the secret by 0, 1 or 2 bytes, and each shift looks different.
    # These are the characters that depend on the secret alone.
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):
            whole = encode(b"\0" * shift + data).decode("ascii")
            yield whole[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
    for url in (quote(data, safe=""), quote(data), quote_plus(data), quote_plus(data, safe="/")):
        yield url
        yield re.sub("%..", lambda code: code[0].lower(), url)


class KnownSecrets:
    """The secrets of a run, in all spellings in which they might be written."""

    # A plain class: the repr of a Struct would show its fields.
    def __init__(self) -> None:
        self._lock = Lock()
        self._secrets: set[str] = set()
        self._spelled: dict[str, list[str]] = {}
        """The first SHORTEST characters -> the spellings that begin with them."""
        self._pattern: re.Pattern[str] | None = None
        """Matches the beginnings; None if it has to be made anew."""

    def add(self, secret: str) -> None:
        """Mask this text from now on. Any thread may call it."""
        with self._lock:
            if secret in self._secrets:
                return
            self._secrets.add(secret)
            for form in list_spellings(secret):
                if len(form) >= SHORTEST:
                    self._spelled.setdefault(form[:SHORTEST], []).append(form)
            self._pattern = None

    def mask_secrets(self, text: str) -> str:
        """The text with a mask in place of every secret."""
        pieces, end = [], 0
        for start, stop in self.find_secrets(text):
            pieces += [text[end:start], MASK]
            end = stop
        return "".join((*pieces, text[end:])) if pieces else text

    def find_secrets(self, text: str) -> Iterator[tuple[int, int]]:
        """Begin and end of each secret in the text, from left to right."""
        position = 0
        while self._spelled and (start := self._find_beginning(text, position)) >= 0:
            forms = self._spelled[text[start : start + SHORTEST]]
            length = max(_measure_match(form, text, start) for form in forms)
            if length:
                yield start, start + length
            position = start + (length or 1)

    def _find_beginning(self, text: str, position: int) -> int:
        """The next place where a secret may begin, or -1."""
        if len(self._spelled) > FEW:
            starts = range(position, len(text) - SHORTEST + 1)
            return next((p for p in starts if text[p : p + SHORTEST] in self._spelled), -1)
        pattern = self._pattern
        if pattern is None:
            # `tuple` first: another thread may add a secret while this one reads.
            pattern = re.compile("|".join(map(re.escape, tuple(self._spelled))))
            self._pattern = pattern
        match = pattern.search(text, position)
        return match.start() if match else -1


def _measure_match(form: str, text: str, start: int) -> int:
    """How many characters from here on are this form: all of it, what a cut left of it, or 0."""
    if text.startswith(form, start):
        return len(form)
    if "…" not in text and "\\u2026" not in text:
        return 0
    length = SHORTEST
    while length < len(form) and text[start + length : start + length + 1] == form[length]:
        length += 1
    return length if text.startswith(_CLIPPED, start + length) else 0


_CURRENT: ContextVar[KnownSecrets | None] = ContextVar("the secrets of this run", default=None)


@contextmanager
def watch_secrets(secrets: KnownSecrets | None = None) -> Iterator[KnownSecrets]:
    """Within the context, `mask_secrets` knows every `Secret` that is made. known: secrets of
    before."""
    secrets = KnownSecrets() if secrets is None else secrets
    token = _CURRENT.set(secrets)
    try:
        yield secrets
    finally:
        _CURRENT.reset(token)


def watched() -> KnownSecrets:
    """The secrets of the current context, or an empty set."""
    secrets = _CURRENT.get()
    return KnownSecrets() if secrets is None else secrets


def remember_secret(secret: str) -> None:
    """Add a secret to those of the current context."""
    secrets = _CURRENT.get()
    if secrets is not None:
        secrets.add(secret)


def mask_secrets(text: str) -> str:
    """The text with a mask in place of every secret of this run."""
    secrets = _CURRENT.get()
    return text if secrets is None else secrets.mask_secrets(text)


def holds_secret(text: str) -> bool:
    """True if the text contains a secret of this run."""
    secrets = _CURRENT.get()
    return secrets is not None and any(secrets.find_secrets(text))


@contextmanager
def keep_secrets(secrets: KnownSecrets) -> Iterator[None]:
    """Note every secret that is read inside the block, and mask them in errors that leave it."""
    with watch_secrets(secrets):
        try:
            yield
        except KafkaformError as error:
            error.rewrite(mask_secrets)
            # The errors of clients in its chain are not ours to rewrite, so they are cut off.
            raise error from None


def clean_diagnostics(diagnostics: Diagnostics) -> Diagnostics:
    """The diagnostics without secrets."""
    # Before they are laid out: a secret that a line break tears apart is not found any more.
    return tuple(item.rewrite(mask_secrets) for item in diagnostics)


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
        return SECRET_TEXT

    def __format__(self, spec: str) -> str:
        return SECRET_TEXT

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
