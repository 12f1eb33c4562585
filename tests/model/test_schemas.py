"""Schemas and levels through lost answers, deaths and other people, on a simulated registry.

Whatever happens, a request leaves only after its intent is durable, somebody else's subject stays
as it is, and once nothing disturbs any more, two applies make everything as it is declared.
"""

from __future__ import annotations

import json

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from kafkaform.core.address import parse_address
from kafkaform.core.resource import Declared, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform_schema_registry import requests
from kafkaform_schema_registry.formats.avro import normalize_avro
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.subject_settings import SUBJECT_CONFIG
from kafkaform_schema_registry.memory import RegistryMishap, SimulatedRegistry, connect_simulated

from ..kit.schema_registry.schemas import field, record
from ..kit.simulated.engine import PLACE, Clock, House
from .single_provider import SETTINGS, THEIRS, SingleProvider, list_announced, make_house

INSTANCE = "schema_registry"
NAMES = st.sampled_from(["a", "b", "c"])
LEVELS = st.sampled_from(["FULL", "BACKWARD", "NONE"])


def make_schema(number: int) -> str:
    """Schemas that are compatible with each other."""
    return record(field("id", "long"), field("n", "int", default=number))


class Watched(SimulatedRegistry):
    """Its writes by us have to be announced."""

    house: House

    def answer(self, call: Call, user: str = "admin") -> HttpAnswer:
        if user == "admin" and not call.reads:
            subject = call.path.split("/")[2]
            assert subject in list_announced(self.house), f"nobody announced {call}"
        return super().answer(call, user)


class Schemas(SingleProvider):
    """One state, one registry, and what happens to both."""

    instance = INSTANCE
    block = FrozenMap(protect_schemas=False)

    def __init__(self) -> None:
        super().__init__()
        self.registry = Watched()
        self.registry.users["somebody"] = True
        self.mishaps = []
        self.house = self.registry.house = make_house(Clock())
        self.use(connect_simulated(self.registry, mishaps=self.mishaps))
        self.schemas: dict[str, int] = {"kept": 0}
        self.levels: dict[str, str] = {}
        self.number = 0
        self._outside(requests.register(self._send(THEIRS, 0)))

    def _outside(self, call: Call) -> None:
        self.registry.answer(call, "somebody")

    def _send(self, name: str, number: int) -> FrozenMap:
        text = make_schema(number)
        return FrozenMap(subject=name, format="avro", schema=text, references=())

    def _next(self) -> int:
        """A schema that no subject has had: an older one cannot become the latest again."""
        self.number += 1
        return self.number

    # ── what is wished, and what is done ────────────────────────────────────────────────

    def list_declared(self) -> tuple[Declared, ...]:
        named = {"topic": None, "part": None}
        wishes = [
            (
                schema.KIND,
                name,
                {
                    **named,
                    "strategy": None,
                    "format": "avro",
                    "schema": json.dumps(json.loads(make_schema(number)), indent=number % 3),
                    "references": None,
                },
            )
            for name, number in self.schemas.items()
        ] + [
            (
                SUBJECT_CONFIG,
                name,
                {**named, "compatibility": level, "mode": "INHERITED"},
            )
            for name, level in self.levels.items()
        ]
        return tuple(
            Declared(
                Identity(INSTANCE, kind, name),
                parse_address(f"{kind}.{name}"),
                FrozenMap({"subject": name, **attributes}),
                PLACE,
            )
            for kind, name, attributes in sorted(wishes, key=lambda wish: wish[:2])
        )

    @rule(name=NAMES)
    def declare(self, name: str) -> None:
        self.schemas[name] = self._next()

    @rule(name=NAMES, level=LEVELS)
    def declare_level(self, name: str, level: str) -> None:
        self.levels[name] = level

    @rule(name=NAMES)
    def undeclare(self, name: str) -> None:
        self.schemas.pop(name, None)

    @rule(name=NAMES)
    def undeclare_level(self, name: str) -> None:
        self.levels.pop(name, None)

    @rule(kinds=st.lists(st.sampled_from(RegistryMishap), min_size=1, max_size=3))
    def apply_on_a_bad_line(self, kinds: list[RegistryMishap]) -> None:
        self.mishaps += kinds
        self.apply_once()

    # ── what others do ──────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.settled)
    @rule(name=NAMES)
    def somebody_registers(self, name: str) -> None:
        """And the team answers with a newer version."""
        if name in self.schemas and self.registry.subjects.list_versions(name):
            self._outside(requests.register(self._send(name, self._next())))
            self.schemas[name] = self._next()

    @precondition(lambda self: self.settled)
    @rule(name=NAMES, permanent=st.booleans())
    def somebody_deletes(self, name: str, permanent: bool) -> None:
        self._outside(requests.delete_subject(name, permanent=False))
        if permanent:
            self._outside(requests.delete_subject(name, permanent=True))

    @precondition(lambda self: self.settled)
    @rule(name=NAMES, level=LEVELS)
    def somebody_sets_a_level(self, name: str, level: str) -> None:
        if name in self.registry.levels:
            self._outside(requests.put_setting("config", name, {"compatibility": level}))

    # ── what must hold ──────────────────────────────────────────────────────────────────

    @invariant()
    def somebody_elses_subject_stays(self) -> None:
        assert [one.number for one in self.registry.subjects.list_versions(THEIRS)] == [1]

    def compare(self) -> None:
        assert set(self.registry.subjects.list_names()) == {*self.schemas, THEIRS}
        assert self.registry.levels == self.levels
        for name, number in self.schemas.items():
            latest = self.registry.subjects.list_versions(name)[-1]
            assert latest.text == normalize_avro(make_schema(number))


Schemas.TestCase.settings = SETTINGS
TestSchemas = Schemas.TestCase
