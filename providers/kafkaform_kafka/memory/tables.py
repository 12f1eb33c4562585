"""Joins the parts of all kinds to the tables of the simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..kinds.kind import ResourceKind
from ..simulation.controller import Handler
from ..simulation.simulated_kind import AnswerReader, SimulatedReads, StepCheck


class Tables(Struct, frozen=True):
    """The fields of `SimulatedKind` for all kinds: reads by kind, the others by API."""

    reads: Mapping[str, SimulatedReads]
    handlers: Mapping[str, Handler]
    checks: Mapping[str, StepCheck]
    made: Mapping[str, AnswerReader]


def join_tables(kinds: Sequence[ResourceKind]) -> Tables:
    """The tables of these kinds."""
    # Kinds can share an API (IncrementalAlterConfigs): all of them name the same handler.
    simulations = {kind.name: kind.simulate() for kind in kinds if kind.simulate is not None}
    return Tables(
        reads={name: simulation.reads for name, simulation in simulations.items()},
        handlers={
            api: row
            for simulation in simulations.values()
            for api, row in simulation.handlers.items()
        },
        checks={
            api: row
            for simulation in simulations.values()
            for api, row in simulation.checks.items()
        },
        made={
            api: row for simulation in simulations.values() for api, row in simulation.made.items()
        },
    )
