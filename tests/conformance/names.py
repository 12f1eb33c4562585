"""How the data's calls are spelled here: they name Go functions in lower case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from kafkaform.language.functions.spec import (
    Function,
    make_number_param,
    make_strings_param,
    make_value_param,
)
from kafkaform.language.values.faults import FunctionFault
from kafkaform.language.values.value import Val

_NAMES = {
    "absolute": "abs",
    "reverse": "strrev",
    "reverselist": "reverse",
    "strlen": "length",
}
_EXPRESSIONS = {
    "add": "a0 + a1",
    "and": "a0 && a1",
    "divide": "a0 / a1",
    "equal": "a0 == a1",
    "greaterthan": "a0 > a1",
    "greaterthanorequalto": "a0 >= a1",
    "hasindex": "can(a0[a1])",
    "int": "a0 < 0 ? ceil(a0) : floor(a0)",
    "lessthan": "a0 < a1",
    "lessthanorequalto": "a0 <= a1",
    "modulo": "a0 % a1",
    "multiply": "a0 * a1",
    "negate": "-a0",
    "not": "!a0",
    "or": "a0 || a1",
    "regexreplace": 'replace(a0, "/${a1}/", a2)',
    "subtract": "a0 - a1",
}
"""What the language has operators for, or says otherwise."""
_LIBRARY = {"index": "a0[a1]"}
"""Names that the two libraries use for different things: in go-cty's."""


def spelled(source: str, text: str) -> str:
    """A call of the data in our words. source: which test it is from."""
    name, bracket, arguments = text.partition("(")
    if source.startswith("go-cty/") and name in _LIBRARY:
        return _LIBRARY[name]
    return _EXPRESSIONS.get(name) or _NAMES.get(name, name) + bracket + arguments


def _refuse(*_: Val) -> NoReturn:
    raise FunctionFault("out of range", 1)


def helpers(table: Mapping[str, Function]) -> Mapping[str, Function]:
    """The functions that the tests of the reference bring along, `misbehave` among them: it
    blames an argument that is not there."""
    return {
        "argerrorexpand": Function(
            "argerrorexpand", "", _refuse, (), make_value_param("arguments")
        ),
        "foo::upper": table["upper"],
        "misbehave": Function("misbehave", "", _refuse, (), make_strings_param("arguments")),
        "negate": Function("negate", "", lambda amount: -amount, (make_number_param(),)),
    }
