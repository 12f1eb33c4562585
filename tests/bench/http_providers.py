"""A plan that has nothing to do, over 1,000 subjects of a real registry and 200 connectors, beside
the bare requests with the same number at the same time; and one over the connectors alone:
`python -m tests.bench http`.

The workers are simulated, in a process of their own behind real HTTP. Kafka has no part in it.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager
from functools import partial
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from kafkaform.audit.index import LogIndex
from kafkaform.cli import GARBAGE
from kafkaform.core.progress import ignore_event
from kafkaform.plan.model import Options
from kafkaform.render.plan_text import render_plan_text
from kafkaform.sandbox import ServerKind
from kafkaform.sandbox.servers.start import start_servers
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.planning import plan_workspace
from kafkaform.workflow.workspace import Workspace, open_sessions, open_workspace
from kafkaform_schema_registry.formats.avro import NORMAL_FORMS
from kafkaform_schema_registry.formats.normal_form import inspect_schema

from ..kit.connect.folder import answer, connector, make_workers
from ..kit.http.server import serving
from ..kit.kafka.clusters import own_sandbox

SUBJECTS, CONNECTORS, ROUNDS, CONCURRENCY = 1000, 200, 15, 8
FIELDS = 12
"""Of a schema."""
CLASS = "FileStreamSource"
WORKER_PATHS = (
    "/",
    "/connector-plugins?connectorsOnly=false",
    "/connectors?expand=info&expand=status",
    "/connectors",
    f"/connector-plugins/{CLASS}/config",
)
"""What a plan has to know of workers: who answers, what is installed, and every connector."""
SUBJECT_PATHS = [f"/subjects/bench.topic-{n}-value/versions/latest" for n in range(SUBJECTS)]

HEAD = """
provider "{name}" {{
  url         = "{url}"
  concurrency = {concurrency}
}}
"""
SUBJECT = """
resource "schema_registry_schema" "bench_{number}" {{
  topic  = "bench.topic-{number}"
  schema = file("schema-{number}.avsc")
}}
"""


@contextmanager
def simulated_workers() -> Iterator[str]:
    """The URL of workers in a process of their own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve_workers, args=(there,), daemon=True)
    process.start()
    yield here.recv()
    here.send("end")
    process.join()


def serve_workers(pipe: Connection) -> None:
    """Simulated workers, until the other end says something."""
    with serving(partial(answer, make_workers())) as served:
        pipe.send(served.url)
        pipe.recv()


def write_configuration(registry: str, workers: str) -> None:
    """registry: empty for the connectors alone."""
    blocks = [HEAD.format(name="kafka_connect", url=workers, concurrency=CONCURRENCY)]
    blocks += [connector(f"bench-{n:03}", state='"stopped"') for n in range(CONNECTORS)]
    if registry:
        blocks.append(HEAD.format(name="schema_registry", url=registry, concurrency=CONCURRENCY))
    for number in range(SUBJECTS if registry else 0):
        blocks.append(SUBJECT.format(number=number))
        Path(f"schema-{number}.avsc").write_text(make_schema(number), "utf-8")
    Path("main.kf.hcl").write_text("\n".join(blocks), "utf-8")


def make_schema(number: int) -> str:
    fields = [{"name": f"f{n}", "type": ["null", "string"], "default": None} for n in range(FIELDS)]
    return json.dumps({"type": "record", "name": f"R{number}", "fields": fields}, indent=2)


def send_bare(registry: str, workers: str) -> None:
    """The requests of a plan alone, without those that find out which registry it is, over
    connections that stay open; the answers are parsed and thrown away."""
    read_paths(workers, WORKER_PATHS)
    read_paths(registry, ["/subjects"])
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        parts = [SUBJECT_PATHS[n::CONCURRENCY] for n in range(CONCURRENCY)]
        list(pool.map(partial(read_paths, registry), parts))


def read_paths(url: str, paths: Sequence[str]) -> None:
    """Ask for one after the other."""
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port)
    for path in paths:
        connection.request("GET", f"{place.path}{path}")
        json.loads(connection.getresponse().read())
    connection.close()


def make_plan(space: Workspace, unchanged: int = SUBJECTS + CONNECTORS) -> None:
    """From the first connection to the last line, with no schema known from before. unchanged: how
    many objects it has."""
    inspect_schema.cache_clear()
    NORMAL_FORMS.clear()
    state = space.backend.load().state
    assert state is not None
    with open_sessions(space, state, LogIndex()) as sessions:
        plan = plan_workspace(space, sessions, state, LogIndex(), Options(), ignore_event)
    assert not plan.effective and plan.unchanged == unchanged  # or less was measured
    render_plan_text(plan)


class Figures(Struct, frozen=True):
    """Medians of one task."""

    seconds: float
    busy: float
    """Seconds of this process's processor."""
    ratio: float
    """Seconds divided by those of the first task in the same turn."""


def measure(*tasks: Callable[[], object]) -> list[Figures]:
    """The figures of each task. They take turns, so that a busy moment strikes all."""
    turns: list[list[tuple[float, float]]] = []
    for _ in range(ROUNDS + 1):
        spent = []
        for task in tasks:
            # A command is a process of its own, and has no garbage of earlier ones.
            gc.collect()
            begun, busy = time.perf_counter(), time.process_time()
            task()
            spent.append((time.perf_counter() - begun, time.process_time() - busy))
        turns.append(spent)
    del turns[0]  # it filled caches
    return [
        Figures(
            statistics.median(turn[n][0] for turn in turns),
            statistics.median(turn[n][1] for turn in turns),
            statistics.median(turn[n][0] / turn[0][0] for turn in turns),
        )
        for n in range(len(tasks))
    ]


@contextmanager
def prepared() -> Iterator[tuple[str, str]]:
    """A folder whose configuration was applied; the URLs of the registry and of the workers."""
    name = f"bench-http-{os.getpid()}"
    with (
        simulated_workers() as workers,
        own_sandbox(name),
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
    ):
        box = start_servers(name, (ServerKind.SCHEMA_REGISTRY,), 240.0)
        registry = box.find_server(ServerKind.SCHEMA_REGISTRY)
        assert registry is not None
        write_configuration(registry.url, workers)
        apply_changes(open_workspace(), approve=lambda _: True)
        yield registry.url, workers


def measure_connectors() -> list[Figures]:
    """Bare requests, a plan, and one with reading the configuration, of the connectors alone."""
    with simulated_workers() as workers, tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_configuration("", workers)
        apply_changes(open_workspace(), approve=lambda _: True)
        space = open_workspace()
        return measure(
            lambda: read_paths(workers, WORKER_PATHS),
            lambda: make_plan(space, CONNECTORS),
            lambda: make_plan(open_workspace(), CONNECTORS),
        )


def print_figures(title: str, figures: Sequence[Figures]) -> None:
    print(f"{title}, medians of {ROUNDS} runs in one process")
    texts = "bare requests", "plan: connect, read, diff, render", "with reading the configuration"
    for text, row in zip(texts, figures, strict=True):
        print(
            f"{text:<34} {row.seconds * 1000:6.1f} ms, {row.ratio:4.2f} x bare; "
            f"processor {row.busy * 1000:5.1f} ms"
        )


def main() -> None:
    gc.set_threshold(GARBAGE)  # as the command line does
    print_figures(f"{CONNECTORS} connectors of simulated workers", measure_connectors())
    with prepared() as urls:
        space = open_workspace()
        figures = measure(
            lambda: send_bare(*urls),
            lambda: make_plan(space),
            lambda: make_plan(open_workspace()),
        )
    print_figures(
        f"{SUBJECTS} subjects of a real registry and these connectors, {CONCURRENCY} at a time",
        figures,
    )


if __name__ == "__main__":
    main()
