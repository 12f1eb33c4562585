"""A configuration folder, and the simulated workers that its provider block names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkaform.core.clock import SystemClock
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform_connect.memory.workers import GUARDED, PLUGINS, SimulatedConnector, SimulatedWorkers

from ..commands.here import Here
from ..http.server import Request, Served

SECRET = "a-password-of-tests"


def make_workers() -> SimulatedWorkers:
    """Workers with Kafka's connectors for files, and one with a secret of a harmless name."""
    return SimulatedWorkers(SystemClock(), plugins=(*PLUGINS, GUARDED))


def answer(workers: SimulatedWorkers, request: Request) -> tuple[int, Any]:
    """What the workers answer to a request of HTTP."""
    said: HttpAnswer = workers.handle(Call(request.method, request.path, request.body), "admin")
    return said.status, said.body


@dataclass
class ConnectFolder:
    """here: the folder; served: the server before the workers."""

    here: Here
    served: Served
    workers: SimulatedWorkers

    def declare(self, *blocks: str, provider: str = "") -> None:
        """Write the configuration. provider: further lines of the provider block."""
        block = (
            f'provider "kafka_connect" {{\n  url = "{self.served.url}"\n'
            f"  operation_timeout = 2\n{provider}\n}}\n"
        )
        self.here.write("main.kf.hcl", "\n".join((block, *blocks)))

    def find(self, name: str) -> SimulatedConnector:
        return self.workers.connectors[name]

    def list_writes(self) -> list[str]:
        """The requests that changed something, and forget them."""
        made = [
            f"{one.method} {one.path}"
            for one in self.served.writes
            if not one.path.endswith("/validate")
        ]
        self.served.asked.clear()
        return made

    def read_files(self) -> str:
        """Everything that the commands have left behind."""
        return "\n".join(data.decode() for data in self.here.files().values())


def connector(name: str, *blocks: str, **given: str) -> str:
    """The block of a file source. given: attributes as HCL, over the usual ones; blocks: nested
    blocks."""
    usual = {
        "name": f'"{name}"',
        "class": '"FileStreamSource"',
        "config": '{ topic = "orders", file = "/dev/null" }',
    }
    attributes = (f"{key} = {value}" for key, value in {**usual, **given}.items())
    lines = "\n".join(f"  {line}" for line in (*attributes, *blocks))
    return f'resource "kafka_connect_connector" "{name}" {{\n{lines}\n}}\n'
