"""`make demo`: the whole story of topics and their users on a real broker, in about a minute.

Runs the same commands that a user types, in a temporary folder with a sandbox of its own, and
removes both at the end. Nothing else on the computer is touched.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

HERE = Path(__file__).resolve().parent
NAME = f"demo-{os.getpid()}"
BOLD, DIM, RESET = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")
DEADLINE_SECONDS = 20.0

LEGACY = """
resource "kafka_topic" "legacy" {
  name       = "shop.legacy"
  partitions = 2
}
"""

REMOVED = """
removed {
  from = kafka_topic.customers
  lifecycle {
    destroy = true
  }
}
"""

PEOPLE = """
resource "kafka_user_scram_credential" "billing" {
  username            = "billing"
  scram_mechanism     = "SCRAM-SHA-512"
  password            = secret_env("BILLING_PASSWORD")
  password_wo_version = 1
}

resource "kafka_access" "billing" {
  principal = "User:billing"
  role      = "consumer"
  topics    = [kafka_topic.events["payments"].name]
  group     = "billing"
}

resource "kafka_quota" "billing" {
  user   = "billing"
  config = { consumer_byte_rate = 5 * 1024 * 1024 }
}
"""

MAY_READ = ("--principal", "User:billing", "--operation", "Read", "--topic", "shop.payments")

BROKEN = """
resource "kafka_topic" "broken" {
  name      = "shop.broken"
  partition = 3
  config    = { "retention.ms" = retention("7 days") }
}
"""


class Demo:
    """folder: where the configuration is; env: what the commands see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = dict(os.environ)
        self.env.pop("KAFKAFORM_SANDBOX_PASSWORD", None)

    def run(self, *arguments: str, expect: int = 0, typed: str | None = None) -> None:
        """Type a command, show what it prints, and insist on its exit code. typed: what is typed
        while it runs."""
        say(f"{BOLD}$ kafkaform {' '.join(arguments)}{RESET}")
        code = subprocess.run(
            [sys.executable, "-m", "kafkaform", *arguments],
            cwd=self.folder,
            env=self.env,
            input=typed,
            text=True,
            check=False,
        ).returncode
        if code != expect:
            raise SystemExit(f"the demo expected exit code {expect} and got {code}")

    def connect(self) -> AdminClient:
        """Another client, for what happens behind kafkaform's back."""
        shown = subprocess.run(
            [sys.executable, "-m", "kafkaform", "sandbox", "env", "--name", NAME]
            + ["--format", "shell"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for line in shown.splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            self.env[name] = value.strip("'\"")
        self.env["KF_VAR_bootstrap"] = self.env["KAFKAFORM_SANDBOX_BOOTSTRAP"]
        return AdminClient(
            {
                "bootstrap.servers": self.env["KAFKAFORM_SANDBOX_BOOTSTRAP"],
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": self.env["KAFKAFORM_SANDBOX_PASSWORD"],
                "log_level": 0,
            }
        )

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def step(number: int, text: str) -> None:
    say(f"\n{BOLD}{number}. {text}{RESET}\n{DIM}{'─' * 72}{RESET}")


def alter(client: AdminClient, topic: str, key: str, value: str) -> None:
    """Change one config with another client and wait until reads show it."""
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in client.incremental_alter_configs([wanted]).values():
        future.result(timeout=10)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        read = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
        if all(future.result(timeout=10)[key].value == value for future in read.values()):
            return
        time.sleep(0.1)


def create(client: AdminClient, topic: str, partitions: int) -> None:
    """Create a topic with another client and wait until it is listed."""
    for future in client.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(timeout=10)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while topic not in client.list_topics(timeout=10).topics and time.monotonic() < deadline:
        time.sleep(0.1)


def story(demo: Demo) -> None:
    step(1, "A real Kafka broker on this computer")
    demo.run("sandbox", "up", "--name", NAME)
    client = demo.connect()

    step(2, "What would change? Nothing is sent")
    demo.run("plan")

    step(3, "Apply: the broker validates first, then each batch is recorded before it is sent")
    demo.run("apply", "-auto-approve")

    step(4, "Plan again: no changes")
    demo.run("plan", "-detailed-exitcode")

    step(5, "Somebody changes a topic behind our back: the plan shows the drift, apply repairs it")
    alter(client, "shop.payments", "retention.ms", "60000")
    demo.run("plan")
    demo.run("apply", "-auto-approve")

    step(6, "A live topic that is not ours is left alone, until we adopt it")
    create(client, "shop.legacy", 2)
    demo.write("legacy.kf.hcl", LEGACY)
    demo.run("plan", expect=8)
    demo.run("apply", "-auto-approve", "-adopt=kafka_topic.legacy")

    step(7, "A block is removed: the topic is protected, so nothing is deleted")
    (demo.folder / "customers.kf.hcl").unlink()
    demo.run("plan")

    step(8, "A reviewed `removed` block deletes it")
    demo.write("removed.kf.hcl", REMOVED)
    demo.run("apply", "-auto-approve")

    step(9, "A login, what it may do, and how much of the brokers it may use")
    demo.env["BILLING_PASSWORD"] = secrets.token_urlsafe(12)
    demo.write("people.kf.hcl", PEOPLE)
    demo.run("apply", "-auto-approve")
    demo.run("explain", "access", *MAY_READ)
    demo.run("explain", "quota", "--user", "billing", "--client-id", "report")

    step(10, "The shell: one connection, and nothing is changed unless it is allowed")
    say(f"{DIM}  describe users\n  describe acls --principal User:billing{RESET}")
    demo.run("shell", typed="describe users\ndescribe acls --principal User:billing\n")

    step(11, "A broken file: all faults at once, each with its place and what to do")
    demo.write("broken.kf.hcl", BROKEN)
    demo.run("validate", expect=1)
    (demo.folder / "broken.kf.hcl").unlink()

    step(12, "The audit log can prove all of it")
    demo.run("audit", "show", "--last", "6")
    demo.run("audit", "verify")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="kafkaform-demo-"))
    for path in HERE.glob("*.kf.hcl"):
        shutil.copy(path, folder)
    demo = Demo(folder)
    started = time.monotonic()
    try:
        story(demo)
    finally:
        say()
        demo.run("sandbox", "down", "--name", NAME)
        shutil.rmtree(folder)
    say(f"\n{BOLD}That was kafkaform, in {time.monotonic() - started:.0f} seconds.{RESET} Next:")
    say("  kafkaform sandbox up                     # a broker of your own to play with")
    say("  cat examples/01-topics/main.kf.hcl       # the configuration you just saw")
    say("  kafkaform plan -out=plan.kfplan          # in your own folder; then: apply plan.kfplan")


if __name__ == "__main__":
    main()
