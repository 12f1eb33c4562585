"""Worlds of every type on the simulated cluster, with faults and other people's edits."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.core.diagnostics import has_errors
from kafkaform.core.resource import Desired, Identity
from kafkaform.core.secret import Secret
from kafkaform.core.value import SecretRef
from kafkaform.plan.model import Plan
from kafkaform.workflow import planning
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform_kafka.memory import (
    MemoryProvider,
    Mishap,
    late_effect,
    lost_reply,
    lost_request,
    not_sent,
    throttled_items,
)

from ..kit.quick import examples
from ..kit.simulated import engine
from .worlds import KAFKA, MAKERS, OPTIONS, Outsider, Writer, play

EXAMPLES = int(os.environ.get("KAFKAFORM_WORLDS", examples(60)))


@dataclass(frozen=True)
class Configuration(engine.Configuration):
    def find_secrets(self, refs: Collection[SecretRef]) -> Mapping[SecretRef, Secret | None]:
        return dict.fromkeys(refs, Secret("ours-secret"))


@dataclass
class Simulated:
    """See `worlds.Town`."""

    where: engine.House
    kinds: Sequence[str]
    writer: Writer
    others: Outsider
    said: Desired = field(default_factory=engine.desired)

    def declare(self, text: str) -> None:
        with TemporaryDirectory() as folder:
            Path(folder, "main.kf.json").write_text(text, "utf-8")
            self.said = read_configuration(Path(folder), Inputs()).evaluate().desired
        assert not has_errors(self.said.diagnostics), self.said.diagnostics

    def plan(self) -> Plan:
        return planning.plan_changes(self._space(), OPTIONS)

    def apply(self) -> Sequence[Plan]:
        self.where.screen = engine.Screen()
        engine.apply_plainly(self._space(), OPTIONS, self.where.screen)
        return self.where.screen.plans

    def rows(self) -> set[Identity]:
        return set(self.where.state.objects)

    def hands(self) -> AbstractContextManager[Any]:
        return self.where.cluster.others()

    def trouble(self, random: Random) -> bool:
        for _ in range(random.randint(0, 2)):
            self.where.cluster.faults.schedule(mishap(random), skip=random.randint(0, 12))
        return True

    def peace(self) -> None:
        self.where.cluster.faults.clear()

    def _space(self) -> Any:
        configuration = cast(Any, Configuration())
        return replace(engine.space(self.where, self.said), configuration=configuration)


def mishap(random: Random) -> Mishap:
    makers = (
        lost_reply,
        lost_request,
        not_sent,
        lambda: late_effect(1.0),
        lambda: throttled_items(0.5),
    )
    return random.choice(makers)()


def simulated() -> Simulated:
    """A new cluster, and a state without objects."""
    where = engine.house()
    engine.begin(where)
    provider = MemoryProvider(where.cluster)
    where.providers = {KAFKA: provider}
    session = provider.open(KAFKA, engine.desired().providers[KAFKA].config, {})
    writer = Writer(provider, {"bootstrap_servers": ["localhost:9092"], "operation_timeout": 4})
    return Simulated(where, tuple(MAKERS), writer, Outsider(provider, session))


def test_every_type_has_a_world() -> None:
    """A new type of the provider must be made here too."""
    assert MAKERS.keys() == MemoryProvider(engine.house().cluster).types.keys()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32 - 1))
def test_every_world_ends_at_no_changes(seed: int) -> None:
    """See `worlds.play`; the log's chain holds too."""
    town = simulated()
    play(town, Random(seed))
    town.where.check_log()
