"""Conformance checks of data sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from ..core.errors import KafkaformError
from ..core.schema import Type
from ..core.value import EMPTY, FrozenMap, Value
from .fixture import About, Fixture, Question
from .workbench import Bench, Violation, require

_UNKNOWN = Question("no_such", About.SYSTEM, lambda _: EMPTY, lambda _, __: False)


def a_query_answers_as_its_schema_says(fixture: Fixture) -> None:
    """Every data source answers with all its computed attributes, in their types."""
    require(bool(fixture.questions), "the fixture asks nothing")
    names = {question.data for question in fixture.questions}
    require(names == fixture.data.keys(), f"questions for {names}, data: {list(fixture.data)}")
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        fixture.make(attributes)
        for question in fixture.questions:
            answer = bench.wait_answer(question, attributes)
            schema = fixture.data[question.data].attributes
            promised = {name: item.type for name, item in schema.items() if item.computed}
            require(
                answer.keys() == promised.keys(), f"{question.data} answers with {list(answer)}"
            )
            for name, kind in promised.items():
                require(_fits(answer[name], kind), f"{name} = {answer[name]!r} is no {kind}")


def a_query_does_not_guess(fixture: Fixture) -> None:
    """A missing object is refused by name. A hidden one is not shown, and is refused in the same
    way whether it exists or not."""
    require(bool(fixture.questions), "the fixture asks nothing")
    with Bench(fixture) as bench, Bench(fixture, privileged=False) as nobody:
        existing, missing = fixture.fresh(EMPTY), fixture.fresh(EMPTY)
        fixture.make(existing)
        bench.wait_seen(existing)
        for question in fixture.questions:
            if question.about is About.LIST:
                listed = question.shows(nobody.query(question, existing), existing)
                require(not listed, f"{question.data} lists a hidden object")
            if question.about is About.OBJECT:
                absent = _provoke_refusal(bench, question, missing)
                hidden = [_provoke_refusal(nobody, question, item) for item in (existing, missing)]
                require(
                    hidden[0] == hidden[1],
                    f"refusals reveal existence: {hidden}",
                )
                require(hidden[0] != absent, f"hidden counts as missing: {absent}")
        _provoke_refusal(bench, _UNKNOWN, existing)


def _provoke_refusal(bench: Bench, question: Question, attributes: FrozenMap) -> str:
    """The message with which a query is refused, without the name of the object, which it must
    contain."""
    try:
        answer = bench.query(question, attributes)
    except KafkaformError as error:
        require(bool(error.advice), f"no advice: {error.message}")
        key = bench.make_identity(attributes).key
        named = key in error.message or question.about is not About.OBJECT
        require(named, f"{key} is not named: {error.message}")
        return error.message.replace(key, "")
    raise Violation(f"{question.data} answers {answer}")


def _fits(value: Value, kind: Type) -> bool:
    """True if the value has this type, or is None."""
    return value is None or _FITS[kind.kind](value, kind)


def _elements_fit(value: Value, kind: Type) -> bool:
    element = kind.element or kind
    return isinstance(value, tuple) and all(_fits(item, element) for item in value)


def _entries_fit(value: Value, kind: Type) -> bool:
    element = kind.element or kind
    return isinstance(value, FrozenMap) and all(_fits(item, element) for item in value.values())


def _fields_fit(value: Value, kind: Type) -> bool:
    return (
        isinstance(value, FrozenMap)
        and value.keys() == kind.fields.keys()
        and all(_fits(value[name], field) for name, field in kind.fields.items())
    )


_FITS: Mapping[str, Callable[[Value, Type], bool]] = {
    "any": lambda _, __: True,
    "string": lambda value, _: isinstance(value, str),
    "bool": lambda value, _: isinstance(value, bool),
    "number": lambda value, _: isinstance(value, int | Decimal) and not isinstance(value, bool),
    "list": _elements_fit,
    "set": _elements_fit,
    "map": _entries_fit,
    "object": _fields_fit,
}
