"""A plan that has nothing to do, over the subjects of a real registry, beside the bare requests
with the same number at the same time: `python -m tests.bench registry`."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from kafkaform.audit.index import LogIndex
from kafkaform.core.progress import ignore_event
from kafkaform.plan.model import Options
from kafkaform.render.plan_text import render_plan_text
from kafkaform.sandbox import ServerKind
from kafkaform.sandbox.servers import start_servers
from kafkaform.state.model import State
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.planning import plan_workspace
from kafkaform.workflow.workspace import open_sessions, open_workspace
from kafkaform_schema_registry.formats.normal_form import normalize_schema

from ..kit.kafka.clusters import own_sandbox

SUBJECTS, ROUNDS, CONCURRENCY = 1000, 5, 8
FIELDS = 12
"""Of a schema."""

HEAD = """
provider "schema_registry" {{
  url         = "{url}"
  concurrency = {concurrency}
}}
"""
BLOCK = """
resource "schema_registry_schema" "bench_{number}" {{
  topic  = "bench.topic-{number}"
  schema = file("schema-{number}.avsc")
}}
"""


def make_schema(number: int) -> str:
    fields = [{"name": f"f{n}", "type": ["null", "string"], "default": None} for n in range(FIELDS)]
    return json.dumps({"type": "record", "name": f"R{number}", "fields": fields}, indent=2)


def read_bare(url: str) -> int:
    """The list, and the latest version of each subject: the requests alone, over connections that
    stay open. Returns the number of answers."""
    place = urlsplit(url)

    def read(paths: Sequence[str]) -> int:
        connection = HTTPConnection(place.hostname or "", place.port)
        for path in paths:
            connection.request("GET", f"{place.path}{path}")
            json.loads(connection.getresponse().read())
        connection.close()
        return len(paths)

    read(["/subjects"])
    paths = [f"/subjects/bench.topic-{n}-value/versions/latest" for n in range(SUBJECTS)]
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        return sum(pool.map(read, [paths[n::CONCURRENCY] for n in range(CONCURRENCY)]))


@contextmanager
def planning() -> Iterator[Callable[[], str]]:
    """What makes a plan over an open session, from the first request to the last line, with no
    schema known from before."""
    space = open_workspace()
    state = space.backend.load().state or State("")
    with open_sessions(space, state, LogIndex()) as sessions:

        def plan() -> str:
            normalize_schema.cache_clear()
            made = plan_workspace(space, sessions, state, LogIndex(), Options(), ignore_event)
            assert not made.effective and made.unchanged == SUBJECTS
            return render_plan_text(made)

        yield plan


def seconds(tasks: Sequence[Callable[[], object]]) -> list[float]:
    """The median time of each task, which take turns; a first turn fills caches."""
    times: list[list[float]] = [[] for _ in tasks]
    for turn in range(ROUNDS + 1):
        for task, found in zip(tasks, times, strict=True):
            begun = time.perf_counter()
            task()
            if turn:
                found.append(time.perf_counter() - begun)
    return [statistics.median(found) for found in times]


def main() -> None:
    name = f"bench-registry-{os.getpid()}"
    with own_sandbox(name), tempfile.TemporaryDirectory() as folder, chdir(folder):
        box = start_servers(name, (ServerKind.SCHEMA_REGISTRY,), 240.0)
        server = box.find_server(ServerKind.SCHEMA_REGISTRY)
        assert server is not None
        head = HEAD.format(url=server.url, concurrency=CONCURRENCY)
        blocks = (BLOCK.format(number=number) for number in range(SUBJECTS))
        Path("main.kf.hcl").write_text(head + "".join(blocks), "utf-8")
        for number in range(SUBJECTS):
            Path(f"schema-{number}.avsc").write_text(make_schema(number), "utf-8")
        apply_changes(open_workspace(), approve=lambda _: True)
        with planning() as plan:
            ours, bare = seconds((plan, lambda: read_bare(server.url)))
    print(f"{SUBJECTS} subjects of a real registry, medians of {ROUNDS} runs")
    what = f"bare requests ({bare * 1000:.0f} ms, {CONCURRENCY} at a time)"
    print(f"{'plan: read, diff, render':<28} {ours * 1000:7.0f} ms = {ours / bare:5.2f} x {what}")


if __name__ == "__main__":
    main()
