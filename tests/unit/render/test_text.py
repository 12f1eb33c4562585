"""Foreign text, values and tables as people see them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.render.text import (
    escape_formula,
    inline,
    mask_value,
    quote,
    render_block,
    render_message,
    render_table,
    render_value,
    wrap_lines,
)


@given(st.text())
def test_inline_leaves_nothing_invisible(text: str) -> None:
    """Whatever comes in, one printable line without a build log command goes out."""
    shown = inline(text)
    assert shown.isprintable()
    assert "##[" not in shown and "##vso[" not in shown


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_ascii_is_not_touched(text: str) -> None:
    """Ordinary names are shown as they are, apart from log commands."""
    assert inline(text).replace("\\x23", "#") == text.replace("\\x23", "#")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x7f\x9b\x00", "\\x7f\\x9b\\x00"),
        ("\u202eabc\u2069", "\\u202eabc\\u2069"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("x\ufe0f\u3164", "x\\ufe0f\\u3164"),
        ("##vso[task]", "#\\x23vso[task]"),
        ("Zürich 日本", "Zürich 日本"),
    ],
)
def test_hidden_characters_get_a_visible_name(text: str, shown: str) -> None:
    """Each class of dangerous character is escaped, letters of any script are not."""
    assert inline(text) == shown


def test_block_keeps_only_its_own_line_breaks() -> None:
    """Text with lines keeps them and loses every other control."""
    assert render_block("a\nb\x1b\r\nc") == "a\nb\\x1b\\r\nc"


def test_a_quoted_name_cannot_pretend_to_be_escaped() -> None:
    """Backslashes and quotes are escaped, so the text can be told from an escape."""
    assert quote('\\u202e"') == '"\\\\u202e\\""'


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (None, "(not set)"),
        (True, "true"),
        (12, "12"),
        (9_223_372_036_854_775_807, "9223372036854775807"),
        (Decimal("1500.50"), "1500.5"),
        ("a", '"a"'),
        ((1, "b"), '[1, "b"]'),
        (FrozenMap({"z": 1, "a": None}), '{"a" = (not set), "z" = 1}'),
        (SecretRef("env", "PASSWORD"), 'secret_env("PASSWORD")'),
        (SecretRef("file", 'a"b'), 'secret_file("a\\"b")'),
        (SecretRef("command", '["a", "b \\"c"]'), 'secret_command(["a", "b \\"c"])'),
        (SecretRef("command", "forged"), 'secret_command("forged")'),
        (SecretRef("variable", "password"), "var.password"),
    ],
)
def test_values_are_exact(item: object, shown: str) -> None:
    """Every type of value has one form, numbers without rounding."""
    assert render_value(item) == shown  # type: ignore[arg-type]


def test_a_long_string_is_whole() -> None:
    """What decides a review may stand at the very end."""
    assert render_value("x" * 40_000 + "y") == f'"{"x" * 40_000}y"'


def test_sensitive_values_are_never_shown() -> None:
    """Both sides are masked, but whether something is set can be seen."""
    shown = [mask_value(item, sensitive=True) for item in ("secret", None)]
    assert shown == ["(sensitive)", "(not set)"]


def test_broker_messages_are_bounded() -> None:
    """Of an error text of a megabyte 500 characters are shown, and where the rest is."""
    shown = render_message("x" * 1_000_000)
    assert len(shown) < 600
    assert shown.endswith("… (1,000,000 characters; --json and the audit log have them all)")
    assert render_message("x" * 500) == "x" * 500


def test_tables_align_wide_characters() -> None:
    """Columns line up by terminal cells, not by code points."""
    assert render_table([["日本", "1"], ["abcd", "22"]], frozenset({1})) == ["日本   1", "abcd  22"]


FORMULAS = (
    *("=1+1", "=cmd|'/C calc'!A0", "+1", "-1+2", "@SUM(1)", " =1", '"=1"', "'=1"),
    *('=HYPERLINK("http://evil.example","x")', '=IMPORTXML(CONCAT("a",A1),"//a")', "-cmd"),
    *("＝1+1", "＋1", "－1", "＠SUM(1)", "   +1", "==1", '"  -1', '=DDE("cmd";"/C calc")'),
)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_cell_is_never_a_formula(text: str) -> None:
    """What a spreadsheet would compute begins with an apostrophe, which makes it text."""
    assert escape_formula(text) == f"'{inline(text)}"


@pytest.mark.parametrize("text", ["orders", "a=b", "User:ci", "1", "", "x-1", "\\t", "team@shop"])
def test_an_ordinary_cell_is_as_it_is(text: str) -> None:
    """Nobody has to take apostrophes off names."""
    assert escape_formula(text) == text


@given(st.text())
def test_any_cell_is_one_line_of_text(text: str) -> None:
    """No line break starts a row, no tab a cell, and no formula is left."""
    shown = escape_formula(text)
    assert shown.isprintable()
    assert shown.lstrip(' "')[:1] not in tuple("=+-@＝＋－＠")


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("  ! loss: one two three", ["  ! loss: one two", "    three"]),
        ("  ~ key = first → second", ["  ~ key = first →", "      second"]),
        ("    kafka_x.aa, kafka_x.b", ["    kafka_x.aa,", "    kafka_x.b"]),
        ("Title one two three four", ["Title one two", "  three four"]),
        ('  ! x["a b"] and y["c d"]', ['  ! x["a b"] and', '    y["c d"]']),
        ("  ! a-name-wider-than-the-line x", ["  ! a-name-wider-than-the-line", "    x"]),
        ("  ! or `run it --all` x", ["  ! or", "    `run it --all`", "    x"]),
        ("  ! with x { a = true }", ["  ! with", "    x { a = true }"]),
        ("  ~ keep = 7 days 30 d", ["  ~ keep = 7 days", "      30 d"]),
        ("  a name (a remark) b", ["  a", "  name (a remark)", "  b"]),
    ],
)
def test_lines_are_broken_between_words(line: str, lines: list[str]) -> None:
    """Prose goes on under its first word and values further in; names and amounts stay whole."""
    assert list(wrap_lines([line], 18)) == lines


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])), st.integers(10, 60))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    """All words are there in order, and a line is too wide only for a word that is never broken."""
    line = f"  ! {text}".rstrip()
    found = list(wrap_lines([line], width))
    assert "".join(found).replace(" ", "") == line.replace(" ", "")
    for one in found:
        assert len(one) <= width or " " not in one.strip("! ") or "::" in one or "##" in one


def test_each_line_closes_its_colours() -> None:
    """A pager shows lines one by one, so a colour never depends on the line before."""
    red = "\x1b[31m"
    found = list(wrap_lines([f"  {red}! one two three\x1b[0m four"], 12))
    assert found == [
        f"  {red}! one two\x1b[0m",
        f"    {red}three\x1b[0m",
        "    four",
    ]


def test_no_log_command_gets_to_the_beginning_of_a_line() -> None:
    """Build systems execute `::add-mask::x` there, so a line is rather too wide."""
    assert list(wrap_lines(["  ! a name ::add-mask::x"], 12)) == ["  ! a name ::add-mask::x"]
