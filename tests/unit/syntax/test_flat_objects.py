"""In large files an object of constants is one token, and nobody can tell."""

from __future__ import annotations

import time
from typing import cast
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.core.diagnostics import Diagnostics
from kafkaform.language.expressions.code import Env
from kafkaform.language.expressions.compilation import make_context
from kafkaform.language.values.value import ObjectVal, Val
from kafkaform.syntax import nodes, scan, terms
from kafkaform.syntax.nodes import ConstantObject, File, Object, Source
from kafkaform.syntax.parse import parse
from kafkaform.syntax.tokens import KEYWORDS

from ...kit.quick import examples
from .test_stamps import told

NEVER = nodes.FILE_BYTES


def parse_as(text: str, large: int) -> tuple[File, Diagnostics]:
    """The text parsed as if a file of more than so many characters were large."""
    with patch.object(scan, "_LARGE", large):
        return parse(text, "x")


def count_packed(text: str) -> int:
    """How many objects of the text are one token. It is read as if none were."""
    found, faults = parse_as(text, -1)
    plain, expected = parse_as(text, NEVER)
    assert faults == expected
    assert list(told(found)) == list(told(plain))
    with patch.object(scan, "_LARGE", -1):
        types = [token.type for token in scan.scan(Source("x", text)).tokens]
    return types.count("FLAT_OBJECT")


PACKED = {
    "empty": "a = {}\n",
    "one line": 'a = { b = "c", "d e" = 1, f-g_1 = 2.50, h = true, i = null, False = false }\n',
    "a comma at the end": "a = { b = 1, }\n",
    "several lines": 'a = {\n\n  b = 1\n  c = "d"\n\n\n  e = 2,\n\n  f = 3\n}\n',
    "a key twice": "a = { b = 1, b = 2 }\n",
    "letters beyond ASCII": 'a = { "é" = "e\u0301 \u200b" }\n',
    "braces and signs in strings": 'a = { "}" = "{", "=" = "= # // /*" }\n',
    "in a list": "a = [{ b = 1 }]\n",
    "in a call": "a = f({ b = 1 }, 1).c\n",
    "in an object": "a = { b = { c = 1 }, d = x }\n",
    "objects in an object": 'a = { b = { c = 1, "d" = "}" }, e = {}, f = 2\n g = {\n h = 3 } }\n',
    "an object in an object, deep down": "a = [{ b = { c = { d = 1 } } }]\n",
    "in a template": 'a = "${{ b = 1 }.b}"\n',
    "in a block": "a {\n  b = { c = 1 }\n}\n",
    "in a block on one line": "a { b = { c = 1 } }\n",
    "as a key": "a = { ({ b = 1 }) = d }\n",
    "before an operator": "a = { b = 1 } == c\n",
    "100 brackets deep": f"a = {'[' * 98}{{ b = {{ c = 1 }} }}{']' * 98}\n",
    "a hundred items, in an object": f"a = {{ b = {{ {'c = 1, ' * 100} }} }}\n",
    "more than that": f"a = {{ b = {{ {'c = 1, ' * 102} }} }}\n",
    "a thousand items": f"a = {{ {'b = 1, ' * 1000} }}\n",
    "thousands of items": f"a = {{ {'b = 1, ' * 3000} }}\n",
    "thousands on lines of their own": "a = {\n\n" + "b = { c = 1 }\n" * 1500 + "}\n",
    "thousands without a comma at the end": f"a = {{{'b = { c = {} },' * 1500}d = 1}}\n",
    "objects in objects in an object": 'a = { b = { c = { "d" = 1 } }\n e = {}\n}\n',
    "objects in those": "a = { b = { c = { d = { e = 1 } } }, f = x }\n",
    "98 brackets around three objects": f"a = {'[' * 97}{{ b = {{ c = {{}} }} }}{']' * 97}\n",
}


@pytest.mark.parametrize("text", PACKED.values(), ids=PACKED)
def test_objects_of_constants_are_one_token(text: str) -> None:
    """Wherever they stand, the tree is the one that their tokens give."""
    assert count_packed(text) == 1
    assert parse(text, "x")[1] == () or "200b" in ascii(text)


NOT_PACKED = {
    "a block": 'a "b" {\n  c = 1\n}\n',
    "a block on one line": "a { b = 1 }\n",
    "a comment": "a = {\n  b = 1 # c\n}\n",
    "an escape": 'a = { b = "\\n" }\n',
    "a template": 'a = { b = "${c}" }\n',
    "a reference": "a = { b = c }\n",
    "an operator": "a = { b = -1 }\n",
    "colons": "a = { b : 1 }\n",
    "an exponent": "a = { b = 1e3 }\n",
    "a number as a key": "a = { 1 = 1 }\n",
    "a key in parentheses": "a = { (b) = 1 }\n",
    "a name beyond ASCII": "a = { é = 1, bé = 2 }\n",
    "lines of Windows": "a = {\r\n  b = 1\r\n}\r\n",
    "a for": "a = { for b in c : b => 1 }\n",
    "a long number": f"a = {{ b = {'9' * 301} }}\n",
    "a long string": f'a = {{ b = "{"x" * 100_001}" }}\n',
    "a heredoc": "a = <<E\n{ b = 1 }\nE\n",
    **{f"the key {word}": f"a = {{ {word} = 1 }}\n" for word in KEYWORDS},
}


@pytest.mark.parametrize("text", NOT_PACKED.values(), ids=NOT_PACKED)
def test_other_braces_are_scanned_as_ever(text: str) -> None:
    """What is more than constants, or no object, keeps its tokens."""
    assert count_packed(text) == 0


FAULTS = {
    "a missing comma": "a = { b = 1 c = 2 }\n",
    "an object behind a value": 'a = 1 { b = "c" }\n',
    "an object without a name": "= { b = 1 }\n",
    "a comma without an item": "a = { , }\n",
    "a comma on its own line": "a = { b = 1\n, c = 2 }\n",
    "a fault elsewhere": "a = { b = 1 }\nc = [1 2]\nd = { e = 1 } f\n",
    "a long number": f"a = {{ b = {'9' * 1001} }}\n",
    "a long string": f'a = {{ b = "{"x" * (nodes.STRING_CHARACTERS + 1)}" }}\n',
    "three objects in 98 brackets": f"a = {'[' * 98}{{ b = {{ c = {{}} }} }}{']' * 98}\n",
    "101 brackets": f"a = {'[' * 99}{{ b = {{ c = 1 }} }}{']' * 99}\n",
    "an open object": "a = { b = 1\n",
    "an attribute set twice": "a = { b = 1 }\na = { b = 1 }\n",
}


@pytest.mark.parametrize("text", FAULTS.values(), ids=FAULTS)
def test_faults_are_those_of_the_tokens(text: str) -> None:
    """A file with a fault is read token by token, so its messages and places do not change."""
    count_packed(text)
    assert parse_as(text, -1)[1]


@pytest.mark.parametrize("tokens", range(10, 60))
def test_hidden_tokens_count(tokens: int) -> None:
    """An object counts as all of its tokens, so no file passes the limit with its help."""
    text = 'a = [{}, { b = "c = d" }, {\n\n  e = 1,\n  f = { g = 2, h = {} }\n\n}]\n'
    with patch.object(scan, "TOKENS", tokens):
        count_packed(text)


@pytest.mark.parametrize("most", range(1, 5))
def test_the_limit_of_elements_holds(most: int) -> None:
    """A map that is read item by item is refused like any other collection."""
    text = "a = {\n b = { c = { d = 1 } }\n e = {}, f = { g = { h = 2, i = 3 } } }\n"
    with patch.object(terms, "COLLECTION_ELEMENTS", most):
        count_packed(text)
        assert bool(parse_as(text, -1)[1]) == (most < 3)


words = st.sampled_from(
    ('"a b"', '"="', '"x\\n"', '"${y}"', "1", "2.5", "1e2", "true", "null", "z")
)
keys = st.sampled_from(("a", "b-c", '"d.e"', "if", "true", "1", "(f)", "ü", "for", "nullx"))
signs = st.sampled_from((" = ", "=", "  =\t", " : ", " == "))
ends = st.sampled_from((", ", ",", "\n  ", " ,\n\n", "\n\n", " ", " # x\n", "\r\n"))


def make_objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Objects of such values; a few have mistakes."""
    items = st.lists(st.tuples(keys, signs, values, ends).map("".join), max_size=4).map("".join)
    opening, closing = (
        st.sampled_from(("{ ", "{", "{\n  ")),
        st.sampled_from((" }", "}", "\n}", "")),
    )
    return st.tuples(opening, items, closing).map("".join)


objects = make_objects(words | make_objects(words | make_objects(words)))
heads = st.sampled_from(("a = ", "b ", "c = [", "d = 1 + "))


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.tuples(heads, objects), max_size=3))
def test_any_text_is_read_as_if_nothing_were_packed(items: list[tuple[str, str]]) -> None:
    """Trees, places and faults are equal, whatever stands in the objects."""
    count_packed("\n".join(f"{head}{text}{']' * ('[' in head)}" for head, text in items))


constants = st.sampled_from(
    ('"a b"', '"e\u0301"', '"=,}"', "0", "12", "2.50", "1.0", "true", "false", "null")
)
names = st.sampled_from(("a", "b-c", '"a"', '"d.e"', "nullx", '"e\u0301"', '"é"'))


def make_constants(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Objects of such constants without mistakes; some have a key twice."""
    items = st.lists(st.tuples(names, st.just(" = "), values).map("".join), max_size=4)
    return items.map(lambda each: "{" + ", ".join(each) + "}")


def reveal(value: Val) -> object:
    """The value with its types."""
    if isinstance(value, ObjectVal):
        return {name: reveal(part) for name, part in value.fields.items()}
    return type(value), str(value)


@settings(max_examples=examples(200), deadline=None)
@given(make_constants(constants | make_constants(constants | make_constants(constants))))
def test_values_are_those_of_the_items(text: str) -> None:
    """An object that is one token is read from its text, and not from its items."""

    def evaluate(large: int) -> object:
        file, faults = parse_as(f"a = {text}\n", large)
        assert faults == ()
        node = file.body.attributes["a"].value
        assert isinstance(node, ConstantObject if large < 0 else Object)
        return reveal(make_context({}).compile_node(node)(cast(Env, None)))

    assert evaluate(-1) == evaluate(NEVER)


HOSTILE = {
    "items without an end": "{a=1," + "a=1," * 10_000,
    "objects without an end": "{a=" * 20_000,
    "almost flat": ("{" + "a=1," * 900 + "a=b}\n") * 11,
    "almost flat inside": ("{" + "a={b=1," * 90 + "a={b=c}," * 900 + "}}\n") * 5,
    "flat inside": "{" + "a={b=1,}," * 4_000 + "a=b}",
    "strings of braces": '{a="{b={b={b={","' + '{b={","' * 5_000,
    "blanks": "{" + "\n " * 20_000,
}
"""Texts of 40,000 characters that the pattern matches up to some place."""


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_time_grows_with_the_size(text: str) -> None:
    """Eight times the text takes about eight times as long, not sixty-four."""

    def measure(times: int) -> float:
        begun = time.process_time()
        scan.scan(Source("x", f"a = [{text * times}"))
        return time.process_time() - begun

    once = min(measure(1) for _ in range(3))
    assert min(measure(8) for _ in range(3)) < 24 * once + 0.05
