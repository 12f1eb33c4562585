"""Strings, heredocs and templates: decoding, trimming, unindenting, directives."""

from __future__ import annotations

import pytest

from kafkaform.syntax.parse import parse_expression

from .shape import expression, template

STRINGS = {
    '"a"': "'a'",
    '""': "''",
    r'"\n\r\t\"\\\u00e9\U0001F600"': repr('\n\r\t"\\é😀'),
    '"$${x} %%{y} $${"': "'${x} %{y} ${'",
    '"$$${x}"': "'$${x}'",
    '"100% $5 $$ %%"': "'100% $5 $$ %%'",
    '"e\u0301"': "'é'",
    '"${a}"': "<a>!",
    '"${a} "': "<a|' '>",
    '"x${a}y${b}"': "<'x'|a|'y'|b>",
    '"${\n a # c\n}"': "<a>!",
    '"${"${"x"}"}"': "<<'x'>!>!",
    '"${{a = 1}}"': "<{'a': 1}>!",
    '" ${~ a ~} "': "<''|a|''>",
    '"%{ if a }b%{ else }c%{ endif }"': "<if a <'b'> else <'c'>>",
    '"%{ if a ~} b %{~ endif }"': "<if a <'b'> else <>>",
    '"%{ for k, v in m }${v},%{ endfor }"': "<for k v in m <v|','>>",
    '"%{ if a }%{ for v in m }x%{ endfor }%{ endif }"': ("<if a <for None v in m <'x'>> else <>>"),
}
HEREDOCS = {
    "<<E\nE\n": "''",
    "<<E\nhello\nE\n": "'hello\\n'",
    "<<_E\nx\n  _E  \n": "'x\\n'",
    "<<E\na\\nb\nE\n": "'a\\\\nb\\n'",
    "<<E\n$${a} EE\nE\n": "'${a} EE\\n'",
    "<<E\n${a}\nE\n": "<a|'\\n'>",
    "<<E\r\nx\r\nE\r\n": "'x\\r\\n'",
    "<<-E\n    a\n      b\n\n   c\n  E\n": "' a\\n   b\\n\\nc\\n'",
    "<<-E\n\ta\n\t\tb\nE\n": "'a\\n\\tb\\n'",
    "<<-E\n    ${a}\n      b\nE\n": "<''|a|'\\n  b\\n'>",
    "<<E\n${<<F\ninner\nF\n}\nE\n": "<'inner\\n'|'\\n'>",
    "[<<E\nx\nE\n, 1]\n": "['x\\n', 1]",
}
TEMPLATES = {
    "": "''",
    'say "hi"\n': "'say \"hi\"\\n'",
    "${1 ~}\n\n  b": "<1|'\\n  b'>",
    "a\n  ${~ 1}": "<'a\\n'|1>",
    "%{ if x }\n  y\n%{ endif ~}\nz": "<if x <'\\n  y\\n'> else <>|'z'>",
}


@pytest.mark.parametrize("text", STRINGS)
def test_quoted_string(text: str) -> None:
    """A quoted string decodes to exactly this text or template."""
    assert expression(text) == STRINGS[text]


@pytest.mark.parametrize("text", HEREDOCS)
def test_heredoc(text: str) -> None:
    """A heredoc keeps its last newline and backslashes; `<<-` takes the least indentation."""
    assert expression(text) == HEREDOCS[text]


@pytest.mark.parametrize("text", TEMPLATES)
def test_bare_template(text: str) -> None:
    """Text without quotes trims line by line."""
    assert template(text) == TEMPLATES[text]


def test_positions_inside_a_heredoc() -> None:
    """An expression inside an unindented heredoc keeps its true place in the file."""
    node, _ = parse_expression("<<-E\n    ab\n    c ${name}\n  E\n", "t.hcl", line=10)
    assert node is not None
    place = node.parts[1].range  # type: ignore[union-attr]
    assert (place.line, place.column, place.end_column) == (12, 9, 13)
