"""What must hold of every change that reaches the cluster, and of every state and log.

"Nothing lost" (NL1–NL5): each mutation has an earlier durable intent and is part of an approved
plan; what is ours and what is live agree, or a plan lists the difference; each intent ends once;
the log verifies; a state is wholly old or wholly new.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kafkaform.audit.index import TERMINAL, of_run
from kafkaform.core.change import Action
from kafkaform.core.resource import Desired, Lifecycle
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.plan.diff import dotted, flatten, ignored
from kafkaform.plan.model import Mode, Plan
from kafkaform.state.codec import decode
from kafkaform.state.model import State
from kafkaform_providers.kafka.memory import Topic

from .boxes import Box
from .engine import House, identity

Thing = Topic | Box


def shape(thing: Thing | None) -> dict[str, Value]:
    """The paths of a live object, written with dots; what moves counts as there."""
    if thing is None:
        return {}
    if isinstance(thing, Box):
        return {"name": thing.name, "place": thing.bound or thing.place, "label": thing.label}
    whole = FrozenMap(
        name=thing.name,
        partitions=thing.partitions,
        replication_factor=len((thing.target or thing.assignment)[0]),
        config=thing.config,
    )
    return {dotted(path): value for path, value in flatten(whole).items()}


@dataclass(slots=True)
class Witness:
    """Sits on the wire between engine and cluster. ours: ids of what the engine may touch; made:
    id -> name of what it created."""

    house: House
    ours: set[str] = field(default_factory=set)
    made: dict[str, str] = field(default_factory=dict)
    states: int = 0

    def __post_init__(self) -> None:
        self.house.cluster.on_own = self.mutation
        self.house.cluster.depot.on_own = self.mutation

    # ── at each mutation ────────────────────────────────────────────────────────────────

    def mutation(self, name: str, before: Thing | None, after: Thing | None) -> None:
        """NL1, NL3: an approved, durable intent says exactly this; and the object is ours."""
        self._learn()
        if shape(before) == shape(after) and before and after and before.id == after.id:
            return
        intents = [r for r in self.house.records("intent") if r.body["key"] == name]
        approved = {(r.run, r.body["approval"]) for r in self.house.records("approval")}
        said = [
            r.body
            for r in intents
            if (r.run, r.body["approval"]) in approved and _says(r.body, before, after)
        ]
        assert said, f"nobody announced {shape(before)} -> {shape(after)}: {intents}"
        if before is None:
            assert after is not None
            self.ours.add(after.id)
            self.made[after.id] = name
            return
        if after is None:
            assert before.id in self.ours, f"{name} is not ours: {shape(before)}"
        # A request by name can hit a topic that was recreated where no broker showed it yet, so
        # all that can be asked is that it was meant for ours.
        assert any(body["incarnation"] in self.ours for body in said), f"{name} is not ours"

    def _learn(self) -> None:
        for data in self.house.backend.versions[self.states :]:
            self.ours |= {row.incarnation or "" for row in decode(data, "").objects.values()}
        self.states = len(self.house.backend.versions)
        self.ours |= {
            r.body["incarnation"]
            for r in self.house.records("intent")
            if r.body["adopts"] and r.body["incarnation"]
        }

    # ── at each plan ────────────────────────────────────────────────────────────────────

    def plan(self, plan: Plan, said: Desired, state: State) -> None:
        """No plan deletes what is protected, not ours, or declared."""
        declared = {item.identity for item in said.declared}
        for change in plan.effective:
            if change.action is not Action.DELETE:
                continue
            row = state.objects[change.identity]
            assert change.incarnation == row.incarnation
            assert row.protected != "explicit"
            if plan.options.mode is Mode.NORMAL:
                assert change.identity not in declared
                assert row.protected == "no" or change.reason == "removed block"
            for step in change.steps:
                assert row.incarnation in step.payload.values()

    # ── at any time ─────────────────────────────────────────────────────────────────────

    def storage(self) -> None:
        """NL4, NL5: the chain holds up to the state's anchor; every state is whole, and serials
        only go up; no intent ends twice, and no started work is without its obligation."""
        self.house.check_log()
        serials = [decode(data, "").serial for data in self.house.backend.versions]
        assert serials == sorted(serials)
        ends = Counter(
            (of_run(r), r.body["step"], r.body["attempt"])
            for r in self.house.records("outcome", "recover")
            if r.body.get("outcome") in TERMINAL
        )
        intents = {(r.run, r.body["step"], r.body["attempt"]) for r in self.house.records("intent")}
        assert not [key for key, count in ends.items() if count > 1]
        assert ends.keys() <= intents
        self._owed()

    def _owed(self) -> None:
        """Each start finds its obligation open before it, and each obligation ends at most once."""
        open_: dict[int, str] = {}
        for record in self.house.records("obligation", "outcome", "recover", "discharged"):
            if record.kind == "obligation":
                assert record.body["ticket"] not in open_.values()
                open_[record.seq] = record.body["ticket"]
            elif record.kind == "discharged":
                assert open_.pop(record.body["discharges"]) == record.body["ticket"]
            elif record.body.get("outcome") == "started":
                assert record.body["ticket"] in open_.values()
        assert {record.seq for record in self.house.index.obligations} == open_.keys()

    # ── after a run that ended ──────────────────────────────────────────────────────────

    def settled(self, after: Plan, said: Desired) -> None:
        """NL2, NL4 when nothing is open: state and cluster agree, or a plan lists it.

        after: a plan that was made when every broker shows everything.
        """
        assert self.house.index.open_intents == ()
        listed = {change.identity for change in after.changes}
        spared = {d.identity: d.lifecycle for d in said.declared}
        for ident, row in self.house.state.objects.items():
            if ident in listed:
                continue
            thing = self._live[ident.key]
            assert thing.id == row.incarnation
            ours = spared.get(ident, Lifecycle())
            recorded = {
                dotted(p): v for p, v in flatten(row.attributes).items() if not ignored(p, ours)
            }
            assert recorded == {k: v for k, v in shape(thing).items() if k in recorded}
        self._nothing_lost()

    @property
    def _live(self) -> dict[str, Thing]:
        """By name: no box is called like a topic."""
        return {**self.house.cluster.topics, **self.house.cluster.depot.boxes}

    def _nothing_lost(self) -> None:
        """What we made and still lives is in the state, unless a reviewed change let it go, or
        somebody changed it while nobody could know that it was ours."""
        live = {thing.id for thing in self._live.values()}
        touched = self.house.cluster.touched | self.house.cluster.depot.touched
        recorded = {row.incarnation for row in self.house.state.objects.values()}
        let_go = {
            r.body["incarnation"]
            for r in self.house.records("outcome", "recover")
            if r.body.get("outcome") == "applied" and r.body["action"] == "forget"
        }
        changed = {
            r.body["key"]
            for r in self.house.records("outcome", "recover")
            if r.body.get("outcome") == "failed" and r.body["error"]["code"] == "CONFLICT"
        }
        for made, name in self.made.items():
            if made in live:
                foreign = name in changed and made in touched
                known = made in recorded or made in let_go or foreign
                other = self.house.state.objects.get(identity(name))
                assert known, f"{name} was made by us and forgotten; recorded: {other}"


def _says(intent: FrozenMap, before: Thing | None, after: Thing | None) -> bool:
    """True if this intent announces exactly this change of an object."""
    if after is None:
        return intent["action"] == "delete" and before and intent["incarnation"] == before.id
    if before is None:
        target = intent["target"] or EMPTY
        wanted = {dotted(p): v for p, v in flatten(target).items()}
        return intent["action"] == "create" and wanted == shape(after)
    old, new = shape(before), shape(after)
    paths = {item["path"]: item["after"] for item in intent["paths"]}
    changed = [p for p in old.keys() | new.keys() if old.get(p) != new.get(p)]
    return intent["action"] == "update" and all(
        path in paths and paths[path] == new.get(path) for path in changed
    )
