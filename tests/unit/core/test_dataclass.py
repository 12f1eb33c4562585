"""Our dataclasses behave as those of the standard library, and are compiled when used."""

from __future__ import annotations

import ast
import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from kafkaform.core import dataclass as module
from kafkaform.core.dataclass import dataclass, field, replace

SETTINGS: list[dict[str, bool]] = [
    {},
    {"eq": False},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "order": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "eq": False, "repr": False},
]
Decorator = Callable[..., Any]


def pair(**settings: bool) -> tuple[Any, Any]:
    """One class made in the standard way and in ours."""

    def made(decorator: Decorator, field: Any) -> Any:
        @decorator(**settings)
        class Noun:
            """What it is."""

            a: int
            b: str = "b"
            c: tuple[int, ...] = field(default=(), repr=False)
            d: list[int] = field(default_factory=list, compare=False)
            e: int = field(default=5, init=False)

        return Noun

    return made(dataclasses.dataclass, dataclasses.field), made(dataclass, field)


def outcome(act: Callable[[], Any]) -> Any:
    """What comes of it, errors with their kind."""
    try:
        return act()
    except (TypeError, AttributeError) as error:
        return type(error).__name__, str(error).replace("change", "assign to")


ACTS: list[Callable[[Any], Any]] = [
    lambda noun: repr(noun(1)).split(" at 0x")[0],
    lambda noun: (noun(1).a, noun(1).b, noun(1).c, noun(1).d, noun(1).e),
    lambda noun: noun(1, "x", (1,), [2]).d,
    lambda noun: noun(a=1, d=[3]).d,
    lambda noun: noun(),
    lambda noun: noun(1, nope=2),
    lambda noun: noun(1, e=2),
    lambda noun: (noun(1) == noun(1), noun(1) == noun(2), noun(1) != noun(1), noun(1) == 1),
    lambda noun: noun(1, d=[1]) == noun(1, d=[2]),
    lambda noun: (lambda one, other: hash(one) == hash(other))(noun(1), noun(1)),
    lambda noun: {noun(1): 2}[noun(1)] if noun.__eq__ is not object.__eq__ else None,
    lambda noun: noun(1) < noun(2),
    lambda noun: (noun(1) <= noun(1), noun(2) > noun(1), noun(1) >= noun(2)),
    lambda noun: setattr(noun(1), "a", 2),
    lambda noun: delattr(noun(1), "a"),
    lambda noun: dataclasses.replace(noun(1), b="y").b,
    lambda noun: dataclasses.asdict(noun(1, d=[4])),
    lambda noun: dataclasses.astuple(noun(1)),
    lambda noun: [(f.name, f.type, f.init, f.repr) for f in dataclasses.fields(noun)],
    lambda noun: dataclasses.is_dataclass(noun(1)),
    lambda noun: copy.deepcopy(noun(1, d=[1])).d,
    lambda noun: copy.copy(noun(1)).a,
    lambda noun: noun.__match_args__,
    lambda noun: (noun.__doc__, noun.__name__, noun.__qualname__, noun.__module__),
    lambda noun: hasattr(noun(1), "__dict__"),
    lambda noun: get_type_hints(noun, {"Any": Any}),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("number", range(len(ACTS)))
def test_they_behave_as_the_standard_ones(settings: dict[str, bool], number: int) -> None:
    """Making, comparing, hashing, ordering, changing, copying and looking inside come out the
    same, errors included."""
    standard, ours = pair(**settings)
    act = ACTS[number]
    assert _plain(outcome(lambda: act(ours))) == _plain(outcome(lambda: act(standard)))


def _plain(result: Any) -> Any:
    """A refusal by its kind alone."""
    refused = isinstance(result, tuple) and result[:1] == ("FrozenInstanceError",)
    return "FrozenInstanceError" if refused else result


@dataclass(frozen=True, slots=True)
class Base:
    a: int
    b: int = 2


@dataclass(frozen=True, slots=True)
class Derived(Base):
    c: int = 3

    def __repr__(self) -> str:
        return "its own"


class Plain(Derived):
    """Not decorated."""


def test_replace() -> None:
    """Values that are not named stay; what is no field, or not to be given, is refused."""
    _, ours = pair(frozen=True, slots=True)
    one = ours(1, "x", (1,), [2])
    other = replace(one, a=7)
    assert (other.a, other.b, other.c, other.d) == (7, "x", (1,), [2])
    for changes in ({"nope": 1}, {"e": 1}):
        with pytest.raises(TypeError):
            replace(one, **changes)


def test_a_field_of_the_standard_module() -> None:
    """It would be taken for a default, so it is refused while the class is made."""
    with pytest.raises(TypeError, match=r"Wrong\.a: take `field` from"):

        @dataclass(frozen=True, slots=True)
        class Wrong:
            a: list[int] = dataclasses.field(default_factory=list)


def test_inheritance() -> None:
    """Fields of the base come first, methods written in the class stay, other classes are
    unequal, and classes without the decorator inherit everything."""
    assert (Derived(1).a, Derived(1, 5).b, Derived(1, 5, 6).c) == (1, 5, 6)
    assert repr(Derived(1)) == "its own"
    assert Base(1) != Derived(1) and Plain(1) == Plain(1) and Plain(1) != Derived(1)
    assert "__dict__" not in dir(Derived(1))
    with pytest.raises(FrozenInstanceError):
        Derived(1).a = 2  # type: ignore[misc]  # that is what is refused


def test_pickles() -> None:
    """Objects go to another process and come back."""
    for thing in (Base(1), Derived(1, 2, 3)):
        assert pickle.loads(pickle.dumps(thing)) == thing


def test_patterns() -> None:
    """A class can stand in a `case`."""
    match Derived(1, 2, 4):
        case Derived(a, _, 4):
            assert a == 1
        case _:
            pytest.fail("it did not match")


def test_nothing_is_compiled_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class costs no compilation; its first object compiles the one method that makes it, and
    the second one nothing."""
    compiled: list[str] = []
    real = module._compiled

    def count(cls: Any, name: str, frozen: bool) -> Callable[..., Any]:
        compiled.append(name)
        return real(cls, name, frozen)

    monkeypatch.setattr(module, "_compiled", count)
    _, ours = pair(frozen=True, slots=True, order=True)
    assert compiled == []
    first, second = ours(1), ours(2)
    assert compiled == ["__init__"]
    assert first == ours(1) and first < second
    assert compiled == ["__init__", "__eq__", "__lt__"]


def test_all_of_kafkaform_uses_them() -> None:
    """No module takes `dataclass`, `field` or `replace` from the standard library: such a class
    would cost its half a millisecond, and could not inherit from the others."""
    root = Path(__file__).resolve().parents[3]
    ours = {"dataclass", "field", "replace"}
    for path in [*root.glob("kafkaform/**/*.py"), *root.glob("providers/**/*.py")]:
        # What stands beside Spark's own classes is not loaded by any other command.
        if path == Path(module.__file__) or "fleet" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
                assert not ours & {name.name for name in node.names}, path.relative_to(root)
