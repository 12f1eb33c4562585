"""A plan of many connectors that changes nothing, beside the requests that it cannot do without:
`python -m tests.bench.connectors [URL USER]` (password in PROOF_PASSWORD).

Without a URL the workers are simulated, in a process of their own behind real HTTP. With the URL of
real workers, the connectors are created there, stopped, and deleted at the end.
"""

from __future__ import annotations

import http.client
import io
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kafkaform.audit.index import LogIndex
from kafkaform.cli.app import run_command_line
from kafkaform.core.progress import ignore_event
from kafkaform.plan.model import Options
from kafkaform.render.plan_text import render_plan_text
from kafkaform.workflow.planning import plan_workspace
from kafkaform.workflow.workspace import Workspace, open_sessions, open_workspace

from ..kit.connect.folder import answer, connector, make_workers
from ..kit.http.server import serving

CONNECTORS, ROUNDS = 200, 7
NAMES = [f"bench-{number:03}" for number in range(CONNECTORS)]
CLASS = "FileStreamSource"
PATHS = (
    "/",
    "/connector-plugins?connectorsOnly=false",
    "/connectors?expand=info&expand=status",
    "/connectors",
    f"/connector-plugins/{CLASS}/config",
)
"""What a plan has to know: who answers, what is installed, and every connector."""


def serve(pipe: Connection) -> None:
    """Simulated workers, until the other end says something."""
    with serving(partial(answer, make_workers())) as served:
        pipe.send(served.url)
        pipe.recv()


@contextmanager
def workers(url: str) -> Iterator[str]:
    """The URL of workers that run none of our connectors before and after."""
    if url:
        try:
            yield url
        finally:
            for name in NAMES:
                ask(url, "DELETE", f"/connectors/{name}")
        return
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    process.start()
    yield here.recv()
    here.send("end")
    process.join()


def ask(url: str, method: str, path: str, body: Any = None) -> int:
    """The status of one request on a connection of its own."""
    line = http.client.HTTPConnection(urlsplit(url).netloc)
    line.request(method, path, None if body is None else json.dumps(body), make_headers())
    response = line.getresponse()
    response.read()
    line.close()
    return response.status


def make_headers() -> dict[str, str]:
    user, password = (os.environ.get(name, "") for name in ("PROOF_USER", "PROOF_PASSWORD"))
    login = {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}
    return {"Content-Type": "application/json", **(login if user else {})}


def send_bare(url: str) -> None:
    """The requests alone, on one connection; the answers are parsed and thrown away."""
    line = http.client.HTTPConnection(urlsplit(url).netloc)
    for path in PATHS:
        line.request("GET", path, headers=make_headers())
        json.loads(line.getresponse().read())
    line.close()


def plan(space: Workspace, index: LogIndex) -> None:
    """From the first request to the last line."""
    state = space.backend.load().state
    assert state is not None
    with open_sessions(space, state, index) as sessions:
        made = plan_workspace(space, sessions, state, index, Options(), ignore_event)
    assert made.unchanged == CONNECTORS and not made.effective  # or less was measured
    render_plan_text(made)


def measure(*tasks: Callable[[], None]) -> list[float]:
    """The median seconds of each task. They take turns, so that a busy moment strikes all."""
    times: list[list[float]] = [[] for _ in tasks]
    for number in range(ROUNDS + 1):
        for task, spent in zip(tasks, times, strict=True):
            begun = time.perf_counter()
            task()
            if number:  # the first round fills caches
                spent.append(time.perf_counter() - begun)
    return [statistics.median(spent) for spent in times]


def main(url: str = "", user: str = "") -> None:
    os.environ["PROOF_USER"] = user
    with workers(url) as address, tempfile.TemporaryDirectory() as folder, chdir(folder):
        blocks = (
            connector(name, "lifecycle {\n    adopt = true\n  }", state='"stopped"')
            for name in NAMES
        )
        login = f'username = "{user}"\n  password = secret_env("PROOF_PASSWORD")' if user else ""
        head = f'provider "kafka_connect" {{\n  url = "{address}"\n  {login}\n}}\n'
        Path("main.kf.hcl").write_text(head + "\n".join(blocks), encoding="utf-8")
        create_quietly()
        space = open_workspace()
        ours, bare = measure(partial(plan, space, LogIndex()), partial(send_bare, address))
    whose = "real" if url else "simulated"
    print(f"{CONNECTORS} connectors of {whose} workers, medians of {ROUNDS} runs")
    ratio = f"{ours / bare:.2f}"
    print(
        f"{'plan without changes':<28} {ours * 1000:7.0f} ms = {ratio:>5} x bare requests", end=""
    )
    print(f" ({bare * 1000:.0f} ms)")


def create_quietly() -> None:
    """Apply the configuration."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = run_command_line(("apply", "-auto-approve"))
    assert code == 0, said.getvalue()


if __name__ == "__main__":
    main(*sys.argv[1:3])
