"""Twenty secrets of all kinds, and the search for them in whatever a command leaves."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

CANARIES: Mapping[str, str] = {
    "ascii": "Canary-Zq7-plain",
    "six": "Zq7w9X",
    "unicode": "Kanärie-Zq7-日本語-пароль",
    "astral": "canary-Zq7-🐤🐤🐤-end",
    "double quotes": 'canary"Zq7"quo"ted',
    "single quotes": "canary'Zq7'quo'ted",
    "backslashes": "canary\\Zq7\\n\\\\u0041\\",
    "percent": "canary%Zq7%s%(x)d%41%%",
    "newline": "canary-Zq7-first\ncanary-Zq7-second",
    "tab and control": "canary\tZq7\x1b[31m\x07end",
    "spaces": "canary Zq7  with   spaces",
    "template": "canary-${Zq7}-%{if}-$${x}",
    "base64-like": "Q2FuYXJ5WnE3UTJGdVlYSjU=",
    "hex-like": "deadbeefcafe5a7130771e5a",
    "url-like": "https://u:canary@Zq7/?a=b&c=d#e",
    "json": '{"canary":"Zq7","a":[1,null]}',
    "markup": "<b>canary</b>&Zq7;[red]x[/red]",
    "shell": "canary;Zq7`id`$(id)|&>x *?",
    "jaas": 'canary=Zq7;"required" \\;',
    "very long": "canary-Zq7-" + "0123456789abcdef" * 128,
}
"""What it is about -> a secret. None of them is part of a text that kafkaform writes."""

SHORTEST_PIECE = 6
PIECE = 24


def traces(secret: str) -> set[bytes]:
    """What would betray it: each spelling whole, and of a long one every way that a cut, a line
    break or an alignment could have left. Made here on its own, so that it and the product do not
    share a mistake."""
    return {
        trace.encode("utf-8", "surrogatepass")
        for text in _pieces(secret)
        for trace in _spelled(text)
        if len(trace) >= SHORTEST_PIECE
    }


def _pieces(secret: str) -> Iterator[str]:
    yield secret
    yield from (line for line in secret.splitlines() if len(line) >= SHORTEST_PIECE)
    if len(secret) > 2 * PIECE:
        yield secret[:PIECE]
        yield secret[-PIECE:]


def _spelled(text: str) -> Iterator[str]:
    data = text.encode()
    escaped = [text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]]
    escaped += [repr(text)[1:-1], "".join(text.split())]
    yield from escaped
    yield from (json.dumps(one)[1:-1] for one in escaped)
    yield from (data.hex(), data.hex().upper())
    yield from (quote(text), quote(text, safe=""), quote_plus(text))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):
            # Two bytes at each end depend on their neighbours; what is left must be telling.
            inner = encode(b"\0" * shift + data)[4 : -4 if len(data) > 9 else None]
            if len(inner) >= 2 * SHORTEST_PIECE:
                yield inner.decode().rstrip("=")


def hits(secret: str, where: Mapping[str, bytes]) -> list[str]:
    """In which of these places the secret is, and as what. Whoever looks at a terminal reads over
    line breaks, bars and blanks, so they are left out for a second look."""
    wanted = traces(secret)
    joined = {t for t in ("".join(secret.split()).encode(),) if len(t) >= SHORTEST_PIECE}
    return [
        f"{place}: {trace!r}"
        for place, data in where.items()
        for trace, text in (
            *((trace, data) for trace in wanted),
            *((trace, b"".join(data.replace("│".encode(), b"").split())) for trace in joined),
        )
        if trace in text
    ]
