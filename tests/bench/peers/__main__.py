"""kafkaform beside other tools that manage Kafka as code: `python -m tests.bench.peers`.

- `build`: builds OpenTofu, its Kafka provider and topicctl with Go, into the cache folder
- `run` (or nothing): measures, and prints the tables
- `page`: writes docs/performance.md from figures.json

Without options, `run` measures everything that the goals need, which takes hours. `--rows no-op
--sizes 1000x3 --peers kafkaform limit --runs 5` measures one row. docs/performance.md tells what
each row is.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ...kit.kafka.clusters import own_sandbox
from . import figures as kept
from . import go_tools, page, tools
from .checkout import check_out, describe_commit
from .figures import Figure, Figures, Scene, Session
from .goals import LIMIT, OURS, TODAY, TOFU
from .hcl_files import Form
from .launcher import ROOT
from .measurement import measure_scene
from .runs import Asked
from .tools import Tool
from .without_cluster import measure_fleet, measure_starts
from .works import ROWS
from .world import parse_size

PAGE = ROOT / "docs" / "performance.md"
PEERS = (OURS, TODAY, TOFU, "topicctl", "jikkou", LIMIT)
RUNS, PATIENCE = 5, 3600.0
BROKER = (("log.segment.delete.delay.ms", "1000"),)
"""A broker keeps the files of a deleted topic open for a minute, and each run deletes thousands."""
HEAP = "-Xms2g -Xmx2g"
"""In the 512 MB of a sandbox, a broker with 10,000 topics mostly collects garbage."""
ALONE = {"start": measure_starts, "fleet": measure_fleet}
"""Scenes without a broker."""
SMALL = ("empty", "apply", "no-wait", "destroy", "import", "no-op", "drift", "change")


class Measurement(Struct, frozen=True):
    """Some rows of one scene."""

    scene: Scene
    rows: tuple[str, ...]
    peers: tuple[str, ...] = PEERS


BASELINE = "18e08db5"
"""The commit of the goals' "today"."""
_OWN = (OURS, TODAY, LIMIT)
DEFAULT = (
    Measurement(Scene("start"), ("start",), (OURS, LIMIT)),
    Measurement(Scene("100x3"), SMALL),
    Measurement(Scene("100x1+50acls+20quotas"), ("apply", "no-op", "destroy"), (OURS, TOFU, LIMIT)),
    Measurement(Scene("1000x3"), SMALL, (OURS, TODAY, TOFU, "jikkou", LIMIT)),
    Measurement(Scene("1000x3", latency=20), ("apply", "no-op"), (OURS, TOFU, LIMIT)),
    Measurement(Scene("1000x1"), ("empty", "apply", "destroy", "no-op", "change"), (OURS,)),
    Measurement(Scene("10000x1"), ("empty", "apply", "destroy", "no-op", "change"), _OWN),
    Measurement(Scene("1000acls"), ("empty", "apply", "no-op"), (OURS,)),
    Measurement(Scene("10000acls"), ("empty", "apply", "no-op"), _OWN),
    Measurement(Scene("10000x1+50000acls"), ("no-op",), (OURS, LIMIT)),
    Measurement(Scene("fleet"), ("fleet",), (OURS, TODAY)),
)
"""What the goals need. Ratios over two sizes are of one session, so they stand in one list."""


def choose_measurements(given: argparse.Namespace) -> list[Measurement]:
    """All of them, or those that the options name."""
    peers = tuple(given.peers or PEERS)
    if not (given.sizes or given.rows):
        return [replace(m, peers=tuple(p for p in m.peers if p in peers)) for m in DEFAULT]
    rows, sizes = tuple(given.rows or SMALL), given.sizes or ["1000x3"]
    scenes = [Scene(size, given.form, given.latency, given.brokers) for size in sizes]
    alone = [row for row in rows if row in ALONE]
    found = [Measurement(Scene(row), (row,), peers) for row in alone]
    others = tuple(row for row in rows if row not in ALONE)
    if others:
        found += [Measurement(scene, others, peers) for scene in scenes]
    return found


def run(given: argparse.Namespace) -> None:
    # A ratio is only as good as the quiet around it, which is noted and not waited for.
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peers-")))
        measurements = choose_measurements(given)
        needed = any(TODAY in measurement.peers for measurement in measurements)
        baseline = stack.enter_context(check_out(given.against, home)) if needed else None
        session: Session | None = None
        measured: list[Figure] = []
        for number, measurement in enumerate(measurements):
            folder = home / str(number)
            folder.mkdir()
            for figure, about in _measure(given, measurement, folder, baseline, now):
                measured.append(figure)
                versions = {**session.versions, **about.versions} if session else about.versions
                session = replace(session or about, versions=versions)
            _tell(given, session, measured)
    if session is not None:
        found = kept.merge_figures(Figures(), session, measured)
        print("\n" + page.render_tables(found, concise=True))


def _tell(given: argparse.Namespace, session: Session | None, measured: Sequence[Figure]) -> None:
    """After each scene, so that an interrupted run leaves what it has."""
    if session is None or not given.record:
        return
    merged = kept.merge_figures(kept.read_figures(given.figures), session, measured)
    kept.write_figures(given.figures, merged)
    if given.figures == kept.FILE:
        write_page()


def _measure(
    given: argparse.Namespace,
    measurement: Measurement,
    home: Path,
    baseline: Path | None,
    now: str,
) -> Iterator[tuple[Figure, Session]]:
    scene, name = measurement.scene, f"peers-{os.getpid()}"
    works = tuple(dict.fromkeys(work for row in measurement.rows for work in ROWS[row]))
    asked = Asked(scene, works, given.runs, given.patience, now)
    print(f"{page.describe_scene(scene)}: {', '.join(measurement.rows)}", flush=True)
    if (alone := ALONE.get(scene.size)) is not None:
        found = make_tools(given, measurement, home, baseline, "")
        session = make_session(now, found, "none")
        yield from ((figure, session) for figure in alone(asked, found, home))
        return
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("KAFKA_HEAP_OPTS", HEAP)
        box = stack.enter_context(own_sandbox(name, scene.brokers, BROKER))
        found = make_tools(given, measurement, home, baseline, box.admin_password)
        session = make_session(now, found, box.kafka_version)
        yield from ((figure, session) for figure in measure_scene(asked, found, home, box))


def make_tools(
    given: argparse.Namespace,
    measurement: Measurement,
    home: Path,
    baseline: Path | None,
    password: str,
) -> list[Tool]:
    """Those that a measurement names, in the order of PEERS."""
    binaries = go_tools.Binaries(given.programs)
    makers = {
        OURS: lambda: tools.make_kafkaform(OURS, ROOT, describe_commit()),
        TOFU: lambda: tools.make_tofu(binaries, home / "mirror", home, password),
        "topicctl": lambda: tools.make_topicctl(binaries, password),
        "jikkou": lambda: tools.make_jikkou(binaries, password),
        LIMIT: lambda: tools.make_limit(ROOT),
    }
    if baseline is not None:
        makers[TODAY] = lambda: tools.make_kafkaform(TODAY, baseline, describe_commit(baseline))
    return [makers[name]() for name in PEERS if name in makers and name in measurement.peers]


def make_session(now: str, found: Sequence[Tool], kafka: str) -> Session:
    return Session(
        now,
        describe_commit(),
        f"{platform.system()} {platform.machine()}",
        os.cpu_count() or 1,
        os.getloadavg(),
        kafka,
        platform.python_version(),
        {tool.name: tool.version for tool in found if tool.version and tool.name != OURS},
    )


def write_page() -> None:
    text = PAGE.read_text("utf-8")
    PAGE.write_text(page.fill_page(text, kept.read_figures(kept.FILE)), "utf-8")


def check_size(text: str) -> str:
    """As `--sizes` has it. Raises ArgumentTypeError."""
    try:
        return str(parse_size(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("command", nargs="?", choices=("build", "run", "page"), default="run")
    add("--rows", nargs="+", choices=tuple(ROWS), help="default: all, or those of --sizes")
    add("--sizes", nargs="+", type=check_size, metavar="SIZE", help="1000x3, 10000acls, ...")
    add("--peers", nargs="+", choices=PEERS)
    add("--runs", type=int, default=RUNS, help="timed runs of each work (5)")
    add("--latency", type=int, default=0, metavar="MS", help="a round trip takes so much longer")
    add("--form", choices=tuple(Form), default=Form.FOR_EACH, help="how the files are written")
    add("--brokers", type=int, choices=(1, 3), default=1)
    add("--against", metavar="COMMIT", default=BASELINE, help="what the baseline is")
    add("--programs", type=Path, default=go_tools.get_folder(), metavar="FOLDER")
    add("--patience", type=float, default=PATIENCE, help="seconds that a command may take")
    add("--record", action="store_true", help="add the figures to figures.json and to the page")
    add("--figures", type=Path, default=kept.FILE, metavar="FILE", help="another figures.json")
    return parser


def main(words: Sequence[str]) -> None:
    given = make_parser().parse_args(words)
    if given.command == "build":
        go_tools.build(given.programs)
    elif given.command == "page":
        write_page()
    else:
        run(given)


if __name__ == "__main__":
    # A run that is ended removes its brokers and its worktree all the same.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    main(sys.argv[1:])
