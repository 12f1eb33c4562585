"""What is no HCL is refused, in the right place, with words that help."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import Diagnostics, Range
from kafkaform.syntax.parse import parse

# text: (line, column, words of the summary)
REFUSED: dict[str, tuple[int, int, str]] = {
    # what python-hcl2 lets pass
    "a = 1\na = 2\n": (2, 1, '"a" is set twice'),
    "b {\n  a = 1\n  a = 2\n}\n": (3, 3, '"a" is set twice'),
    "a = 1 b = 2\n": (1, 7, "Expected the end of the line"),
    "b {} c {}\n": (1, 6, "Expected the end of the line"),
    "a = { x = 1 y = 2 }\n": (1, 13, "Expected a comma or a newline"),
    'a = "\\x41"\n': (1, 6, "Invalid escape sequence"),
    'a = "\\u12"\n': (1, 6, "Invalid escape sequence"),
    'a = "\\${x}"\n': (1, 6, "Invalid escape sequence"),
    'a = "\\ud800"\n': (1, 6, "Invalid escape sequence"),
    'a = "x\ny"\n': (1, 5, "Unclosed string"),
    "a = 1\rb = 2\n": (1, 6, "carriage return"),
    "a = 1\n+ 2\n": (2, 1, 'A line cannot begin with "+"'),
    "a = true ?\n1 : 2\n": (1, 11, "Expected a value before the end of the line"),
    'a = "%{ endif }"\n': (1, 6, "Misplaced %{ endif }"),
    'a = "%{ if x }"\n': (1, 6, "Misplaced %{ if }"),
    'a = "%{ if x }%{ endfor }"\n': (1, 15, "Misplaced %{ endfor }"),
    'a = "%{ if \\"x\\" }%{ endif }"\n': (1, 12, "backslash"),
    'b "${x}" {}\n': (1, 3, "A label cannot be a template"),
    "b { c {} }\n": (1, 7, 'Expected "="'),
    "b\n{\n}\n": (1, 2, 'Expected "=" or "{"'),
    "a = <<E\nx\nE": (1, 5, "Unclosed heredoc"),
    "a = { for = 1 }\n": (1, 11, "begins a for expression"),
    "a = x.0.1\n": (1, 7, "Expected a name after the dot"),
    # brackets and quotes
    "b {\n  a = 1\n\nc {\n}\n": (1, 3, 'Unclosed "{"'),
    "a = [1)\n": (1, 7, 'Expected "]" before ")"'),
    "}\n": (1, 1, 'Unexpected "}"'),
    "a = f(1\n": (1, 6, 'Unclosed "("'),
    'a = "${x\n': (1, 6, 'Unclosed "${"'),
    "a = /* x\n": (1, 5, "Unclosed comment"),
    "a = << E\nx\nE\n": (1, 5, "Invalid heredoc start"),
    # blocks and attributes mistaken for each other
    "a: 1\n": (1, 2, 'Expected "=" instead of ":"'),
    "a == 1\n": (1, 3, 'Expected "=" instead of "=="'),
    "a.b = 1\n": (1, 2, "A dot cannot be part of a name"),
    '"a" = 1\n': (1, 1, "Expected a name without quotes"),
    'a "b"\n': (1, 6, 'Expected "{"'),
    'b "x" = {}\n': (1, 7, 'A block has no "="'),
    "b {\n  a = 1 }\n": (2, 9, 'Expected a newline before "}"'),
    "b { a = 1\n}\n": (1, 10, 'Expected "}"'),
    "b { a = 1, c = 2 }\n": (1, 10, 'Expected "}" before ","'),
    "5 = 1\n": (1, 1, "Expected an argument or a block"),
    # expressions
    "a =\n": (1, 4, "Expected a value before the end of the line"),
    "a = [1 2]\n": (1, 8, 'Expected a comma or "]"'),
    "a = {b}\n": (1, 7, 'Expected "=" after the key'),
    "a = {b[0] = 1}\n": (1, 6, "Ambiguous key"),
    "a = x ? y\n": (1, 10, 'Expected ":"'),
    'a = "${x y}"\n': (1, 10, 'Expected "}" to end the template part'),
    'a = "%{ foo }"\n': (1, 9, "Unknown template directive"),
    "a = [for x y : z]\n": (1, 12, "Unexpected a name"),
    "a = b.*.*\n": (1, 5, "Nested splat"),
    # characters
    "a = 'x'\n": (1, 5, "Single quotes"),
    "a = “x”\n": (1, 5, "Curly quotes"),
    "a = 1;\n": (1, 6, "semicolon"),
    "a = $x\n": (1, 5, "A $ has no meaning"),
    "a = \x00\n": (1, 5, "U+0000"),
    "a = 😀\n": (1, 5, "Unexpected character"),
}


def faults(text: str | bytes) -> Diagnostics:
    return parse(text, "t.hcl")[1]


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    """One error, at this place, that says this."""
    line, column, words = REFUSED[text]
    (diagnostic,) = faults(text)
    assert diagnostic.range is not None
    assert (diagnostic.range.line, diagnostic.range.column) == (line, column)
    assert words in diagnostic.summary
    assert diagnostic.excerpt == text.split("\n")[line - 1]


def test_missing_brace_is_located() -> None:
    """For an unclosed block the advice names the line before which the brace is missing."""
    (diagnostic,) = faults('a "x" {\n  b = 1\n\nc "y" {\n}\n')
    assert diagnostic.advice == 'The missing "}" probably belongs before line 4.'


def test_second_definition_names_the_first() -> None:
    """A repeated attribute shows both places."""
    (diagnostic,) = faults("a = 1\nb = 2\na = 3\n")
    assert "t.hcl:1:1" in diagnostic.detail


def test_errors_of_several_items_are_shown_together() -> None:
    """An error in one item hides neither errors nor content of the others."""
    file, diagnostics = parse('a = [1 2]\nok = 1\nb {\n  x 1\n}\nc = "\\q"\n', "t.hcl")
    assert [item.range.line for item in diagnostics if item.range] == [1, 4, 6]
    assert list(file.body.attributes) == ["ok"]


def test_carets_span_what_is_wrong() -> None:
    """The range covers the whole offending word."""
    (diagnostic,) = faults("a = 1 bcd = 2\n")
    assert diagnostic.range == Range("t.hcl", 1, 7, 1, 10, 6, 9)


@pytest.mark.parametrize(
    "line",
    [
        'password = "hunter2',
        'sasl_jaas_config = "user hunter2" x',
        '  "ssl.key.password": "hunter2" "y"',
        "client_secret = hunter2 hunter2",
    ],
)
def test_excerpts_hide_secrets(line: str) -> None:
    """What follows a secret's name is not shown, whatever is wrong with the line."""
    for diagnostic in faults(f"{line}\n"):
        assert "hunter2" not in repr(diagnostic)


def test_long_lines_are_cut() -> None:
    """An excerpt never repeats more than a few hundred characters of a line."""
    (diagnostic,) = faults("a 1" + "x" * 10_000 + "\n")
    assert diagnostic.excerpt is not None
    assert len(diagnostic.excerpt) < 300


def test_invalid_utf8_is_located() -> None:
    """Bytes that are no UTF-8 give one error with the line."""
    (diagnostic,) = faults(b"a = 1\nb = \xff\n")
    assert diagnostic.summary == "Not UTF-8"
    assert diagnostic.range is not None
    assert diagnostic.range.line == 2
