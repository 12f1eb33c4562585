"""`make fleet-demo`: the story of a small fleet on three real brokers, in a few minutes.

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
from pathlib import Path

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
INCOMPLETE, BLOCKED = 5, 8
"""Exit codes: not all clusters are known, or not all was applied; a guard, or --fail-on."""

OTHERS = ("KAFKAFORM_STATE", "KAFKAFORM_FLEET_ROOT", "KAFKAFORM_FLEET_MASTER", "KF_VAR_")
"""How variables begin that would lead to clusters and states that are none of the demo's."""
PASSWORDS = ("BILLING_PASSWORD", "STORE_PASSWORD")

CLUSTERS = {"eu": (), "us": (), "staging": ("--tls",)}
"""Each with what its sandbox is started with."""

WAITS = {
    ("sandbox", "up"): "Starts a broker. The first time, Kafka's jars are downloaded.",
    (
        "fleet",
        "snapshot",
    ): "Reads four clusters; lab does not answer within its timeout of 2 s.",
    (
        "fleet",
        "run",
    ): "Computes the tables, which takes longest: so small a fleet needs no Spark and no Java.",
}
"""What the commands do that take a while."""

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


class Demo:
    """folder: where the configurations are; env: what the commands see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        mine = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
        self.env = mine | {name: secrets.token_urlsafe(12) for name in PASSWORDS}
        self.clusters: dict[str, Cluster] = {}

    def run(self, *arguments: str, within: str = ".", expect: int = 0) -> None:
        """Type a command, show what it prints, and insist on its exit code. within: the folder."""
        place = "" if within == "." else f"{within}/"
        say(f"\n{BOLD}{place}$ kafkaform {' '.join(map(_quoted, arguments))}{RESET}")
        if wait := WAITS.get(arguments[:2]):
            say(f"{DIM}{wait}{RESET}")
        started = time.monotonic()
        code = subprocess.run(
            [sys.executable, "-m", "kafkaform", *arguments],
            cwd=self.folder / within,
            env=self.env,
            check=False,
        ).returncode
        say(f"{DIM}[{time.monotonic() - started:.0f} s, exit code {code}]{RESET}")
        if code != expect:
            raise SystemExit(f"the demo expected exit code {expect} and got {code}")

    def start(self, name: str) -> None:
        """Start a broker and tell the commands to come where it is."""
        self.run("sandbox", "up", "--name", f"{TOUR}-{name}", *CLUSTERS[name])
        shown = subprocess.run(
            [sys.executable, "-m", "kafkaform", "sandbox", "env", "--name", f"{TOUR}-{name}"]
            + ["--format", "shell"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        lines = (line.removeprefix("export ").partition("=") for line in shown.splitlines())
        found = {key: value.strip("'\"") for key, _, value in lines}
        bootstrap = found["KAFKAFORM_SANDBOX_BOOTSTRAP"]
        password = found["KAFKAFORM_SANDBOX_PASSWORD"]
        self.env |= {f"KF_VAR_{name}": bootstrap, f"KAFKA_{name.upper()}_PASSWORD": password}
        self.clusters[name] = Cluster(name, bootstrap, password)

    def stop(self) -> None:
        """End what was started; what never was is not missed."""
        for name in CLUSTERS:
            command = [sys.executable, "-m", "kafkaform", "sandbox", "down"]
            subprocess.run([*command, "--name", f"{TOUR}-{name}"], capture_output=True, check=False)


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def step(number: int, text: str) -> None:
    say(f"\n{BOLD}{number}. {text}{RESET}\n{DIM}{'─' * 80}{RESET}")


def _quoted(argument: str) -> str:
    return f'"{argument}"' if " " in argument else argument


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


def beginning(demo: Demo) -> None:
    step(1, "Three real Kafka clusters on this computer")
    for name in CLUSTERS:
        demo.start(name)
    demo.env["KF_VAR_bootstrap"] = demo.clusters["staging"].bootstrap

    step(2, "Two configurations are applied: the shop on eu and us, and staging")
    demo.run("apply", "-auto-approve", "--concise", within="shop")
    demo.run("apply", "-auto-approve", "--concise", within="staging")

    step(3, "The fleet is read for the first time; the cluster lab of fleet.hcl does not answer")
    produce(demo.clusters["eu"], "orders.created", 300)
    demo.run("fleet", "snapshot", expect=INCOMPLETE)


def change(demo: Demo) -> None:
    step(4, "A change as it should be: by an apply. Meanwhile clients write and read")
    longer(demo)
    demo.run("apply", "-auto-approve", "--concise", within="shop")
    produce(demo.clusters["eu"], "orders.created", 200)
    consume(demo.clusters["eu"], "orders.created", "billing", 500)

    step(5, "The first build: what has landed becomes tables")
    demo.run("fleet", "snapshot", expect=INCOMPLETE)
    demo.run("fleet", "run", expect=INCOMPLETE)


def mishaps(demo: Demo) -> None:
    step(6, "Somebody loses a file: a guard refuses to delete everything")
    topics = demo.folder / "staging/topics.kf.hcl"
    lost = topics.rename(topics.with_suffix(".lost"))
    demo.run("apply", "-auto-approve", "--concise", within="staging", expect=BLOCKED)

    step(7, "It is back, with a topic and a certificate that the broker cannot load: half fails")
    lost.rename(topics)
    certified(demo)
    demo.run("apply", "-auto-approve", "--concise", within="staging", expect=INCOMPLETE)

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
    demo.run("fleet", "snapshot", expect=INCOMPLETE)


def answers(demo: Demo) -> None:
    step(9, "The second build, from new files alone. --fail-on ends it with 8, for an alert")
    demo.run("fleet", "run", "--fail-on", "out_of_band", expect=BLOCKED)

    step(10, "Answers, without Spark: which topics are not as they are declared?")
    demo.run("fleet", "query", DIFFERING)

    step(11, "Who changed the retention? Nobody who used kafkaform")
    about = ("--key", "topic/payments.settled", "--cluster", "eu")
    demo.run("fleet", "history", *about)

    step(12, "Who can read payments, on every cluster?")
    demo.run("fleet", "who-can", "READ", "topic/payments.settled", expect=INCOMPLETE)

    step(13, "What the fleet's tables know, and what they do not")
    demo.run("fleet", "status", expect=INCOMPLETE)


def written(demo: Demo) -> None:
    step(14, "The report: one page that needs nothing else, and tables beside it")
    REPORT.mkdir(exist_ok=True)
    (REPORT / ".gitignore").write_text("*\n", encoding="utf-8")
    demo.run("fleet", "report", "--out", str(REPORT / "fleet.html"), "--csv")
    demo.run("fleet", "report", "--out", str(REPORT / "fleet.md"))


def told(demo: Demo) -> None:
    for part in (beginning, change, mishaps, answers, written):
        part(demo)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="kafkaform-fleet-demo-"))
    copied(folder)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    demo = Demo(folder)
    started = time.monotonic()
    try:
        told(demo)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
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
