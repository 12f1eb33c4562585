"""Text from outside that people will see: names, values and messages that others chose.

Whoever chose them must not be able to move a cursor, reorder what is read, forge a line, start a
command of a build log or a formula of a spreadsheet.
"""

from __future__ import annotations

import re

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Printable by category, but drawn as nothing: joiners, fillers, variation selectors.
_INVISIBLE = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U000e0100-\U000e01ef]"
)
# Azure Pipelines, TeamCity and GitHub obey these anywhere in a line.
_LOG_COMMAND = re.compile(r"##(?=\w*\[)")
# What spreadsheets take for a formula, however they trim; the last four are full-width.
_FORMULA = re.compile(r"[\s\"']*[=+\-@|%\uff1d\uff0b\uff0d\uff20]")


def escape(char: str) -> str:
    r"""A visible name for one character: \n, \x1b, \u202e, \U000e0001."""
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def inline(text: str) -> str:
    """Foreign text on one line: what cannot be seen is escaped, log commands are broken.

    Escaped are controls (C0, C1, DEL, ESC), line breaks, bidirectional and zero-width
    characters, surrogates, unassigned characters and spaces other than U+0020.
    """
    if text.isascii() and text.isprintable() and "##" not in text:
        return text
    if not text.isprintable():
        text = "".join(char if char.isprintable() else escape(char) for char in text)
    text = _INVISIBLE.sub(lambda match: escape(match[0]), text)
    return _LOG_COMMAND.sub(r"#\\x23", text)


def escape_log_commands(json: str) -> str:
    """JSON that may be printed into a build log: its commands are broken by an escape that means
    the same."""
    return json.replace("##", "#\\u0023")


def escape_formula(text: str) -> str:
    """Foreign text for a cell of a CSV or HTML table that a spreadsheet may open: one line, and
    never a formula. An apostrophe goes before what would be one, as spreadsheets write text."""
    shown = inline(text)
    return f"'{shown}" if _FORMULA.match(shown) else shown
