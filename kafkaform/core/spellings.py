"""The ways in which programs write a text: raw, escaped, encoded."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

_PLAIN = re.compile(r"[\w .+/=%-]*", re.ASCII)
"""Nobody escapes these."""

_HEADER = "-----"
"""The first and the last line of a PEM text tell nothing."""


def list_spellings(secret: str) -> set[str]:
    """Every form in which the secret may stand in a text, and those forms escaped once more, as
    in JSON that holds an error text."""
    forms = {
        form
        for text in _list_texts(secret)
        for form in (text, *_list_escapes(text), *_list_encodings(text))
    }
    return forms | {again for form in forms for again in _list_escapes(form)}


def _list_texts(secret: str) -> set[str]:
    """The secret, and its lines: whoever writes line by line tears it up."""
    lines = (line.strip() for line in secret.splitlines())
    return {secret, secret.strip(), *(line for line in lines if not line.startswith(_HEADER))}


def _list_escapes(text: str) -> Iterator[str]:
    if _PLAIN.fullmatch(text) is None:
        for escape in _ESCAPES:
            yield escape(text)


def _escape_unprintable(text: str) -> str:
    r"""As `render.text.inline` writes it: what cannot be seen as \n, \x1b or \u202e."""
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
    for plain in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):
            yield _encode_aligned(plain, data, shift)
    for url in (quote(data, safe=""), quote(data), quote_plus(data), quote_plus(data, safe="/")):
        yield url
        yield _lower_percent_codes(url)


def _encode_aligned(encode: Callable[[bytes], bytes], data: bytes, shift: int) -> str:
    """The characters that stand for the data alone, if `shift` other bytes come before it."""
    whole = encode(b"\0" * shift + data).decode("ascii")
    return whole[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]


def _lower_percent_codes(url: str) -> str:
    first, *rest = url.split("%")
    return "%".join((first, *(part[:2].lower() + part[2:] for part in rest)))
