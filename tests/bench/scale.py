"""A plan that has nothing to do, over a large cluster whose every object is in the state: its
stages apart, beside the bare sweep of the same cluster (`limit.py`).

`python -m tests.bench.scale [TOPICS ACLS]`. The plan runs in a process of its own, whose peak
memory is printed.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

from kafkaform.audit.index import list_pending
from kafkaform.cli import GARBAGE
from kafkaform.plan.build import PlanHeader, make_plan
from kafkaform.plan.model import Options
from kafkaform.plan.observe import Look, read_world
from kafkaform.render.plan_text import render_plan_text
from kafkaform.version import VERSION
from kafkaform.workflow.workspace import make_first_state, open_sessions, open_workspace, read_log

from ..kit.commands.process_folder import PROVIDER
from ..kit.kafka.clusters import own_sandbox
from .limit import Bare

TOPICS, ACLS, ROUNDS = 10_000, 50_000, 3
STAGES = ("parse", "read", "diff", "render")

RESOURCES = """
resource "kafka_topic" "all" {
  for_each   = local.topics
  name       = each.key
  partitions = 1
  config     = { "retention.ms" = each.value }
}
"""
RULES = """
resource "kafka_acl" "all" {
  for_each                     = local.acls
  resource_type                = "Topic"
  resource_name                = each.value[0]
  resource_pattern_type_filter = "Literal"
  acl_principal                = each.value[1]
  acl_host                     = "*"
  acl_operation                = each.value[2]
  acl_permission_type          = "Allow"
}
"""
OPERATIONS = ("Read", "Write", "Describe", "Alter", "Delete")


def configuration(topics: int, acls: int) -> dict[str, str]:
    """File name -> text: two maps, and a block over each."""
    retention = "".join(
        f'    "scale-{n:05}" = "{(n % 7 + 1) * 86_400_000}"\n' for n in range(topics)
    )
    files = {
        "topics.kf.hcl": f"locals {{\n  topics = {{\n{retention}  }}\n}}\n",
        "main.kf.hcl": RESOURCES + (RULES if acls else ""),
    }
    if acls:
        rules = "".join(
            f'    "r{n}" = ["scale-{n // 5 % topics:05}", "User:u{n // 5 // topics}", '
            f'"{OPERATIONS[n % 5]}"]\n'
            for n in range(acls)
        )
        files["acls.kf.hcl"] = f"locals {{\n  acls = {{\n{rules}  }}\n}}\n"
    return files


@contextmanager
def applied(topics: int, acls: int) -> Iterator[tuple[str, Any]]:
    """A folder with all of it applied, and its broker."""
    with own_sandbox(f"scale-{os.getpid()}") as box, tempfile.TemporaryDirectory() as folder:
        os.environ["PROOF_PASSWORD"] = box.admin_password
        head = PROVIDER.format(bootstrap=box.bootstrap, timeout="120s")
        for name, text in configuration(topics, acls).items():
            Path(folder, name).write_text(text, "utf-8")
        Path(folder, "provider.kf.hcl").write_text(head, "utf-8")
        command = [sys.executable, "-m", "kafkaform", "apply", "--auto-approve"]
        begun = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=1800, check=False
        )
        if done.returncode:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
        print(f"applied in {time.perf_counter() - begun:.0f} s")
        yield folder, box


def stages(folder: str) -> dict[str, float]:
    """Seconds of each stage of one plan."""
    times: dict[str, float] = {}

    def timed(name: str, task: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        result = task()
        times[name] = time.perf_counter() - begun
        return result

    with chdir(folder):
        space = timed("parse", lambda: open_workspace())
        begun = time.perf_counter()
        state = space.backend.load().state or make_first_state(space.sink)
        found = read_log(space.sink, state)
        times["state and log"] = time.perf_counter() - begun
        with open_sessions(space, state, found) as sessions:
            header = PlanHeader("", VERSION)
            world = timed("read", lambda: read_world(sessions, space.desired, state, space.clock))
            plan = timed(
                "diff",
                lambda: make_plan(
                    space.desired,
                    world,
                    state,
                    list_pending(found),
                    {i: p for i, p in space.providers.items() if i in world},
                    Look(sessions, world),
                    Options(),
                    header,
                ),
            )
            assert not plan.effective, "the plan has changes, so something else was measured"
            timed("render", lambda: render_plan_text(plan))
    return times


def child(folder: str) -> None:
    """The process whose memory is measured."""
    gc.set_threshold(GARBAGE)  # as the command line does
    times = stages(folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"times": times, "peak": peak}))


def main(topics: int = TOPICS, acls: int = ACLS) -> None:
    print(f"{topics} topics and {acls} ACLs, all in the state; best of {ROUNDS} rounds")
    with applied(topics, acls) as (folder, box):
        bare = Bare(box.bootstrap, box.admin_password)
        sweeps, plans = [], []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            bare.sweep(acls=bool(acls))
            sweeps.append(time.perf_counter() - begun)
            command = [sys.executable, "-m", "tests.bench.scale", "--child", folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            plans.append(json.loads(done.stdout))
        bare.close()
    best = min(plans, key=lambda one: sum(one["times"][stage] for stage in STAGES[1:]))
    sweep = min(sweeps)
    for name, took in {**best["times"]}.items():
        print(f"  {name:<16} {took * 1000:8.0f} ms = {took / sweep:5.2f} x the bare sweep")
    whole = sum(best["times"][stage] for stage in STAGES[1:])
    print(f"  read+diff+render {whole * 1000:8.0f} ms = {whole / sweep:5.2f} x the bare sweep")
    print(f"  the bare sweep   {sweep * 1000:8.0f} ms; peak memory {best['peak']} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        main(*map(int, sys.argv[1:3]))
