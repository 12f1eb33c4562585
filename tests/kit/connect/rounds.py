"""Connectors that a folder declares from round to round, on workers on which somebody else has a
connector, too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kafkaform.core.clock import SystemClock
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import Call
from kafkaform_connect.connector import KIND
from kafkaform_connect.memory.workers import GUARDED, PLUGINS, SimulatedConnector, SimulatedWorkers

from ..commands.process_folder import Folder
from ..entry_point import note_provider
from ..http.server import Request, serving
from ..http.system import STEADY, TIMEOUT, Arrivals, HttpSystem, name_request, write_removed
from ..promises import Reached, Thing, World
from ..servers import Client, Worker, wait_until
from .folder import SECRET, answer

THEIRS, STAYS, RENAMED = "theirs", "stay", "v"
"""The block of the last one has a connector with another name in each round, which takes the
offsets of the one before."""
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
PASSWORD = "PROOF_PASSWORD"
REQUESTS = FrozenMap(
    CreateConnectors="POST /connectors",
    ConfigureConnectors="PATCH /connectors/[^/]+/config",
    CarryOffsets="PATCH /connectors/[^/]+/offsets",
    HaltConnectors="PUT /connectors/[^/]+/(pause|stop)",
    ResumeConnectors="PUT /connectors/[^/]+/resume",
    RestartConnectors="POST /connectors/[^/]+/restart.*",
    DeleteConnectors="DELETE /connectors/[^/]+",
)
"""Request of a step -> a regular expression for its method and target."""


LINES = FrozenMap(topic="lines", file="/dev/null")


@dataclass(frozen=True)
class Wish:
    """A connector as it is declared."""

    config: Mapping[str, str]
    state: str = "paused"
    secret: bool = False
    class_: str = SOURCE


@dataclass(frozen=True)
class Rounds:
    """prefix: of all connectors; login: further lines of the provider block; timeout: seconds of a
    request; guarded: the workers have the plugin `GUARDED`."""

    prefix: str = ""
    login: str = ""
    timeout: int = TIMEOUT
    guarded: bool = True

    def write(self, url: str, number: int) -> str:
        """The configuration of a round."""
        provider = (
            f'provider "kafka_connect" {{\n  url = "{url}"\n'
            f"  operation_timeout = {self.timeout}\n{self.login}}}\n"
        )
        wishes = self._list_wishes(number)
        gone = (f"{name}{number - STEADY}" for name in ("t", "u")) if number >= STEADY else ()
        blocks = [_connector(self.prefix, name, one, number) for name, one in wishes.items()]
        blocks.append(_write_renamed(self.prefix, number))
        return "\n".join((provider, *blocks, *(write_removed(KIND, name) for name in gone)))

    def list_wanted(self, number: int) -> World:
        """What of it is there after a round."""
        wishes = {**self._list_wishes(number), f"{RENAMED}{number}": Wish(LINES, "running")}
        return {
            (KIND, self.prefix + name): make_thing(
                self.prefix + name, one.class_, one.config, one.state, secret=one.secret
            )
            for name, one in wishes.items()
        }

    def _list_wishes(self, number: int) -> Mapping[str, Wish]:
        """One changes in each round; one comes halted and runs in the next round, one comes running
        and is halted in the next."""
        new, changed = ({"topic": topic, "file": "/dev/null"} for topic in ("new", "changed"))
        stay = Wish({"topics": "orders", "host": f"h{number}"}, "running", True, GUARDED.class_)
        if not self.guarded:
            stay = Wish({**new, "batch.size": str(number + 1)}, "running")
        found = {STAYS: stay, f"t{number}": Wish(new), f"u{number}": Wish(new, "running")}
        if number:
            found[f"t{number - 1}"] = Wish(changed, "running")
            found[f"u{number - 1}"] = Wish(changed, "stopped")
        return found


def make_thing(
    name: str,
    class_: str,
    config: Mapping[str, str],
    state: str,
    *,
    secret: bool = False,
    failed: bool = False,
) -> Thing:
    """A connector as a world has it. config: without name, class and secrets."""
    return Thing(
        {
            "name": name,
            "class": class_,
            "config": dict(config),
            "state": state,
            "secret_keys": {"pin": "set"} if secret else {},
            "failures": {"tasks": "failed"} if failed else {},
        }
    )


def _connector(prefix: str, name: str, wish: Wish, number: int) -> str:
    secret = (
        f'  secret_config = {{ pin = secret_env("{PASSWORD}") }}\n'
        f'  secret_config_version = "{number}"\n'
    )
    return (
        f'resource "{KIND}" "{name}" {{\n  name = "{prefix}{name}"\n  class = "{wish.class_}"\n'
        f'  config = {json.dumps(wish.config)}\n  state = "{wish.state}"\n'
        f"{secret if wish.secret else ''}}}\n"
    )


def _write_renamed(prefix: str, number: int) -> str:
    source = f'  offsets_from = "{prefix}{RENAMED}{number - 1}"\n' if number else ""
    return (
        f'resource "{KIND}" "{RENAMED}" {{\n  name = "{prefix}{RENAMED}{number}"\n'
        f'  class = "{SOURCE}"\n  config = {json.dumps(dict(LINES))}\n{source}}}\n'
    )


@dataclass
class WorkersSystem(HttpSystem):
    """Simulated workers at an address. arrivals: the writes of the folder; number: of the round."""

    workers: SimulatedWorkers
    arrivals: Arrivals
    rounds: Rounds = Rounds()
    number: int = 0
    requests = REQUESTS

    def write_round(self, url: str, number: int) -> str:
        return self.rounds.write(url, number)

    def list_wanted(self, number: int) -> World:
        theirs = make_thing(THEIRS, SOURCE, {"topic": "t"}, "running")
        return {**self.rounds.list_wanted(number), (KIND, THEIRS): theirs}

    def read_world(self) -> World:
        return {
            (KIND, name): _describe(name, one)
            for name, one in dict(self.workers.connectors).items()
        }

    def begin(self, number: int) -> None:
        """Tasks fail that run since a former round."""
        for name in (STAYS, f"t{number - 2}") if number >= STEADY else ():
            self.workers.connectors[name].trace = "java.lang.Exception: no\n"
        self.number = number
        self.workers.offsets[f"{RENAMED}{number - 1}"] = make_offsets(number)
        self.arrivals.begin()

    def list_reached(self) -> Sequence[Reached]:
        return tuple(self.arrivals.reached)

    def find_faults(self) -> Iterator[str]:
        yield from self.arrivals.strays
        name = f"{RENAMED}{self.number}"
        if self.number and self.workers.offsets.get(name) != make_offsets(self.number):
            yield f"{name} does not have the offsets of the connector before it"


def make_offsets(number: int) -> list[dict[str, Any]]:
    """What the renamed connector has read before this round."""
    return [{"partition": {"file": str(n)}, "offset": {"position": number}} for n in range(2)]


def _describe(name: str, one: SimulatedConnector) -> Thing:
    config = {
        key: value
        for key, value in one.config.items()
        if key not in ("name", "connector.class", "pin")
    }
    secret, state = "pin" in one.config, one.state.lower()
    class_ = one.config["connector.class"]
    return make_thing(name, class_, config, state, secret=secret, failed=bool(one.trace))


@contextmanager
def open_workers(path: Path) -> Iterator[WorkersSystem]:
    """Simulated workers with a folder at this path."""
    workers = SimulatedWorkers(SystemClock(), plugins=(*PLUGINS, GUARDED))
    body = {"name": THEIRS, "config": {"connector.class": SOURCE, "topic": "t"}}
    workers.handle(Call("POST", "/connectors", body), "somebody")
    arrivals = Arrivals(path)

    def note(request: Request) -> tuple[int, Any]:
        name = name_request(REQUESTS, request.method, request.path)
        # A part of CarryOffsets, which is about the connector that takes the offsets.
        stops = request.path.endswith("/stop") and f"/{RENAMED}" in request.path
        if name is not None and not stops:
            is_new = name == "CreateConnectors"
            connector = request.body["name"] if is_new else request.path.split("/")[2]
            arrivals.note(name, (KIND, connector))
        return answer(workers, request)

    with serving(note) as served:
        yield WorkersSystem(make_folder(path), served.port, workers, arrivals)


def make_folder(path: Path, password: str = SECRET) -> Folder:
    """A new folder at this path, whose commands find the provider."""
    path.mkdir(parents=True)
    site = path.with_name(f"{path.name}.site")
    found = note_provider("kafka_connect", site)
    return Folder(path, "", password, places=(str(site),) if found else ())


@dataclass
class RealWorkersSystem(HttpSystem):
    """The worker of the sandbox, of which a folder has the connectors with its prefix."""

    client: Client
    rounds: Rounds
    requests = REQUESTS

    def write_round(self, url: str, number: int) -> str:
        return self.rounds.write(url, number)

    def list_wanted(self, number: int) -> World:
        return self.rounds.list_wanted(number)

    def read_world(self) -> World:
        """What there is as soon as nothing of it is starting."""
        found: dict[str, Any] = {}

        def has_started() -> bool:
            # Names first: what was deleted in between is missing only below.
            names = self.list_names()
            status, listed = self.client.ask("GET", "/connectors?expand=info&expand=status")
            assert status == 200, listed
            found.clear()
            # The listing lacks a connector that no worker has started yet.
            found.update({name: listed[name] for name in names if name in listed})
            return len(found) == len(names) and not any(map(_starts, found.values()))

        wait_until(has_started)
        return {
            (KIND, name): _describe_real(name, one["info"]["config"], one["status"])
            for name, one in found.items()
        }

    def list_names(self) -> list[str]:
        """The names of the folder's connectors."""
        status, names = self.client.ask("GET", "/connectors")
        assert status == 200, names
        return [name for name in names if name.startswith(self.rounds.prefix)]


def _starts(one: Mapping[str, Any]) -> bool:
    """True for a connector that a worker has not started, or that has a task like that."""
    parts = (one["status"]["connector"], *one["status"]["tasks"])
    return any(part["state"] in ("UNASSIGNED", "RESTARTING") for part in parts)


def _describe_real(name: str, given: Mapping[str, str], status: Mapping[str, Any]) -> Thing:
    config = {key: value for key, value in given.items() if key not in ("name", "connector.class")}
    failed = any(task["state"] == "FAILED" for task in status["tasks"])
    state = status["connector"]["state"].lower()
    return make_thing(name, given["connector.class"], config, state, failed=failed)


@contextmanager
def use_worker(path: Path, worker: Worker, prefix: str) -> Iterator[RealWorkersSystem]:
    """This worker with a folder at this path; its connectors go at the end."""
    login = f'  username = "{worker.username}"\n  password = secret_env("{PASSWORD}")\n'
    rounds = Rounds(prefix, login, timeout=10, guarded=False)
    port = urlsplit(worker.url).port or 0
    folder = make_folder(path, worker.password)
    system = RealWorkersSystem(folder, port, worker.open_client(), rounds)
    try:
        yield system
    finally:
        for name in system.list_names():
            wait_until(partial(_delete, system.client, name))


def _delete(client: Client, name: str) -> bool:
    """Delete a connector; False if the worker knows no leader at the moment."""
    return client.ask("DELETE", f"/connectors/{name}")[0] != 409
