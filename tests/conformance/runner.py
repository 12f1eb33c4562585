"""Runs one case and says what differs from what the data expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kafkaform.core.diagnostics import Diagnostic, Diagnostics
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.language.evaluate.arguments import compile_arguments
from kafkaform.language.expressions.code import Env
from kafkaform.language.expressions.compilation import make_context
from kafkaform.language.functions import FunctionTable
from kafkaform.language.functions.files import make_confined_reader
from kafkaform.language.functions.spec import Function
from kafkaform.language.values.conversion import convert_value
from kafkaform.language.values.faults import Budget, ConvertFault, EvalError
from kafkaform.language.values.types import unify_types
from kafkaform.language.values.value import Val
from kafkaform.syntax.nodes import Expression
from kafkaform.syntax.parse import parse, parse_expression, parse_template
from kafkaform.syntax.write import format_text

from .cases import FILES, Case
from .encoding import Inexpressible, read_type, read_value, shown
from .names import helpers, spelled

Parsed = tuple[Expression | None, Diagnostics]
Data = Mapping[str, Any]


class Failed(Exception):
    """The case ends in an error, as a user would see it."""


def difference(case: Case) -> str | None:
    """What differs from the expected result, or None if the case passes."""
    try:
        return _CHECKS[case.kind](case.data)
    except Inexpressible as fault:
        return f"the language has no such value: {fault}"


# -- expressions, templates, calls


def _expression(data: Data) -> str | None:
    return _evaluated(data, parse_expression(data["expr"], "case"))


def _template(data: Data) -> str | None:
    return _evaluated(data, parse_template(data["expr"], "case"))


def _call(data: Data) -> str | None:
    return _evaluated(data, parse_expression(spelled(data["source"], data["expr"]), "case"))


def _evaluated(data: Data, parsed: Parsed) -> str | None:
    names = {name: read_value(given) for name, given in data["vars"].items()}
    return _compared(data, lambda: _value(parsed, names))


def _value(parsed: Parsed, names: Mapping[str, Val]) -> Val:
    node, faults = parsed
    if node is None:
        raise Failed(faults[0].summary)
    code = make_context(_functions()).bind_names(*names).compile_node(node)
    try:
        return code(Env({}, dict(names), Budget()))
    except EvalError as fault:
        raise Failed(f"{fault.summary}. {fault.detail}") from None


@cache
def _functions() -> Mapping[str, Function]:
    table = FunctionTable(make_confined_reader(FILES, FILES))
    return {**table, **helpers(table)}


def _compared(data: Data, run: Callable[[], Val]) -> str | None:
    """An error where one is expected, else the same value, type and marks. That a function is
    not offered is never the expected error."""
    try:
        found = shown(run())
    except Failed as fault:
        missing = str(fault).startswith("There is no function") and data.get("funcs") != []
        return f"an error: {fault}" if missing or "error" not in data else None
    if "error" in data:
        return f"no error, but {found}"
    wanted = shown(read_value(data["value"]))
    return None if found == wanted else f"{found} instead of {wanted}"


# -- types


def _convert(data: Data) -> str | None:
    value, want = read_value(data["vars"]["v"]), read_type(data["type"])

    def run() -> Val:
        try:
            return convert_value(value, want)
        except ConvertFault as fault:
            raise Failed(str(fault)) from None

    return _compared(data, run)


def _unify(data: Data) -> str | None:
    found = unify_types(map(read_type, data["types"]), unsafe=False)
    expected = None if data["value"] is None else read_type(data["value"])
    return None if found == expected else f"{found} instead of {expected}"


# -- layout and structure


def _format(data: Data) -> str | None:
    found = format_text(data["expr"])
    return None if found == data["value"] else f"{found!r} instead of {data['value']!r}"


_SCHEMAS = {
    "structure/attributes/unexpected.hcl": make_schema(
        "", *(AttributeSchema(name, STRING, "") for name in ("a", "b", "d"))
    )
}
"""What the suite's decode specifications say, where a case depends on one."""


def _body(data: Data) -> str | None:
    file, faults = parse(data["expr"], "case")
    found: list[Diagnostic] = list(faults)
    if data["file"] in _SCHEMAS:
        compile_arguments(
            file.body, _SCHEMAS[data["file"]], make_context({}), file, "the file", found.append
        )
    place = found[0].range if found else None
    first = (place.line, place.column) if place else None
    expected = tuple(data["error_pos"]) if "error" in data else None
    return None if first == expected else f"the first error is at {first} instead of {expected}"


_CHECKS: Mapping[str, Callable[[Data], str | None]] = {
    "body": _body,
    "call": _call,
    "convert": _convert,
    "expr": _expression,
    "fmt": _format,
    "template": _template,
    "unify": _unify,
}
