"""An unused topic on the real broker, from the first look to its deletion, with builds of Sail."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest

from kafkaform.core.clock import SystemClock

from ...conftest import Broker
from ...kit.commands.folder import Folder

pytest.importorskip("pysail", reason="pysail is missing: pip install -e '.[fleet]'")

FLEET = """
fleet {{
  root        = "data"
  grace_days  = 0
  notice_days = 1
}}
cluster "eu" {{
  connection {{
    bootstrap_servers = ["{bootstrap}"]
    security_protocol = "SASL_PLAINTEXT"
    sasl_mechanism    = "PLAIN"
    sasl_username     = "admin"
    sasl_password     = secret_env("ADMIN_PASSWORD")
  }}
}}
state "shop" {{
  folder = "."
}}
owner "shop" {{
  topics = ["{prefix}clicks"]
}}
"""
TABLES = ("unused_topics", "desired", "event", "lineage", "recorded")
DAY = 86_400


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """A snapshot takes all that a cluster has."""
    return exclusive_broker


@dataclass
class Days:
    """A folder with a fleet whose clock a test can turn."""

    folder: Folder
    passed: float = 0.0

    def now(self) -> float:
        return time.time() + self.passed * DAY

    def look(self, **days: float) -> None:
        """Take a snapshot so many days later, and make the build of it."""
        self.passed += days.get("days", 0.0)
        self.folder.done("fleet", "snapshot", "--quiet")
        command = [sys.executable, "-m", "kafkaform", "fleet", "run", "--quiet"]
        only = [word for table in TABLES for word in ("--only", table)]
        done = subprocess.run(
            [*command, "--root", "data", "--master", "embedded", *only],
            cwd=self.folder.path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def unused(self, *flags: str) -> dict[str, Any]:
        said = self.folder.done("fleet", "unused", "--owner", "shop", "--json", *flags)
        document: dict[str, Any] = json.loads(said.out)
        return document

    def find(self) -> dict[str, Any]:
        (topic,) = self.unused()["topics"]
        return dict(topic)

    def propose(self, name: str) -> None:
        assert self.unused("--propose", name)["files"]
        command = ["patch", "-p1", "-i", f"{name}/shop.patch"]
        subprocess.run(command, cwd=self.folder.path, check=True, capture_output=True)


@pytest.fixture
def days(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Days:
    made = Days(folder)
    monkeypatch.setattr(SystemClock, "now", staticmethod(made.now))
    text = FLEET.format(bootstrap=folder.broker.bootstrap, prefix=folder.prefix)
    folder.write("fleet.hcl", text)
    return made


def test_an_unused_topic_comes_to_its_end(days: Days) -> None:
    """Each step is seen in what landed, and each apply is of a change that was written before."""
    folder = days.folder
    folder.declare("clicks", "orders")
    folder.done("apply", "-auto-approve")
    days.look()
    assert days.find()["step"] == "candidate"
    (delivery,) = days.unused("--tell-file", "told")["deliveries"]
    assert delivery["outcome"] == "told"
    days.look(days=1.5)
    days.propose("first")
    folder.done("apply", "-auto-approve")
    days.look()
    assert (days.find()["step"], days.find()["proposal"]) == ("told", "remove")
    days.propose("second")
    assert "removed {" in (folder.path / "topics.kf.hcl").read_text()
    assert "2 added" in folder.done("apply", "-auto-approve").text
    days.look()
    topic = days.find()
    assert topic["step"] == "parked"
    assert topic["since"] is not None
    days.look(days=7.5)
    assert days.find()["step"] == "due"
    assert "3 destroyed" in folder.done("apply", "-auto-approve").text
