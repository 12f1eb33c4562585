"""The spellings in which programs write a text: raw, escaped, encoded."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

_PLAIN = re.compile(r"[\w .+/=%-]*", re.ASCII)
"""Texts that no program escapes."""

_HEADER = "-----"
"""How the first and the last line of a PEM text begin. They are no secret."""


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
