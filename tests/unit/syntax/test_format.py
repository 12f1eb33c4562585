"""The formatter changes blanks only, and gives one layout."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.syntax.nodes import Source
from kafkaform.syntax.parse import parse
from kafkaform.syntax.scan import scan
from kafkaform.syntax.write import format_text

from ...kit.quick import examples

PAIRS = {
    "": "",
    "a=1": "a = 1",
    "a=1\nlong_name=2\n\nb=3\n": "a         = 1\nlong_name = 2\n\nb = 3\n",
    "b {\na=1\n}\n": "b {\n  a = 1\n}\n",
    'b   "x"   {   }\n': 'b "x" {}\n',
    "b {a=1}\n": "b { a = 1 }\n",
    "a = 1# c\nbb = 22 // d\n": "a  = 1  # c\nbb = 22 // d\n",
    "a=-1+-b\n": "a = -1 + -b\n",
    "a= ! b&&c\n": "a = !b && c\n",
    "a = f ( 1,2 )\n": "a = f(1, 2)\n",
    "a = x [ 0 ] . y [ * ]\n": "a = x[0].y[*]\n",
    'a = "${ x }-${~  y  ~}"\n': 'a = "${x}-${~y~}"\n',
    "a = [for x in [1]:x]\n": "a = [for x in [1] : x]\n",
    "a = {\nb=1\ncc=2\n}\n": "a = {\n  b  = 1\n  cc = 2\n}\n",
    "a = [{\nb=1\n}]\n": "a = [{\n  b = 1\n}]\n",
    "a=<<E\n  keep  ${ x }\nE\nbb=1\n": "a  = <<E\n  keep  ${x}\nE\nbb = 1\n",
    "a=1\r\nbb=2\r\n": "a  = 1\r\nbb = 2\r\n",
    "b {\n   # c  \n}\n": "b {\n  # c  \n}\n",
    "\ufeffa=1\n": "\ufeffa = 1\n",
}


@pytest.mark.parametrize("text", PAIRS)
def test_layout(text: str) -> None:
    """Each text gets exactly this layout, and keeps it when formatted again."""
    assert format_text(text) == PAIRS[text]
    assert format_text(PAIRS[text]) == PAIRS[text]


@pytest.mark.parametrize("text", ['a = "x\n', "b {\n", "a = 'x'\n", "a=1}\n"])
def test_unreadable_text_stays_as_it_is(text: str) -> None:
    """A text with unclosed or unknown marks is never touched."""
    assert format_text(text) == text


_PIECES = st.sampled_from(
    [
        *("a", "b1", "in", "for", "if", "1", "2.5", '"s"', '"${ x }"', "# c\n", "/* c */", "\n"),
        *("=", "==", "+", "-", "!", "(", ")", "[", "]", "{", "}", ",", ".", ".*", "[*]", "?", ":"),
        *("=>", "...", "\r\n", " ", "  ", "<<E\n  h ${ a } \n E\n", '"%{ if a }b%{ endif }"'),
    ]
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_PIECES, max_size=25).map("".join))
def test_idempotent_and_harmless(text: str) -> None:
    """Formatting twice is formatting once, and errors and values stay the same."""
    once = format_text(text)
    assert format_text(once) == once
    assert bool(parse(text, "t.hcl")[1]) == bool(parse(once, "t.hcl")[1])
    assert "".join(once.split()) == "".join(text.split())


_COMMENTS = st.sampled_from(["# why", "//  two  blanks ", "/* a\n   b */", "#", "# ünï \t tab"])
_VALUES = st.sampled_from(
    [
        *("1", '"s  s"', '"${ a }"', "[1,2]", "{x=1,y = 2}", "f( 1 )", "a ? b:c", "-1"),
        *(
            "<<E\n  keep   this # no comment\n  E no\nE",
            "<<-E\n   a\n    b\n  E",
            "[\n1, # one\n2]",
        ),
    ]
)


@st.composite
def _documents(draw: st.DrawFn, depth: int = 2) -> str:
    """Sound texts: attributes, blocks, comments and empty lines in any layout."""
    lines = []
    for number in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["attribute", "block", "comment", "empty"]))
        pad = draw(st.sampled_from(["", "   ", "\t"]))
        if kind == "attribute":
            value = draw(_VALUES)
            after = "" if value.startswith("<<") else draw(st.sampled_from(["", " # end", "# end"]))
            lines.append(f"{pad}n{'x' * draw(st.integers(0, 3))}{number}={value}{after}")
        elif kind == "block" and depth:
            lines += [f'{pad}b   "l" {{', draw(_documents(depth - 1)), f"{pad}}}"]
        elif kind == "comment":
            lines.append(f"{pad}{draw(_COMMENTS)}")
        else:
            lines.append(pad)
    return "\n".join(lines)


def _kept(text: str) -> list[str]:
    """What must survive to the letter: comments and literal text, in order."""
    return [
        token.text
        for token in scan(Source("", text)).tokens
        if token.type in ("COMMENT", "STRING_CHARS", "HEREDOC_END")
    ]


@settings(max_examples=examples(200), deadline=None)
@given(_documents(), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["\n", "\n#  last"]))
def test_nothing_is_lost(document: str, newline: str, last: str) -> None:
    """Comments and literal text survive to the letter, and so do the number and the kind of line
    ends; the text stays sound, and a second run changes nothing."""
    text = (document + last).replace("\n", newline)
    assert not parse(text, "t.hcl")[1]
    once = format_text(text)
    assert format_text(once) == once
    assert not parse(once, "t.hcl")[1]
    assert _kept(once) == _kept(text)
    assert [once.count("\n"), once.count("\r")] == [text.count("\n"), text.count("\r")]


def test_blocks_that_repeat_each_other_all_stay() -> None:
    """Blocks of one shape, which a reader passes over, are written like any others."""
    block = 'resource "kafka_topic" "{0}" {{\n  name="{0}"\n  partitions={1}\n}}\n'
    text = "\n".join(block.format(f"t{number}", number) for number in range(40))
    assert format_text(text) == text.replace("name=", "name       = ").replace("s=", "s = ")
