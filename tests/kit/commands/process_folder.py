"""A configuration folder on disk, and the command line run in it as a user would run it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafkaform.audit.records import Record
from kafkaform.state.model import State

from ..promises import records_of, state_of
from .server import COMMAND, Ended, Job, Running, get_server
from .struck import Strike

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
class Folder:
    """path: the folder, which exists; bootstrap: the broker or a proxy in front of it; more: what
    else the environment of its commands holds; places, program: see `Job`."""

    path: Path
    bootstrap: str
    password: str
    timeout: str = "30s"
    more: Mapping[str, str] = field(default_factory=dict)
    places: Sequence[str] = ()
    program: str = COMMAND

    @property
    def log(self) -> Path:
        return self.path / "kafkaform.audit.jsonl"

    def write(self, *blocks: str) -> None:
        """Declare these blocks, and nothing else, beside the provider."""
        provider = PROVIDER.format(bootstrap=self.bootstrap, timeout=self.timeout)
        (self.path / "main.kf.hcl").write_text("\n".join((provider, *blocks)), "utf-8")

    def start(
        self,
        *arguments: str,
        strike: Strike | None = None,
        trace: Path | None = None,
        held: bool = False,
    ) -> Running:
        """Begin a command in the folder. strike, trace, held: see `Job`."""
        job = self.make_job(arguments)
        return get_server().start(
            replace(job, strike=strike, trace=trace and str(trace), held=held)
        )

    def make_job(self, arguments: Sequence[str]) -> Job:
        known = ("PATH", "HOME", "LANG", "TMPDIR")
        environment = {name: os.environ[name] for name in known if name in os.environ}
        environment |= {"PROOF_PASSWORD": self.password, **self.more}
        return Job(arguments, str(self.path), environment, places=self.places, program=self.program)

    def run(self, *arguments: str) -> Ended:
        """Run a command to its end."""
        return self.start(*arguments).finish()

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
