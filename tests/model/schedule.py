"""Lists of steps: drawn from a seed, played, made as short as they can be, kept in a file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from .machine import RULES, START, Machine, Step, numbered
from .shapes import draw

LENGTH = 40
"""Steps of a schedule, about."""
FOLDER = Path(os.environ.get("KAFKAFORM_SCHEDULES", tempfile.gettempdir() + "/kafkaform-schedules"))
"""Where schedules that failed are kept."""


@dataclass(frozen=True)
class Failure:
    """steps: up to and with the one that failed; message: of the promise that it broke."""

    steps: tuple[Step, ...]
    message: str


def drawn(seed: int, length: int = LENGTH) -> tuple[Step, ...]:
    """The schedule of this seed. Each leaves out some of the rules, so that others can meet."""
    random = Random(seed)
    used = [name for name in RULES if name == "apply" or random.random() < 0.6]
    weights = [RULES[name][0] for name in used]
    names = random.choices(used, weights, k=length)
    steps = [(name, draw(RULES[name][1], random)) for name in names]
    return (("start", draw(START, random)), *steps, ("calm", {}))


def play(steps: Sequence[Step]) -> Failure | None:
    """Do all steps; the first one that breaks a promise, or raises what nobody expects."""
    done = [steps[0]]
    with numbered():
        try:
            machine = Machine(**steps[0][1])
            for step in steps[1:]:
                done.append(step)
                machine.do(*step)
        except Exception as error:  # noqa: BLE001  # whatever it is, nobody expected it
            return failed(done, error)
    return None


def failed(steps: Sequence[Step], error: Exception) -> Failure:
    return Failure(tuple(steps), f"{type(error).__name__}: {error}"[:2000])


# ── shorter ─────────────────────────────────────────────────────────────────────────────


def shortest(failure: Failure, tries: int = 300) -> Failure:
    """A schedule that fails as well, with as little in it as so many plays can find."""
    best, left = failure, tries
    shrunk = True
    while shrunk and left:
        shrunk = False
        for steps in _shorter(best.steps):
            if not left:
                break
            left -= 1
            found = play(steps)
            if found is not None and _kind(found) == _kind(failure):
                best, shrunk = found, True
                break
    return best


def _kind(failure: Failure) -> str:
    """What broke: two schedules that break different promises are not one failure."""
    return failure.message.partition(":")[0]


def _shorter(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Large pieces first, then single steps, then what is in a step's lists."""
    size = len(steps) // 2
    while size:
        for start in range(1, len(steps), size):
            if start + size < len(steps):
                yield steps[:start] + steps[start + size :]
        size //= 2
    for number, (rule, arguments) in enumerate(steps):
        for name, value in arguments.items():
            for index in range(len(value) if isinstance(value, list) else 0):
                less = {**arguments, name: value[:index] + value[index + 1 :]}
                yield (*steps[:number], (rule, less), *steps[number + 1 :])


# ── kept ────────────────────────────────────────────────────────────────────────────────


def keep(failure: Failure, name: str, folder: Path = FOLDER) -> Path:
    """Save what replays this failure: `python -m tests.model.replay FILE`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    lines = ",\n ".join(json.dumps(step) for step in failure.steps)
    path.write_text(f'{{"message": {json.dumps(failure.message)},\n"steps": [\n {lines}\n]}}\n')
    return path


def load(path: Path) -> tuple[Step, ...]:
    """The steps in this file."""
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return tuple((rule, arguments) for rule, arguments in data["steps"])


def told(failure: Failure, name: str, folder: Path = FOLDER) -> str:
    """What failed, after how many steps, and how to see it again."""
    path = keep(failure, name, folder)
    return (
        f"{failure.message}\n  after {len(failure.steps)} steps; to see it again: "
        f"python -m tests.model.replay {path}"
    )
