r"""Parse Java's .properties format as `java.util.Properties.load` does.

ISO 8859-1 with \uXXXX; `#` and `!` begin comments; `=`, `:` or blanks end a key; a line that ends
in an odd number of backslashes continues in the next line, whose leading blanks do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from ..core.diagnostics import Diagnostic, Range, Severity
from ..core.errors import ConfigurationError
from ..render.text import inline

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(.{0,4})|(.))", re.DOTALL)
_TRAILING = re.compile(r"\\*$")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(Struct, frozen=True):
    """One property."""

    key: str
    value: str
    place: Range | None = None
    """The place of the key in its file, None for a property of the command line."""

    @property
    def excerpt(self) -> str:
        """The line without its value, which can be a password."""
        return f"{inline(self.key)}=…"


def parse_properties(data: bytes, name: str) -> tuple[Property, ...]:
    """Parse the properties of a file, in order. Raises ConfigurationError for a broken escape."""
    properties = []
    for number, column, line in _join_lines(data.decode("latin-1")):
        match = _PAIR.fullmatch(line)
        assert match is not None  # every text fits
        source = Range(name, number, column, number, column + len(match[1]))
        try:
            properties.append(Property(unescape_text(match[1]), unescape_text(match[2]), source))
        except ValueError as error:
            fault = Diagnostic(
                Severity.ERROR,
                f"{name}: {error}",
                range=source,
                advice="Write \\u and four hexadecimal digits, or \\\\ for a backslash.",
            )
            raise ConfigurationError(str(error), diagnostics=(fault,)) from None
    return tuple(properties)


def unescape_text(text: str) -> str:
    """Replace the escapes in a text. Raises ValueError for a broken \\uXXXX."""
    # Java's characters are UTF-16: one beyond the basic plane is written as two escapes.
    plain = _ESCAPE.sub(_unescape_match, text)
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("a \\u escape is half of a character") from None


def _unescape_match(match: re.Match[str]) -> str:
    if match[1] is None:
        return _NAMED.get(match[2], match[2])
    if not re.fullmatch("[0-9A-Fa-f]{4}", match[1]):
        raise ValueError("a \\u escape needs four hexadecimal digits")
    return chr(int(match[1], 16))


def _join_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Line number and column of the first character, and the text without line breaks."""
    lines = iter(enumerate(_LINE_END.split(text), 1))
    for number, line in lines:
        whole = line.lstrip(_BLANKS)
        if not whole or whole[0] in "#!":
            continue
        column = len(line) - len(whole) + 1
        while _is_continued(whole):
            _, continuation = next(lines, (0, ""))
            whole = whole[:-1] + continuation.lstrip(_BLANKS)
        yield number, column, whole


def _is_continued(line: str) -> bool:
    match = _TRAILING.search(line)
    return match is not None and len(match[0]) % 2 == 1
