"""Functions that convert types, set or test the sensitive mark, refer to secrets, or check an
assumption about a value. A reference to a secret names where the value is and never contains it."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type, list_of, map_of, set_of
from ...core.value import SecretRef, make_command_reference
from ..values.conversion import CONVERSION, convert_value
from ..values.faults import LIMITS, FunctionFault
from ..values.types import unify_types
from ..values.value import (
    FIELDS,
    SECRET,
    SENSITIVE,
    ListVal,
    Null,
    Number,
    Val,
    add_marks,
    is_equal,
    marks_of,
    render_number,
    type_of,
    unmark,
)
from .spec import Function, Param, make_number_param, make_string_param, make_value_param

_TARGETS = (
    ("tostring", "a string", STRING),
    ("tonumber", "a number", NUMBER),
    ("tobool", "true or false", BOOL),
    ("tolist", "a list, whose elements get one type", list_of(ANY)),
    ("toset", "a set, without order and repetition", set_of(ANY)),
    ("tomap", "a map, whose values get one type", map_of(ANY)),
)


def _make_conversion(want: Type) -> Callable[[Val], Val]:
    return lambda value: convert_value(value, want)


def _sensitive(value: Val) -> Val:
    return add_marks(value, frozenset({SENSITIVE}))


def _nonsensitive(value: Val) -> Val:
    # Only the value's own marks: a sensitive element of a list stays sensitive (as in Terraform).
    inner, marks = unmark(value)
    return add_marks(inner, marks - {SENSITIVE, SECRET})


def _issensitive(value: Val) -> Val:
    return SENSITIVE in marks_of(value)


def _coalesce(*values: Val) -> Val:
    # The result has the common type of all arguments if there is one, whichever is chosen.
    kind = unify_types(type_of(value) for value in values if type_of(value) != ANY)
    for value in values:
        if isinstance(value, Null) or value == "":
            continue
        return value if kind is None else convert_value(value, kind)
    raise FunctionFault("every argument is null or an empty string")


_RAW = Param("value", ANY, null=True, marked=True)


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _secret_env(name: str) -> Val:
    if not _VARIABLE.fullmatch(name):
        raise FunctionFault("this is not the name of an environment variable", 0)
    # The value is not read here: it is resolved after the approval, right before it is sent.
    return SecretRef("env", name)


def _secret_file(path: str) -> Val:
    if not path or "\0" in path:
        raise FunctionFault("expected a path", 0)
    return SecretRef("file", path)


def _secret_command(command: ListVal) -> Val:
    # The words are the name of the secret, so plans show them. A sensitive word is refused by the
    # call itself, as for every reference.
    words = [word for word in command.items if isinstance(word, str)]
    if len(words) < len(command.items):
        raise FunctionFault("a word of the command is null", 0)
    if not words or not words[0]:
        raise FunctionFault("expected the name of a program, and its arguments", 0)
    if any("\0" in word for word in words):
        raise FunctionFault("a word of the command contains a zero byte", 0)
    return make_command_reference(words)


def _equal(actual: Val, expected: Val) -> Val:
    # The language's equality does not convert, and `assumeequal("1", 1)` is meant to hold.
    if not is_equal(convert_value(actual, type_of(expected)), expected):
        raise FunctionFault("the value is not the expected one", 0)
    return expected


def _not_null(value: Val) -> Val:
    if isinstance(value, Null):
        raise FunctionFault("it is null", 0)
    return value


def _prefix(source: str, prefix: str) -> Val:
    if not source.startswith(prefix):
        raise FunctionFault("the text does not start with the prefix", 0)
    return source


def _between(value: Val, lowest: Number = 0, highest: Number = LIMITS.elements) -> Val:
    count = len(value.fields if isinstance(value, FIELDS) else getattr(value, "items", ()))
    if count < lowest:
        raise FunctionFault(
            f"the number of elements is {count}, less than {render_number(lowest)}", 0
        )
    if count > highest:
        raise FunctionFault(
            f"the number of elements is {count}, more than {render_number(highest)}", 0
        )
    return value


def _at_most(value: Val, highest: Number) -> Val:
    return _between(value, highest=highest)


_LENGTHS: tuple[tuple[str, str, Callable[..., Val], tuple[str, ...]], ...] = (
    ("", "from `lowest` to `highest`", _between, ("lowest", "highest")),
    ("min", "`lowest` or more", _between, ("lowest",)),
    ("max", "`highest` or fewer", _at_most, ("highest",)),
)
_KINDS = (("list", list_of(ANY)), ("set", set_of(ANY)), ("map", map_of(ANY)))


FUNCTIONS = (
    *(
        Function(
            name,
            f"The value as {noun}.",
            _make_conversion(kind),
            (_RAW,),
            passes=True,
            steps=20,
            cost=CONVERSION,
        )
        for name, noun, kind in _TARGETS
    ),
    Function(
        "sensitive",
        "The value, marked as sensitive: it is hidden in all output.",
        _sensitive,
        (_RAW,),
        passes=True,
        cost=0,
    ),
    Function(
        "nonsensitive",
        "The value, no longer marked as sensitive.",
        _nonsensitive,
        (_RAW,),
        passes=True,
        cost=0,
    ),
    Function(
        "issensitive",
        "Whether the value, or a part of it, is sensitive.",
        _issensitive,
        (_RAW,),
        passes=True,
        cost=0,
    ),
    Function(
        "coalesce",
        "The first argument that is neither null nor an empty string.",
        _coalesce,
        (),
        Param("values", ANY, null=True),
        passes=True,
        unifies=True,
    ),
    Function(
        "secret_env",
        "The secret in an environment variable; it is read only when it is sent.",
        _secret_env,
        (make_string_param("name"),),
    ),
    Function(
        "secret_file",
        "The secret in a file; it is read only when it is sent.",
        _secret_file,
        (make_string_param("path"),),
    ),
    Function(
        "secret_command",
        "The secret that a command prints, as a list of words; it runs only when the secret is "
        "needed, without a shell.",
        _secret_command,
        (Param("command", list_of(STRING)),),
    ),
    Function(
        "assumeequal",
        "The expected value; an error unless the actual one equals it.",
        _equal,
        (make_value_param("actual", null=True), make_value_param("expected", null=True)),
        unifies=True,
    ),
    Function(
        "assumenotnull",
        "The value; an error if it is null.",
        _not_null,
        (make_value_param(null=True),),
        passes=True,
        cost=0,
    ),
    Function(
        "assumestringprefix",
        "The text; an error unless it starts with the prefix.",
        _prefix,
        (make_string_param(), make_string_param("prefix")),
    ),
    *(
        Function(
            f"assume{kind}length{ending}",
            f"The {kind}; an error unless it has {words} elements.",
            call,
            (Param(kind, want), *map(make_number_param, names)),
            passes=True,
        )
        for kind, want in _KINDS
        for ending, words, call, names in _LENGTHS
    ),
)
