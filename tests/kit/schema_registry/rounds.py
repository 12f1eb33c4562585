"""Subjects and levels that a folder declares from round to round, on a registry on which somebody
else has a subject, too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kafkaform.core.value import FrozenMap, freeze
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform_schema_registry import requests
from kafkaform_schema_registry.formats.avro import normalize_avro
from kafkaform_schema_registry.formats.normal_form import inspect_schema
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.subject_settings import SUBJECT_CONFIG
from kafkaform_schema_registry.memory import SimulatedRegistry

from ..commands.process_folder import Folder
from ..entry_point import note_provider
from ..http.server import serving
from ..http.system import STEADY, TIMEOUT, Arrivals, HttpSystem, name_request, write_removed
from ..promises import Name, Reached, Thing, World
from ..servers import Client, Registry
from .schemas import ORDER, ORDER_WITH_NOTE, field, record
from .server import read_call

THEIRS = "theirs"
FAMILY = ("money", "orders", "carts")
"""Subjects of which each refers to the one before."""
INHERITED = "INHERITED"
REQUESTS = FrozenMap(
    RegisterSchema="POST /subjects/[^/]+/versions",
    DeleteSubject="DELETE /subjects/[^/]+",
    SetCompatibility="PUT /config/.+",
    DeleteCompatibility="DELETE /config/.+",
    SetMode="PUT /mode/.+",
    DeleteMode="DELETE /mode/.+",
)
"""Request of a step -> a regular expression for its method and target."""


@dataclass(frozen=True)
class Rounds:
    """prefix: of all subjects; modes: subjects have modes."""

    prefix: str = ""
    modes: bool = True
    timeout: int = TIMEOUT

    def write(self, url: str, number: int) -> str:
        """The configuration of a round."""
        blocks = (
            *(_schema(self.prefix, *one) for one in self._list_schemas(number).items()),
            *(_config(self.prefix, *one) for one in self._list_configs(number).items()),
            *(write_removed(kind, f"t{number - 2}") for kind in _KINDS if number >= STEADY),
        )
        return "\n".join((self.write_provider(url), *blocks))

    def write_provider(self, url: str) -> str:
        return (
            f'provider "schema_registry" {{\n  url = "{url}"\n'
            f"  operation_timeout = {self.timeout}\n  protect_schemas = false\n}}\n"
        )

    def _list_schemas(self, number: int) -> Mapping[str, str]:
        changing = record(field("id", "long"), field("n", "int", default=number))
        found = {"stay": changing, f"t{number}": ORDER}
        return {**found, f"t{number - 1}": ORDER_WITH_NOTE} if number else found

    def _list_configs(self, number: int) -> Mapping[str, tuple[str, str]]:
        """Subject -> level and mode."""
        mode = "READWRITE" if self.modes else INHERITED
        found = {f"t{number}": ("FULL", mode)}
        return {**found, f"t{number - 1}": ("BACKWARD", INHERITED)} if number else found

    def list_wanted(self, number: int) -> World:
        """What of it is there after a round."""
        schemas, configs = self._list_schemas(number), self._list_configs(number)
        return {
            **make_things({self.prefix + name: text for name, text in schemas.items()}),
            **make_configs(
                {self.prefix + name: level for name, (level, _) in configs.items()},
                {self.prefix + name: mode for name, (_, mode) in configs.items()},
            ),
        }


def make_things(schemas: Mapping[str, str]) -> dict[Name, Thing]:
    """Subjects as a world has them, by the text of their latest schemas."""
    return {
        (schema.KIND, name): Thing(
            {"subject": name, "format": "avro", "schema": normalize_avro(text), "references": ()}
        )
        for name, text in schemas.items()
    }


def make_configs(levels: Mapping[str, str], modes: Mapping[str, str]) -> dict[Name, Thing]:
    """Levels and modes of subjects as a world has them."""
    return {
        (SUBJECT_CONFIG, name): Thing(
            {
                "subject": name,
                "compatibility": levels.get(name, INHERITED),
                "mode": modes.get(name, INHERITED),
            }
        )
        for name in {*levels, *modes}
    }


_KINDS = (schema.KIND, SUBJECT_CONFIG)


def _schema(prefix: str, name: str, text: str) -> str:
    return (
        f'resource "{schema.KIND}" "{name}" {{\n  subject = "{prefix}{name}"\n'
        f"  schema = {json.dumps(text)}\n}}\n"
    )


def _config(prefix: str, name: str, settings: tuple[str, str]) -> str:
    level, mode = settings
    return (
        f'resource "{SUBJECT_CONFIG}" "{name}" {{\n  subject = "{prefix}{name}"\n'
        f'  compatibility = "{level}"\n  mode = "{mode}"\n}}\n'
    )


@dataclass
class RegistrySystem(HttpSystem):
    """A simulated registry at an address. arrivals: the writes of the folder."""

    registry: SimulatedRegistry
    arrivals: Arrivals
    rounds: Rounds = Rounds()
    requests = REQUESTS

    def write_round(self, url: str, number: int) -> str:
        return self.rounds.write(url, number)

    def list_wanted(self, number: int) -> World:
        return {**self.rounds.list_wanted(number), **make_things({THEIRS: ORDER})}

    def read_world(self) -> World:
        subjects = self.registry.subjects
        latest = {name: subjects.list_versions(name)[-1].text for name in subjects.list_names()}
        return {**make_things(latest), **make_configs(self.registry.levels, self.registry.modes)}

    def begin(self, number: int) -> None:
        self.arrivals.begin()

    def list_reached(self) -> Sequence[Reached]:
        return tuple(self.arrivals.reached)

    def find_faults(self) -> Iterator[str]:
        yield from self.arrivals.strays


def _name_object(request: str, call: Call) -> Name:
    name = call.path.strip("/").split("/")[1]
    is_setting = request.endswith(("Compatibility", "Mode"))
    return (SUBJECT_CONFIG if is_setting else schema.KIND), name


@contextmanager
def open_registry(path: Path) -> Iterator[RegistrySystem]:
    """A simulated registry with a folder at this path."""
    registry, arrivals = SimulatedRegistry(), Arrivals(path)
    body = FrozenMap(subject=THEIRS, format="avro", schema=ORDER, references=())
    registry.answer(requests.register(body))

    def answer(request: Any) -> tuple[int, Any]:
        call = read_call(request)
        name = name_request(REQUESTS, request.method, request.path)
        if name is not None:
            arrivals.note(name, _name_object(name, call))
        found: HttpAnswer = registry.answer(call)
        return found.status, found.body

    with serving(answer) as served:
        yield RegistrySystem(make_folder(path), served.port, registry, arrivals)


def make_folder(path: Path) -> Folder:
    """A new folder at this path, whose commands find the provider."""
    path.mkdir(parents=True)
    site = path.with_name(f"{path.name}.site")
    found = note_provider("schema_registry", site)
    return Folder(path, "", "no password at all", places=(str(site),) if found else ())


@dataclass
class FamilySystem(RegistrySystem):
    """A simulated registry with a chain of schemas: each round registers a new version of the first
    one, and then versions of the others that refer to the newest version before them."""

    requests = FrozenMap(
        {f"RegisterSchema {name}": f"POST /subjects/{name}/versions" for name in FAMILY}
    )

    def write_round(self, url: str, number: int) -> str:
        blocks = [
            f'resource "{schema.KIND}" "{name}" {{\n  subject = "{name}"\n'
            f"  schema = {json.dumps(text)}\n"
            + (f'  references = [{{ name = "{n}", subject = "{s}" }}]\n' if n else "")
            + "}\n"
            for name, (text, n, s) in _list_family(number).items()
        ]
        return "\n".join((Rounds().write_provider(url), *blocks))

    def list_wanted(self, number: int) -> World:
        """Version numbers count from 1 on, so a schema that was registered twice shows up."""
        return {
            **make_things({THEIRS: ORDER}),
            **{
                (schema.KIND, subject): _make_relative(subject, text, name, parent, number + 1)
                for subject, (text, name, parent) in _list_family(number).items()
            },
        }

    def read_world(self) -> World:
        subjects, world = self.registry.subjects, dict(make_things({THEIRS: ORDER}))
        for subject in FAMILY:
            for stored in subjects.list_versions(subject)[-1:]:
                ((name, parent, version),) = [
                    (ref["name"], ref["subject"], ref["version"]) for ref in stored.references
                ] or [("", "", 0)]
                world[schema.KIND, subject] = _make_relative(
                    subject, stored.text, name, parent, version
                )
        return world

    def find_faults(self) -> Iterator[str]:
        yield from super().find_faults()
        for subject in FAMILY:
            versions = self.registry.subjects.list_versions(subject)
            numbers = [
                [reference["version"] for reference in stored.references] for stored in versions
            ]
            if any(refs and refs != [at] for at, refs in enumerate(numbers, 1)):
                yield f"versions of {subject} refer to {numbers}"


def _list_family(number: int) -> Mapping[str, tuple[str, str, str]]:
    """Subject -> its schema in this round, and the name and the subject that it refers to."""
    money = record(field("cents", "long"), field("n", "int", default=number), name="Money")
    carts = json.dumps({"type": "array", "items": "Order"})
    orders = record(field("price", "Money"), name="Order")
    money_, orders_, carts_ = FAMILY
    return {
        money_: (money, "", ""),
        orders_: (orders, "Money", money_),
        carts_: (carts, "Order", orders_),
    }


def _make_relative(subject: str, text: str, name: str, parent: str, version: int) -> Thing:
    normal = inspect_schema("avro", text, elsewhere=bool(name)).normal
    references = [{"name": name, "subject": parent, "version": version}] if name else []
    return Thing(
        {"subject": subject, "format": "avro", "schema": normal, "references": freeze(references)}
    )


@contextmanager
def open_family(path: Path) -> Iterator[FamilySystem]:
    """A simulated registry with a chain of schemas."""
    with open_registry(path) as system:
        yield FamilySystem(system.folder, system.port, system.registry, system.arrivals)


@dataclass
class RealRegistrySystem(HttpSystem):
    """A registry of the sandbox, of which a folder has the subjects with its prefix."""

    address: str
    client: Client
    rounds: Rounds
    requests = FrozenMap({name: fits.replace(" /", " /.+/") for name, fits in REQUESTS.items()})

    @property
    def url(self) -> str:
        return self.address

    def write_round(self, url: str, number: int) -> str:
        return self.rounds.write(url, number)

    def list_wanted(self, number: int) -> World:
        return self.rounds.list_wanted(number)

    def read_world(self) -> World:
        _, names = self.client.ask("GET", "/subjects")
        ours = [name for name in names if name.startswith(self.rounds.prefix)]
        latest, levels = {}, {}
        for name in ours:
            status, found = self.client.ask("GET", f"/subjects/{name}/versions/latest")
            if status < 400:
                latest[name] = found["schema"]
            status, found = self.client.ask("GET", f"/config/{name}?defaultToGlobal=false")
            # Apicurio says NONE for a subject that has no level of its own.
            if status < 400 and found["compatibilityLevel"] != "NONE":
                levels[name] = found["compatibilityLevel"]
        return {**make_things(latest), **make_configs(levels, {})}


@contextmanager
def use_registry(path: Path, registry: Registry, prefix: str) -> Iterator[RealRegistrySystem]:
    """This registry with a folder at this path; its subjects go at the end."""
    port = urlsplit(registry.url).port or 0
    rounds = Rounds(prefix, modes=False, timeout=10)
    client = Client(registry.url)
    yield RealRegistrySystem(make_folder(path), port, registry.url, client, rounds)
    for name in client.ask("GET", "/subjects")[1]:
        if name.startswith(prefix):
            client.ask("DELETE", f"/subjects/{name}")
