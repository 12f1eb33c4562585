"""`make fleet-demo`: the story of a small fleet on three real brokers, in a minute or two.

Runs the same commands that a user types, in a temporary folder with sandboxes of its own, and
removes both at the end. What stays is the report, in `fleet-demo-report`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from outside import Cluster, alter, consume, create, delete, open_to_everybody, produce

HERE = Path(__file__).resolve().parent
REPORT = Path.cwd() / "fleet-demo-report"
TOUR = f"demo-{os.getpid()}"
BOLD, DIM, RESET = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")
FILES = (
    "fleet.hcl",
    "shop/shop.kf.hcl",
    "shop/region/region.kf.hcl",
    "staging/provider.kf.hcl",
    "staging/topics.kf.hcl",
)
APPLY = ("apply", "-auto-approve", "--concise")
INCOMPLETE, BLOCKED = 5, 8
"""Exit codes: not all clusters are known, or not all was applied; a guard, or --fail-on."""

OTHERS = ("KAFKAFORM_STATE", "KAFKAFORM_FLEET_ROOT", "KAFKAFORM_FLEET_MASTER", "KF_VAR_")
"""How variables begin that would lead to clusters and states that are none of the demo's."""
PASSWORDS = ("BILLING_PASSWORD", "STORE_PASSWORD")

CLUSTERS = {"eu": (), "us": (), "staging": ("--tls",)}
"""Each with what its sandbox is started with."""

WAITS = {
    "sandbox up": "Three brokers start side by side. The first time, Kafka's jars are downloaded.",
    "apply": "Both configurations are applied side by side.",
    "fleet snapshot": "Reads four clusters; lab does not answer within its timeout of 2 s.",
    "fleet run": "Computes the tables, which takes longest. So small a fleet needs no Spark.",
    "fleet query": "Four questions are answered side by side.",
    "fleet report": "Both reports are written side by side.",
}
"""What commands do that take a while."""
PATIENCE_SECONDS = 60
"""How long a command may take to end after a signal: an apply first finishes what it has sent."""

CERTIFICATE = """
resource "kafka_topic" "replay" {
  name       = "orders.replay"
  partitions = 1
}

# Nobody has copied the file to the broker.
resource "kafka_broker_config" "certificate" {
  broker_id   = 1
  config_mode = "additive"

  config = {
    "listener.name.tls.ssl.keystore.type"     = "PKCS12"
    "listener.name.tls.ssl.keystore.location" = "/etc/kafka/next.p12"
  }

  secret_config = {
    "listener.name.tls.ssl.keystore.password" = secret_env("STORE_PASSWORD")
  }
  secret_config_version = "2026"
}
"""

DIFFERING = (
    "select cluster, key, path, drift_class, desired, live from drift "
    "where drift_class <> 'in_sync' and kind = 'kafka_topic' order by cluster, key, path"
)


@dataclass(frozen=True)
class Command:
    """A command that runs. output: what it prints, to be shown later."""

    arguments: tuple[str, ...]
    within: str
    expect: int
    output: Path
    process: subprocess.Popen[bytes]
    started: float


class Demo:
    """folder: where the configurations are; env: what the commands see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        mine = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
        self.env = mine | {name: secrets.token_urlsafe(12) for name in PASSWORDS}
        if BOLD:
            self.env |= {"FORCE_COLOR": "1", "COLUMNS": str(shutil.get_terminal_size().columns)}
        self.clusters: dict[str, Cluster] = {}
        self.processes: list[subprocess.Popen[bytes]] = []

    def begin(self, *arguments: str, within: str = ".", expect: int = 0) -> Command:
        """Start a command; what it prints is kept for `show`. within: the folder."""
        output = self.folder / f"output-{len(self.processes)}"
        with output.open("wb") as file:
            process = self.open(*arguments, within=within, output=file)
        return Command(arguments, within, expect, output, process, time.monotonic())

    def show(self, command: Command) -> None:
        """Wait for a command, show it with what it has printed, and insist on its exit code."""
        say_command(command.arguments, command.within)
        code = command.process.wait()
        say(command.output.read_text("utf-8", "replace").rstrip("\n"))
        check(code, command.expect, command.started)

    def run(self, *arguments: str, within: str = ".", expect: int = 0, wait: str = "") -> None:
        """Type a command and insist on its exit code. wait: what it does, if that takes long."""
        say_command(arguments, within)
        if wait:
            say(f"{DIM}{wait}{RESET}")
        started = time.monotonic()
        check(self.open(*arguments, within=within).wait(), expect, started)

    def open(
        self, *arguments: str, within: str = ".", output: IO[bytes] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a command. output: where it prints; None: to the terminal."""
        process = subprocess.Popen(
            [sys.executable, "-m", "kafkaform", *arguments],
            cwd=self.folder / within,
            env=self.env,
            stdout=output,
            stderr=output and subprocess.STDOUT,
            # Ctrl-C reaches this process alone, which then ends the others in their order.
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def start_clusters(self) -> None:
        """Start the brokers and tell the commands to come where they are."""
        say(f"{DIM}{WAITS['sandbox up']}{RESET}")
        names = {name: ("--name", f"{TOUR}-{name}") for name in CLUSTERS}
        starts = [self.begin("sandbox", "up", *names[name], *CLUSTERS[name]) for name in CLUSTERS]
        for command in starts:
            self.show(command)
        words = ("sandbox", "env", "--format", "shell")
        exports = {name: self.begin(*words, *names[name]) for name in CLUSTERS}
        for name, command in exports.items():
            if command.process.wait():
                raise SystemExit(command.output.read_text("utf-8"))
            text = command.output.read_text("utf-8")
            lines = (line.removeprefix("export ").partition("=") for line in text.splitlines())
            values = {key: value.strip("'\"") for key, _, value in lines}
            bootstrap = values["KAFKAFORM_SANDBOX_BOOTSTRAP"]
            password = values["KAFKAFORM_SANDBOX_PASSWORD"]
            self.env |= {f"KF_VAR_{name}": bootstrap, f"KAFKA_{name.upper()}_PASSWORD": password}
            self.clusters[name] = Cluster(name, bootstrap, password)
        self.env["KF_VAR_bootstrap"] = self.clusters["staging"].bootstrap

    def stop(self) -> None:
        """End commands that still run, then the brokers; what never was started is not missed."""
        running = [process for process in self.processes if process.poll() is None]
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        downs = [self.begin("sandbox", "down", "--name", f"{TOUR}-{name}") for name in CLUSTERS]
        for command in downs:
            command.process.wait()


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def step(number: int, text: str) -> None:
    say(f"\n{BOLD}{number}. {text}{RESET}\n{DIM}{'─' * 80}{RESET}")


def say_command(arguments: tuple[str, ...], within: str) -> None:
    place = "" if within == "." else f"{within}/"
    words = (f'"{argument}"' if " " in argument else argument for argument in arguments)
    say(f"\n{BOLD}{place}$ kafkaform {' '.join(words)}{RESET}")


def check(code: int, expect: int, started: float) -> None:
    """Insist on an exit code."""
    say(f"{DIM}[{time.monotonic() - started:.0f} s, exit code {code}]{RESET}")
    if code != expect:
        raise SystemExit(f"the demo expected exit code {expect} and got {code}")


def copied(folder: Path) -> None:
    for path in FILES:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / path, folder / path)


def longer(demo: Demo) -> None:
    """Records are kept for longer in Europe."""
    shop = demo.folder / "shop/shop.kf.hcl"
    shop.write_text(shop.read_text("utf-8").replace('"7d"', '"14d"', 1), "utf-8")


def certified(demo: Demo) -> None:
    topics = demo.folder / "staging/topics.kf.hcl"
    topics.write_text(topics.read_text("utf-8") + CERTIFICATE, "utf-8")


def begin_story(demo: Demo) -> None:
    step(1, "Three real Kafka clusters on this computer")
    demo.start_clusters()

    step(2, "Two configurations are applied: the shop on eu and us, and staging")
    say(f"{DIM}{WAITS['apply']}{RESET}")
    for command in [demo.begin(*APPLY, within=folder) for folder in ("shop", "staging")]:
        demo.show(command)

    step(3, "The fleet is read for the first time; the cluster lab of fleet.hcl does not answer")
    produce(demo.clusters["eu"], "orders.created", 300)
    take_snapshot(demo)


def change(demo: Demo) -> None:
    step(4, "A change as it should be: by an apply. Meanwhile clients write and read")
    longer(demo)
    demo.run(*APPLY, within="shop")
    say("  eu: 200 records are written to orders.created, and the group billing reads all")
    produce(demo.clusters["eu"], "orders.created", 200)
    consume(demo.clusters["eu"], "orders.created", "billing", 500)

    step(5, "The first build: what has landed becomes tables")
    take_snapshot(demo)
    demo.run("fleet", "run", expect=INCOMPLETE, wait=WAITS["fleet run"])


def mishaps(demo: Demo) -> None:
    step(6, "Somebody loses a file: a guard refuses to delete everything")
    topics = demo.folder / "staging/topics.kf.hcl"
    lost = topics.rename(topics.with_suffix(".lost"))
    demo.run(*APPLY, within="staging", expect=BLOCKED)

    step(7, "It is back, with a topic and a certificate that the broker cannot load: half fails")
    lost.rename(topics)
    certified(demo)
    demo.run(*APPLY, within="staging", expect=INCOMPLETE)

    step(8, "And behind our back, with other tools")
    eu, us = demo.clusters["eu"], demo.clusters["us"]
    say("  eu: payments.settled keeps its records for a minute instead of 14 days")
    alter(eu, "payments.settled", "retention.ms", "60000")
    say("  eu: everybody may read every topic")
    open_to_everybody(eu)
    say("  us: a topic TMP_export appears")
    create(us, "TMP_export", 2)
    say("  us: orders.shipped is deleted")
    delete(us, "orders.shipped")
    take_snapshot(demo)


def take_snapshot(demo: Demo) -> None:
    demo.run("fleet", "snapshot", expect=INCOMPLETE, wait=WAITS["fleet snapshot"])


def answers(demo: Demo) -> None:
    step(9, "The second build, from new files alone. --fail-on ends it with 8, for an alert")
    words = ("fleet", "run", "--fail-on", "out_of_band")
    demo.run(*words, expect=BLOCKED, wait=WAITS["fleet run"])

    about = ("--key", "topic/payments.settled", "--cluster", "eu")
    step(10, "Answers, without Spark: which topics are not as they are declared?")
    say(f"{DIM}{WAITS['fleet query']}{RESET}")
    differing, changed, readers, status = (
        demo.begin("fleet", "query", DIFFERING),
        demo.begin("fleet", "history", *about),
        demo.begin("fleet", "who-can", "READ", "topic/payments.settled", expect=INCOMPLETE),
        demo.begin("fleet", "status", expect=INCOMPLETE),
    )
    demo.show(differing)

    step(11, "Who changed the retention? Nobody who used kafkaform")
    demo.show(changed)

    step(12, "Who can read payments, on every cluster?")
    demo.show(readers)

    step(13, "What the fleet's tables know, and what they do not")
    demo.show(status)


def written(demo: Demo) -> None:
    step(14, "The report: one page that needs nothing else, and tables beside it")
    say(f"{DIM}{WAITS['fleet report']}{RESET}")
    REPORT.mkdir(exist_ok=True)
    (REPORT / ".gitignore").write_text("*\n", encoding="utf-8")
    page = demo.begin("fleet", "report", "--out", str(REPORT / "fleet.html"), "--csv")
    summary = demo.begin("fleet", "report", "--out", str(REPORT / "fleet.md"))
    demo.show(page)
    demo.show(summary)


def told(demo: Demo) -> None:
    for part in (begin_story, change, mishaps, answers, written):
        part(demo)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="kafkaform-fleet-demo-"))
    copied(folder)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda which, _: sys.exit(128 + which))
    demo = Demo(folder)
    started = time.monotonic()
    try:
        told(demo)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        # A second Ctrl-C must not leave brokers behind.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        # Nobody may be there to read it, after SIGHUP or behind a pipe.
        with suppress(OSError):
            say(f"\n{DIM}Stopping the brokers …{RESET}")
        demo.stop()
        shutil.rmtree(folder)
    say(f"\n{BOLD}That was a fleet, in {time.monotonic() - started:.0f} seconds.{RESET} Next:")
    say(f"  {(REPORT / 'fleet.html').as_uri()}")
    say("      # the report, for a browser: what is not known, what differs, who did it, …")
    say("  cat examples/fleet/fleet.hcl      # the clusters, states and rules you just saw")
    say("  cat docs/fleet/running.md         # for your own clusters")


if __name__ == "__main__":
    main()
