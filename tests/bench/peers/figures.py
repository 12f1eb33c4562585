"""What was measured, as it is kept in figures.json."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("figures.json")
MIB = 1 << 20


class Reading(Struct, frozen=True):
    """One run of one work; of several commands, the sum, and the highest peak."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, user and system, of everything that the command started."""
    broker_cpu: float
    """Seconds of the brokers meanwhile."""
    others_cpu: float
    """Seconds of everything else on the machine meanwhile."""
    peak: float
    """MiB of resident memory of all processes of the tool together."""


class Scene(Struct, frozen=True):
    """In which world a work was measured."""

    size: str
    form: str = "for_each"
    latency: int = 0
    """Milliseconds that a round trip takes longer."""
    brokers: int = 1


class Figure(Struct, frozen=True):
    """Every run of a work by a tool. Without runs, `why` tells why there are none."""

    scene: Scene
    work: str
    tool: str
    session: str
    """Ratios are made only of figures of the same session."""
    runs: tuple[Reading, ...] = ()
    requests: Mapping[str, int] | None = None
    """Requests of each API, counted in a run of its own."""
    late: int | None = None
    """Objects that an apply called not yet visible, and that every broker showed a second later."""
    why: str = ""
    failures: int = 0
    """Runs that failed and were repeated."""

    def median(self, metric: str) -> float | None:
        """The median of `wall`, `cpu`, `broker_cpu`, `others_cpu` or `peak`; None without runs."""
        if metric == "late":
            return self.late
        values = [getattr(reading, metric) for reading in self.runs]
        return statistics.median(values) if values else None


class Session(Struct, frozen=True):
    """One start of the program."""

    id: str
    """Its time, in UTC."""
    commit: str
    machine: str
    cores: int
    load: tuple[float, ...]
    """The machine's load averages of 1, 5 and 15 minutes when it began."""
    kafka: str
    python: str
    versions: Mapping[str, str]
    """Of the tools that were there."""


class Figures(Struct, frozen=True):
    """All figures; of each work in each scene those of one session."""

    sessions: tuple[Session, ...] = ()
    figures: tuple[Figure, ...] = ()

    def find(self, scene: Scene, work: str, tool: str) -> Figure | None:
        return next(
            (f for f in self.figures if (f.scene, f.work, f.tool) == (scene, work, tool)), None
        )


def merge_figures(old: Figures, session: Session, measured: Iterable[Figure]) -> Figures:
    """The old figures, where nothing new takes their place. A new figure replaces those of all
    tools for the same work in the same scene: they would be of another session."""
    new = tuple(measured)
    again = {(figure.scene, figure.work) for figure in new}
    kept = tuple(f for f in old.figures if (f.scene, f.work) not in again)
    ours = {figure.session for figure in kept} - {session.id}
    sessions = tuple(each for each in old.sessions if each.id in ours)
    return Figures((*sessions, session) if new else sessions, kept + new)


def read_figures(path: Path) -> Figures:
    """Nothing if there is no such file."""
    return msgspec.json.decode(path.read_bytes(), type=Figures) if path.exists() else Figures()


def write_figures(path: Path, figures: Figures) -> None:
    """One line for each session and each figure, so that a search shows few lines."""
    sessions, rows = (
        b",\n".join(msgspec.json.encode(each, order="deterministic") for each in structs)
        for structs in (figures.sessions, figures.figures)
    )
    path.write_bytes(b'{"sessions": [\n' + sessions + b'\n], "figures": [\n' + rows + b"\n]}\n")
