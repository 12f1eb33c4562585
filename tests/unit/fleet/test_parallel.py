"""Tables side by side: each after its inputs, few at a time, and nothing after an error."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from kafkaform.fleet.build.workspace import WIDTH, make_together
from kafkaform.fleet.tables.definitions import Dataset

PATIENCE = 60.0


def dataset(table: str, *inputs: str) -> Dataset:
    def build(frames: object, context: object) -> Any:
        raise AssertionError

    return Dataset(table, inputs, build)


def never() -> None:
    raise AssertionError("nothing was to be stopped")


def nothing(tables: Sequence[str], done: int) -> None:
    """Nobody is told."""


@pytest.mark.parametrize("seed", range(30))
def test_each_table_is_made_once_after_its_inputs(seed: int) -> None:
    """Of random graphs, listed in any order; a table that is its own input waits for nobody."""
    dice, made, lock = Random(seed), list[str](), threading.Lock()
    names = [f"t{n}" for n in range(20)]
    tables = [
        dataset(name, name, "bronze", *dice.sample(names[:n], min(n, dice.randint(0, 3))))
        for n, name in enumerate(names)
    ]
    inputs = {each.table: set(each.inputs) & set(names) - {each.table} for each in tables}

    def make(each: Dataset) -> None:
        with lock:
            assert inputs[each.table] <= set(made)
            made.append(each.table)

    make_together(dice.sample(tables, len(tables)), make, nothing, never)
    assert sorted(made) == sorted(names)


def test_as_many_as_there_is_room_for_are_made_at_the_same_time() -> None:
    """All of them meet, which they could not one after the other; nobody else is begun then."""
    meet, told = threading.Barrier(WIDTH), list[tuple[int, int]]()
    make_together(
        [dataset(f"t{n}") for n in range(3 * WIDTH)],
        lambda _: _come(meet),
        lambda tables, done: told.append((len(tables), done)),
        never,
    )
    assert len(told) == 3 * WIDTH
    assert max(running for running, _ in told) == WIDTH
    assert [done for _, done in told] == sorted(done for _, done in told)


def _come(meet: threading.Barrier) -> None:
    meet.wait(PATIENCE)


def test_after_an_error_nothing_is_begun_and_what_runs_is_stopped() -> None:
    """The first error is raised, when whatever else ran has ended."""
    stop, begun = threading.Event(), list[str]()

    def make(each: Dataset) -> None:
        begun.append(each.table)
        if each.table == "bad":
            raise ValueError("bad")
        assert stop.wait(PATIENCE)
        raise ValueError("was stopped")

    tables = [dataset("bad"), *(dataset(f"t{n}") for n in range(WIDTH)), dataset("after", "bad")]
    with pytest.raises(ValueError, match="^bad$"):
        make_together(tables, make, nothing, stop.set)
    assert "after" not in begun
    assert len(begun) <= WIDTH


def test_an_interrupt_stops_what_runs() -> None:
    """Ctrl-C comes to the thread that waits, as an exception."""
    stop = threading.Event()

    def begins(tables: Sequence[str], done: int) -> None:
        if len(tables) == WIDTH:
            raise KeyboardInterrupt

    def make(each: Dataset) -> None:
        assert stop.wait(PATIENCE)

    with pytest.raises(KeyboardInterrupt):
        make_together([dataset(f"t{n}") for n in range(WIDTH)], make, begins, stop.set)
    assert stop.is_set()
