"""Expressions become the trees that the language defines."""

from __future__ import annotations

import pytest

from kafkaform.syntax.nodes import Binary, split_operands, walk
from kafkaform.syntax.parse import parse_expression

from .shape import expression

SHAPES = {
    # numbers: exact, and signs are operators
    "3-10": "(3 - 10)",
    "20 -10": "(20 - 10)",
    "(1)-10": "(P1 - 10)",
    "3 -1.5": "(3 - Decimal('1.5'))",
    "0.1234567890123456789012345": "Decimal('0.1234567890123456789012345')",
    "1e3": "Decimal('1E+3')",
    "9007199254740993": "9007199254740993",
    # unary operators nest and bind closest
    "!!true": "(!(!True))",
    "- -1": "(-(-1))",
    "-a * b": "((-a) * b)",
    # precedence and associativity
    "1 + 2 * 3 - 4": "((1 + (2 * 3)) - 4)",
    "a || b && c == d < e + f % g": "(a || (b && (c == (d < (e + (f % g))))))",
    "a != b == c": "((a != b) == c)",
    "1 >= 2": "(1 >= 2)",
    "a ? b : c ? d : e": "(a ? b : (c ? d : e))",
    "a || b ? 1 : 2": "((a || b) ? 1 : 2)",
    # references
    "var.n-10": "var.n-10",
    'a.b[0].c["d"]': "a.b[0].c['d']",
    "a.0.b": "a.0.b",
    "a.if.for.true": "a.if.for.true",
    "a[*].b[*].c": "a[*](@.b[*](@.c))",
    "a[*].b[0]": "a[*](@.b[0])",
    "a.*.b.0.c[1].d": "a.*(@.b.0.c)[1].d",
    "(a[*]).b": "Pa[*](@).b",
    "if": "if",
    # collections
    "[]": "[]",
    "[1, 2,]": "[1, 2]",
    "{}": "{}",
    '{ a = 1, "b": 2\n (c) = 3\n\n for1 = 4 }': "{'a': 1, 'b': 2, Pc: 3, 'for1': 4}",
    '{ name = "n", for = "h", in = "i" }': "{'name': 'n', 'for': 'h', 'in': 'i'}",
    "{ # c\n a = 1 # d\n /* e */ b = 2\n}": "{'a': 1, 'b': 2}",
    '{ "a.${b}" = 1 }': "{<'a.'|b>: 1}",
    # for
    "[for x in y : x]": "[for None x in y: x]",
    "[for k, v in y : k if v > 1]": "[for k v in y: k if (v > 1)]",
    "{for x in y : x => 1...}": "{for None x in y: x => 1...}",
    "{\n# c\nfor k, v in y\n:\nk => v if k}": "{for k v in y: k => v if k}",
    # calls
    "f()": "f()",
    "f(1,\n2,\n)": "f(1, 2)",
    "f(a, b...)": "f(a, b...)",
    "ns::f(x)": "ns::f(x)",
    # newlines and comments inside brackets
    "(1\n # c\n + 2)": "P(1 + 2)",
    "(x\n[0]\n.b)": "Px[0].b",
    "/* c */ 1 // d": "1",
    "1\n+\n2": "(1 + 2)",
}


@pytest.mark.parametrize("text", SHAPES)
def test_expression_has_this_shape(text: str) -> None:
    """Each text parses to exactly this tree."""
    assert expression(text) == SHAPES[text]


def test_long_operator_chain_is_accepted() -> None:
    """2,000 terms in one sum parse and can be walked without recursion."""
    node, diagnostics = parse_expression("+".join(["1"] * 2000), "t.hcl")
    assert isinstance(node, Binary) and not diagnostics
    head, chain = split_operands(node)
    assert (head.end, len(chain), sum(1 for _ in walk(node))) == (1, 1999, 3999)
