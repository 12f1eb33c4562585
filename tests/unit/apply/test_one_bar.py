"""One bar at a time, and a verification that counts up."""

from __future__ import annotations

from kafkaform.cli.terminal.bars import Terminal
from kafkaform.core.progress import Progress

from ...kit.simulated.engine import Screen, apply, desired, house, topic
from ..render.test_progress import Tty
from ..render.test_stream import Frozen


def list_labels(terminal: Terminal) -> list[str]:
    """The bars that can be seen."""
    assert terminal._progress is not None
    return [task.description for task in terminal._progress.tasks if task.visible]


def test_a_terminal_shows_the_newest_task_only() -> None:
    """A part of a phase takes the place of the whole, and gives it back at its end."""
    terminal = Terminal(Tty(), Frozen())
    terminal(Progress("apply", "Applying", 0, 500, "steps"))
    terminal(Progress("deletes", "Applying DeleteAcls", 0, 500, "steps"))
    assert list_labels(terminal) == ["Applying DeleteAcls"]
    terminal(Progress("apply", "Applying", 200, 500, "steps"))
    assert list_labels(terminal) == ["Applying DeleteAcls"]
    terminal(Progress("deletes", "Applying DeleteAcls", 500, 500, "steps", finished=True))
    assert list_labels(terminal) == ["Applying"]
    terminal.clear()


def test_a_verification_counts_up() -> None:
    """Each answer of each broker counts, up to all of them, and never back."""
    where = house(brokers=3)
    seen: list[Progress] = []

    def keep(event: object) -> None:
        if isinstance(event, Progress) and event.task == "verify":
            seen.append(event)

    where.screen = Screen(progress=keep)
    apply(where, desired(topic("a"), topic("b")))
    done = [event.done for event in seen]
    assert done == sorted(done) and done[0] == 0 and done[-1] == 6
    assert len(set(done)) > 2
    assert {event.total for event in seen} == {6}
    assert seen[0].label == "Verifying 2 objects on 3 brokers"
