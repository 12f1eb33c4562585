"""Many at once, and nobody waits for the slow ones but who asked for all."""

from __future__ import annotations

from threading import Barrier, Event

import pytest

from kafkaform.core.parallel import map_parallel
from kafkaform.core.secret import Secret, mask_secrets, watch_secrets

PATIENCE = 60.0


def test_answers_in_order() -> None:
    """Whichever is done first."""
    gate = Barrier(3)

    def work(number: int) -> int:
        gate.wait(PATIENCE)
        return number * 2

    assert map_parallel(work, range(3), 3) == (0, 2, 4)
    assert map_parallel(work, (), 3) == ()


def test_a_slow_one_holds_up_nobody() -> None:
    """The others are done while it still waits."""
    done, last = [], Event()

    def work(number: int) -> None:
        if number == 0:
            assert last.wait(PATIENCE)
        done.append(number)
        if len(done) == 9:
            last.set()

    map_parallel(work, range(10), 2)
    assert done[-1] == 0 and len(done) == 10


def test_the_first_error_is_told() -> None:
    """And what had not begun does not begin any more."""
    begun, others = [], Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise KeyError(number)
        others.wait(1)

    with pytest.raises(KeyError):
        map_parallel(work, range(1000), 2)
    others.set()
    assert len(begun) < 1000


def test_secrets_of_workers_are_known() -> None:
    """What one of them reads is masked wherever it is written."""
    with watch_secrets():
        map_parallel(Secret, ("canary-one", "canary-two"), 2)
        assert mask_secrets("canary-one canary-two") == "(secret) (secret)"
