"""A repository of many folders on one cluster, beside one folder with the same topics and beside
the bare sweep of the cluster (`limit.py`); all topics are in the states, and nothing changes.

`states in a store` is the same repository, whose states are in an object store on this computer
that answers each request after 20 ms.

`python -m tests.bench.folders [FOLDERS TOPICS [ROUNDS]]`: by default 64 folders with 880 topics,
and 500 with 10,000.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from msgspec import Struct

from kafkaform.plan.model import Options
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.repository.folders import open_repository
from kafkaform.workflow.workspace import open_workspace

from ..kit.commands.process_folder import PROVIDER
from ..kit.kafka.clusters import own_sandbox
from ..kit.kafka.truth import observe
from ..kit.proxy.proxy import Proxy, proxying
from ..kit.stores.s3 import BUCKET, ENVIRONMENT, Bucket, serving
from .limit import Bare
from .startup import keeping_bytecode

ROUNDS = 3
FILE = """repository {{
  name = "bench"
}}

cluster "prod" {{
  provider          = "kafka"
  bootstrap_servers = ["{bootstrap}"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("PROOF_PASSWORD")
  operation_timeout = "120s"
}}

folders "teams/*" {{
  state = {state}
  owner = folder.name
  uses  = {{ kafka = cluster.prod }}
}}
"""
STORE_SECONDS = 0.02
"""How long the store thinks about each request."""
# The kernel counts the memory of the process that started this one, unless the process asks itself.
PROGRAM = """
import sys
from kafkaform.cli.app import run_command_line
code = run_command_line(sys.argv[1:])
print(open("/proc/self/status").read(), file=sys.stderr)
sys.exit(code)
"""
CONFIG = {"retention.ms": "86400000"}


class Run(Struct, frozen=True):
    """One command."""

    seconds: float
    worked: float
    """Seconds of its own work, without what it waits for: other work on the machine hardly changes
    them."""
    memory: int
    """Peak, MB."""
    requests: Counter[str]


def block(name: str) -> str:
    return (
        f'resource "kafka_topic" "{name.replace(".", "_")}" {{\n  name       = "{name}"\n'
        '  partitions = 1\n  config     = { "retention.ms" = "86400000" }\n}\n'
    )


def write(top: Path, folders: int, topics: int, bootstrap: str, store: str) -> Sequence[str]:
    """The repository, `alone` beside it with the same blocks, and `stored`, whose states are in the
    store at this address; the names of the topics."""
    teams = [f"t{number:03}" for number in range(folders)]
    names = [f"{teams[number % folders]}.topic-{number:05}" for number in range(topics)]
    repository, alone = top / "repository", top / "alone"
    alone.mkdir()
    for team in teams:
        folder = repository / "teams" / team
        folder.mkdir(parents=True)
        text = "\n".join(block(name) for name in names if name.startswith(f"{team}."))
        (folder / "main.kf.hcl").write_text(text)
        (alone / f"{team}.kf.hcl").write_text(text)
    shutil.copytree(repository, top / "stored")
    query = urlencode({"endpoint": store, "region": "us-east-1", "use_path_style": "true"})
    for name, state in (
        ("repository", "null"),
        ("stored", f'"s3://{BUCKET}/${{folder.path}}?{query}"'),
    ):
        text = FILE.format(bootstrap=bootstrap, state=state)
        (top / name / "kafkaform.hcl").write_text(text)
    provider = PROVIDER.format(bootstrap=bootstrap, timeout="120s")
    (alone / "provider.kf.hcl").write_text(provider)
    # One folder of the repository, as it would be without the repository file.
    bare = top / "bare"
    bare.mkdir()
    for part in (repository / "teams" / teams[0]).iterdir():
        (bare / part.name).write_bytes(part.read_bytes())
    (bare / "provider.kf.hcl").write_text(provider)
    return names


def adopt(top: Path) -> None:
    """Record the topics in the state of each folder."""
    repositories = [open_repository(top / name) for name in ("repository", "stored")]
    folders = (item.workspace for opened in repositories for item in opened.folders)
    alone = (open_workspace(top / name) for name in ("alone", "bare"))
    # An adoption sends nothing, so the shared look of plans is enough.
    for space in (*folders, *alone):
        assert space is not None, "each folder can be opened"
        apply_changes(space, options=Options(adopt=("*",)), approve=lambda plan: True, wait=False)
    for opened in repositories:
        opened.close()


def run(folder: Path, proxy: Proxy, *words: str) -> Run:
    """One command in a process of its own, which must find no changes."""
    proxy.take()
    command = [sys.executable, "-c", PROGRAM, "plan", "--quiet", *words]
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    taken, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    if not done.stdout.rstrip().endswith(("match the configuration.", "no changes.")):
        raise SystemExit(f"something else was measured: {done.stdout[-500:]}")
    memory = int(done.stderr.split("VmHWM:")[1].split()[0]) // 1024
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(taken, worked, memory, proxy.take())


@contextmanager
def made(folders: int, topics: int) -> Iterator[tuple[Path, Proxy, Bare]]:
    """All of it, recorded, on a broker of its own behind a counter of requests."""
    bucket = Bucket()
    with own_sandbox(f"folders-{os.getpid()}") as box, tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PROOF_PASSWORD": box.admin_password, **ENVIRONMENT}
        with proxying(box.brokers[0].ports.client) as proxy, serving(bucket) as store:
            top = Path(folder)
            names = write(top, folders, topics, proxy.bootstrap, store)
            for start in range(0, topics, 500):
                observe(box).make(dict.fromkeys(names[start : start + 500], (1, CONFIG)))
            begun = time.perf_counter()
            adopt(top)
            print(f"recorded in {time.perf_counter() - begun:.0f} s")
            bucket.always.append(lambda _, __: time.sleep(STORE_SECONDS))
            bare = Bare(box.bootstrap, box.admin_password)
            yield top, proxy, bare
            bare.close()


def commit(repository: Path) -> None:
    """The repository as git knows it, with one folder that changed since."""
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    with (repository / "teams/t000/main.kf.hcl").open("a") as file:
        file.write("# changed\n")


def median(runs: Sequence[Run]) -> float:
    return statistics.median(item.seconds for item in runs)


def median_work(runs: Sequence[Run]) -> float:
    return statistics.median(item.worked for item in runs)


def measure(folders: int, topics: int, rounds: int = ROUNDS) -> None:
    """All forms take turns, so that whatever else the machine does meets all of them."""
    print(f"{folders} folders with {topics:,} topics; medians of {rounds} rounds")
    with keeping_bytecode(), made(folders, topics) as (top, proxy, bare):
        repository = top / "repository"
        commit(repository)
        forms = {
            "one folder": (top / "alone", ()),
            "plan --all": (repository, ("--all",)),
            "states in a store": (top / "stored", ("--all",)),
            "--changed-since": (repository, ("--changed-since=HEAD",)),
            "a folder below the file": (repository / "teams/t000", ()),
            "the same without a file": (top / "bare", ()),
        }
        runs: dict[str, list[Run]] = {name: [] for name in forms}
        sweeps = []
        for _ in range(rounds):
            for name, (folder, words) in forms.items():
                runs[name].append(run(folder, proxy, *words))
            begun = time.perf_counter()
            bare.sweep(acls=False)
            sweeps.append(time.perf_counter() - begun)
        show(runs, statistics.median(sweeps))


def show(runs: Mapping[str, Sequence[Run]], sweep: float) -> None:
    one = runs["one folder"]
    print(f"  {'the bare sweep':<26} {sweep * 1000:8.0f} ms")
    for name, items in runs.items():
        last = items[-1]
        logins, total = last.requests["SaslAuthenticate"], sum(last.requests.values())
        print(
            f"  {name:<26} {median(items) * 1000:8.0f} ms = {median(items) / median(one):5.2f} x "
            f"one folder, {median(items) / sweep:5.2f} x the sweep; own work "
            f"{median_work(items) * 1000:.0f} ms = {median_work(items) / median_work(one):.2f} x; "
            f"{last.memory} MB; {total} requests = "
            f"{total / sum(one[-1].requests.values()):.2f} x, {logins} logins"
        )
    below, without = runs["a folder below the file"], runs["the same without a file"]
    ratio, work = median(below) / median(without), median_work(below) / median_work(without)
    print(f"  a folder below the file takes {ratio:.2f} x without one, own work {work:.2f} x")


def main(words: Sequence[str]) -> None:
    """words: the numbers of folders, topics and rounds; both sizes by default."""
    for size in [tuple(map(int, words))] if words else [(64, 880), (500, 10_000)]:
        measure(*size)


if __name__ == "__main__":
    main(sys.argv[1:])
