"""One cell: a secret, a command, a way to fail; and what was left of the secret anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

from kafkaform.core.secret import MASK

from ...kit.canaries import CANARIES, hits
from .commands import LINES, LITERALS, TYPED, WORLDLY
from .house import House, Said, Template
from .paths import PATHS

LITERAL, MISSING = "literal", "missing"
ALL_PATHS = (*PATHS, LITERAL, MISSING)
EVERYWHERE = ("fine", "login refused", "crash on output", LITERAL, MISSING)
"""Ways to end that every command has; the others need one that goes through a session."""


@dataclass(frozen=True)
class Cell:
    """canary: name of the secret."""

    canary: str
    command: str
    path: str

    @property
    def secret(self) -> str:
        return CANARIES[self.canary]

    def __str__(self) -> str:
        return f"{self.canary} x {self.command} x {self.path}"


@dataclass(frozen=True)
class Left:
    """masked: the filter had something to do; looked_at: streams and files."""

    code: int
    masked: bool
    looked_at: int
    violations: tuple[str, ...]


def cells(canaries: tuple[str, ...] = tuple(CANARIES)) -> Iterator[Cell]:
    """The whole matrix."""
    for canary in canaries:
        for command in LINES:
            yield from (Cell(canary, command, path) for path in ALL_PATHS)


def few(command: str) -> Iterator[Cell]:
    """Of one command as much as a short test has time for, each with another secret."""
    names, first = list(CANARIES), list(LINES).index(command)
    deep = command in WORLDLY
    paths = ALL_PATHS if deep else (EVERYWHERE[first % 2], EVERYWHERE[2 + first % 3])
    for number, path in enumerate(paths):
        yield Cell(names[(first * 3 + number) % len(names)], command, path)


def run_cell(template: Template, cell: Cell) -> Left:
    """Type the command in a fresh copy of the house, and look everywhere."""
    with template.copied() as house:
        house.write(cell.secret, 2, literal=cell.path == LITERAL)
        fails = PATHS.get(cell.path)
        with house.entered(None if cell.path == MISSING else cell.secret):
            if cell.path == MISSING:
                (house.folder / "canary.secret").unlink()
            with fails(house, cell.secret) if fails else nullcontext():
                said = list(_typed(house, cell))
    places = {
        f"{n} {place}": data for n, one in enumerate(said) for place, data in one.places.items()
    }
    found = tuple(f"{cell}: {hit}" for hit in hits(cell.secret, places))
    broken = tuple(f"{cell}: {what}" for one in said for what in _unlike_us(one))
    masked = any(MASK.encode() in data for data in places.values())
    return Left(said[0].code, masked, len(places), (*found, *broken))


def _typed(house: House, cell: Cell) -> Iterator[Said]:
    words = cell.command.split()
    yield house.type([*words, *LINES[cell.command]], TYPED.get(cell.command, ()))
    if cell.path == LITERAL:
        for line in LITERALS.get(cell.command, ()):
            given = [word.replace("{}", cell.secret) for word in line]
            yield house.type([*words, *given])


def _unlike_us(said: Said) -> Iterator[str]:
    if "Traceback" in said.text:
        yield "a traceback"
    if said.code not in (0, 1, 2, 4, 5, 6, 7, 8, 9, 130):
        yield f"it ends with {said.code}"
