"""A configuration folder on disk, and the command line run in it as a user would run it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafkaform.audit.event import Record
from kafkaform.state.model import State

from ..promises import records_of, state_of
from .running import Running, start

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENCE = 100.0
"""Seconds after which a command that does not end is a failure of its own."""

PROVIDER = """\
provider "kafka" {{
  bootstrap_servers = ["{bootstrap}"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("PROOF_PASSWORD")
  operation_timeout = "{timeout}"
}}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended. code: the process's own, negative for a signal; out: both streams."""

    code: int
    out: str


@dataclass(frozen=True)
class Folder:
    """path: the folder, which exists; bootstrap: the broker or a proxy in front of it; more: what
    else the environment of its commands holds."""

    path: Path
    bootstrap: str
    password: str
    timeout: str = "30s"
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.path / "kafkaform.audit.jsonl"

    def write(self, *blocks: str) -> None:
        """Declare these blocks, and nothing else, beside the provider."""
        provider = PROVIDER.format(bootstrap=self.bootstrap, timeout=self.timeout)
        (self.path / "main.kf.hcl").write_text("\n".join((provider, *blocks)), "utf-8")

    def start(self, *arguments: str) -> Running:
        """Begin a command in the folder."""
        known = ("PATH", "HOME", "LANG", "TMPDIR")
        environment = {name: os.environ[name] for name in known if name in os.environ}
        environment |= {"PYTHONPATH": str(REPOSITORY), "PROOF_PASSWORD": self.password}
        environment |= self.more
        descriptor, screen = tempfile.mkstemp(prefix="kafkaform-proof-")
        os.close(descriptor)
        return start(arguments, self.path, environment, Path(screen))

    def run(self, *arguments: str) -> Ended:
        """Run a command to its end."""
        return finish(self.start(*arguments))

    def apply(self) -> Ended:
        return self.run("apply", "-auto-approve", "--concise", "--no-color")

    def plan(self) -> Ended:
        """0 stands for: no changes."""
        return self.run("plan", "-detailed-exitcode", "--concise", "--no-color")

    def records(self) -> list[Record]:
        """The whole audit log; fails if its chain is broken or the state's anchor is missing."""
        return records_of(self.path)

    def state(self) -> State | None:
        return state_of(self.path)


def finish(process: Running, patience: float = PATIENCE) -> Ended:
    """Wait for a command; one that hangs is ended and says so by its code."""
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    code = process.returncode
    assert code is not None
    out = process.printed() if process.screen.exists() else ""
    process.screen.unlink(missing_ok=True)
    return Ended(code, out)
