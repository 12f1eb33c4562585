"""What kafkaform adds to what cannot be avoided, as ratios measured in one run on one machine:
`python -m tests.bench [startup] [language] [planning] [scale] [folders] [audit]
[http] [editor] [permissions] [fleet]`.

Times differ from machine to machine, ratios hardly do; nothing here fails on either.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path

import hcl2  # type: ignore[import-untyped]

from kafkaform.audit.index import LogIndex
from kafkaform.core.progress import ignore_event
from kafkaform.core.resource import Depth
from kafkaform.plan.model import Options
from kafkaform.provider.contract import Session
from kafkaform.render.plan_text import render_plan_text
from kafkaform.state.model import State
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.planning import plan_workspace
from kafkaform.workflow.workspace import Workspace, open_sessions, open_workspace

from ..kit.commands.process_folder import PROVIDER
from ..kit.kafka.clusters import own_sandbox
from ..kit.kafka.truth import observe
from . import audit, editor, folders, http_providers, language, scale, startup

TOPICS, ROUNDS = 500, 5
KIND = "kafka_topic"


def block(number: int) -> str:
    """One topic as people write them, with another retention than the live one has."""
    return f"""
resource "kafka_topic" "bench_{number}" {{
  name       = "bench.topic-{number:04}"
  partitions = 1

  config = {{
    "cleanup.policy" = "delete"
    "retention.ms"   = "{(number % 7 + 1) * 86_400_000}"
  }}

  owner = "team-{number % 10}"

  lifecycle {{
    adopt = true
  }}
}}
"""


def seconds(task: Callable[[], object]) -> float:
    """The median time of a task; a first run that fills caches is not counted."""
    task()
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        task()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


@contextmanager
def live() -> Iterator[tuple[Workspace, Session, State]]:
    """A folder that would change every one of the topics of a broker of its own."""
    with own_sandbox(f"bench-{os.getpid()}") as box, tempfile.TemporaryDirectory() as folder:
        os.environ["PROOF_PASSWORD"] = box.admin_password
        head = PROVIDER.format(bootstrap=box.bootstrap, timeout="60s")
        text = head + "".join(map(block, range(TOPICS)))
        Path(folder, "main.kf.hcl").write_text(text, "utf-8")
        config = {"cleanup.policy": "delete", "retention.ms": "1000000"}
        observe(box).make({f"bench.topic-{n:04}": (1, config) for n in range(TOPICS)})
        state = State("")
        with chdir(folder):
            space = open_workspace()
            with open_sessions(space, state, LogIndex()) as sessions:
                yield space, sessions["kafka"], state


def reading(space: Workspace) -> tuple[float, float]:
    """Our way from text to declared objects, and the parser's alone."""
    folder = space.configuration.folder
    text = (folder / "main.kf.hcl").read_text("utf-8")

    def ours() -> object:
        return read_configuration(folder, Inputs()).evaluate().desired

    return seconds(ours), seconds(lambda: hcl2.loads(text))


def planning(space: Workspace, session: Session, state: State) -> tuple[float, float]:
    """A plan from the first request to the last line, and the sweep of the same topics alone."""

    def ours() -> str:
        plan = plan_workspace(space, {"kafka": session}, state, LogIndex(), Options(), ignore_event)
        assert len(plan.effective) == TOPICS  # otherwise less was measured than is claimed
        return render_plan_text(plan)

    return seconds(ours), seconds(lambda: session.sweep(KIND, Depth.FULL))


def show(what: str, ours: float, base: float, of_what: str) -> None:
    ratio = f"{ours / base:.2f}"
    print(f"{what:<28} {ours * 1000:7.0f} ms = {ratio:>5} x {of_what} ({base * 1000:.0f} ms)")


def plan() -> None:
    print(f"{TOPICS} topics of a live cluster, medians of {ROUNDS} runs")
    with live() as (space, session, state):
        show("parse and evaluate", *reading(space), "hcl2.loads")
        show("plan: read, diff, render", *planning(space, session, state), "a bare sweep")


def permissions() -> None:
    """Loads Spark, which no other part needs."""
    from . import fleet_permissions

    fleet_permissions.main()


def fleet() -> None:
    from . import fleet as builds

    builds.main()


PARTS: Mapping[str, Callable[[], None]] = {
    "startup": startup.main,
    "language": language.main,
    "planning": plan,
    "scale": scale.main,
    "folders": lambda: folders.main([]),
    "audit": audit.main,
    "http": http_providers.main,
    "editor": editor.main,
    "permissions": permissions,
    "fleet": fleet,
}


def main() -> None:
    names = sys.argv[1:] or list(PARTS)
    unknown = set(names) - set(PARTS)
    if unknown:
        raise SystemExit(f"There are {', '.join(PARTS)}; not {', '.join(sorted(unknown))}.")
    for name in names:
        PARTS[name]()


if __name__ == "__main__":
    main()
