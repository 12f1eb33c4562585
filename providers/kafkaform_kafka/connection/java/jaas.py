"""Parse `sasl.jaas.config`: one login module with its options, in Java's syntax.

org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/"""
    r"""|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'"""
    r"""|(?P<word>[\w.$\-\u00a0-\uffff]+)|(?P<sign>[=;])""",
    re.DOTALL,
)
# Java's StreamTokenizer reads it: C escapes, octal numbers, and comments of both kinds. A password
# that is read otherwise is another password, and the broker only says that the login failed.
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")


class Login(Struct, frozen=True):
    """A login module with its options."""

    module: str
    """Name of a Java class."""
    # Passwords are among the options, so a Login is never shown or logged.
    options: Mapping[str, str]


def parse_login(text: str) -> Login:
    """The login that the text describes. Raises ValueError with a text that repeats nothing of the
    value."""
    tokens = list(_split_tokens(text))
    if not tokens or tokens[-1] != ("sign", ";"):
        raise ValueError("it does not end with a semicolon")
    # Java would try one module after the other, by flags such as `sufficient`. Kafka's brokers and
    # clients refuse that, too.
    if tokens.count(("sign", ";")) > 1:
        raise ValueError("it names more than one login module")
    words = tokens[:-1]
    if len(words) < 2 or words[1][1].lower() not in _FLAGS:
        raise ValueError("a login module is followed by `required`")
    options, arguments = {}, words[2:]
    for at in range(0, len(arguments), 3):
        option = arguments[at : at + 3]
        if [kind for kind, _ in option] != ["text", "sign", "text"] or option[1][1] != "=":
            raise ValueError('its options are not of the form name="value"')
        options[option[0][1]] = option[2][1]
    return Login(words[0][1], options)


def _split_tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"character {at + 1} begins neither a word nor a quoted text")
        at = match.end()
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            yield "text", _ESCAPE.sub(_decode_escape, quoted)
        elif match["word"]:
            yield "text", match["word"]
        elif match["sign"]:
            yield "sign", match["sign"]


def _decode_escape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code.isdigit() and code < "8" else _NAMED.get(code, code)
