"""Written values read back as themselves, whatever they hold."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.core.value import FrozenMap, SecretRef, Value, freeze
from kafkaform.syntax import nodes
from kafkaform.syntax.parse import parse, parse_expression
from kafkaform.syntax.write import (
    Code,
    NewBlock,
    format_text,
    quote_string,
    write_blocks,
    write_value,
)

from ...kit.quick import examples


def constant(node: nodes.Expression) -> Any:
    match node:
        case nodes.Lit(value=value):
            return value
        case nodes.Tuple(items=items):
            return tuple(constant(item) for item in items)
        case nodes.Object(items=pairs):
            return {constant(pair.key): constant(pair.value) for pair in pairs}
        case nodes.Unary(operand=operand):
            number = constant(operand)
            return number.copy_negate() if isinstance(number, Decimal) else -number
    raise AssertionError(node)


_TEXTS = st.text(st.characters(exclude_categories=["Cs"])).map(
    lambda text: unicodedata.normalize("NFC", text)
) | st.text('$%{}~"\\\n', max_size=12)
_NUMBERS = st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=3)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(300), deadline=None)
@given(_VALUES)
def test_round_trip(plain: Any) -> None:
    """Any value, written and parsed, is the same value; no text becomes a template."""
    value = freeze(plain)
    node, diagnostics = parse_expression(write_value(value), "t.hcl")
    assert node is not None, diagnostics
    assert constant(node) == value


@settings(max_examples=examples(200), deadline=None)
@given(_TEXTS, _VALUES)
def test_written_blocks_are_in_the_standard_layout(label: str, plain: Any) -> None:
    """What is written needs no `fmt`, and its labels read back."""
    text = write_blocks([NewBlock("b", (label,), {"v": freeze(plain)})])
    file, diagnostics = parse(text, "t.hcl")
    assert diagnostics == ()
    assert file.body.blocks[0].labels[0].text == label
    assert format_text(text) == text


def test_block_layout() -> None:
    """Attributes in the given order, keys sorted and quoted where needed, None left out."""
    config = freeze({"retention.ms": "1", "b": 2, "for": None})
    inner = NewBlock("lifecycle", attributes={"prevent_destroy": True})
    attributes: dict[str, Value | Code] = {
        "name": Code("var.name"),
        "gone": None,
        "password": SecretRef("env", "PW"),
        "config": config,
    }
    assert write_blocks([NewBlock("resource", ("kafka_topic", "a"), attributes, (inner,))]) == (
        'resource "kafka_topic" "a" {\n'
        "  name     = var.name\n"
        '  password = secret_env("PW")\n'
        "  config = {\n"
        "    b              = 2\n"
        '    "for"          = null\n'
        '    "retention.ms" = "1"\n'
        "  }\n"
        "\n"
        "  lifecycle {\n"
        "    prevent_destroy = true\n"
        "  }\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("${x}", '"$${x}"'),
        ("$${x}", '"$$${x}"'),
        ("%{if}", '"%%{if}"'),
        ("$5 100%", '"$5 100%"'),
        ('a"\\\n', '"a\\"\\\\\\n"'),
        ("\x1b\u202e", '"\\u001b\\u202e"'),
        ("é😀", '"é😀"'),
        ("##vso[x]y ##[group]", '"#\\u0023vso[x]y #\\u0023[group]"'),
        ("a ## b [c]", '"a ## b [c]"'),
    ],
)
def test_quote(text: str, written: str) -> None:
    """Marks of templates, control characters and commands of build logs are escaped, other text is
    left readable."""
    assert quote_string(text) == written


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), "\ud800"])
def test_unwritable_values_are_refused(value: Value) -> None:
    """What HCL cannot say is an error, not a wrong text."""
    with pytest.raises(ValueError, match="not"):
        write_value(value)


def test_names_must_be_identifiers() -> None:
    """An attribute name cannot smuggle in code."""
    with pytest.raises(ValueError, match="identifier"):
        write_blocks([NewBlock("b", (), FrozenMap({"a = 1\nb": 1}))])
