"""What must hold of every change that reaches the cluster, and of every state and log.

"Nothing lost" (NL1–NL5): each mutation has an earlier durable intent and is part of an approved
plan; what is ours and what is live agree, or a plan lists the difference; each intent ends once;
the log verifies; a state is wholly old or wholly new. Nothing is deleted that the log does not
prove to be ours (D1), and at most one run has open intents (L1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kafkaform.audit.index import MAKING, SUCCEEDED, TERMINAL, get_run
from kafkaform.audit.records import Record
from kafkaform.core.change import Action
from kafkaform.core.errors import StorageError
from kafkaform.core.resource import Desired, Lifecycle
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.plan.diff import flatten, is_ignored, render_path
from kafkaform.plan.judge import LARGE_SHARE, MANY
from kafkaform.plan.model import Mode, Plan
from kafkaform.state.model import State
from kafkaform_kafka.memory import SimulatedTopic

from ..kit.simulated.boxes import Box
from ..kit.simulated.engine import House, identity
from ..kit.simulated.memory_store import state_in

Thing = SimulatedTopic | Box
GONE = ("it is already gone", "the recorded object is gone", "deleted outside kafkaform")
"""Reasons of changes that let go of what they say is not there."""


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
    return {render_path(path): value for path, value in flatten(whole).items()}


def same(before: Thing | None, after: Thing | None) -> bool:
    """True if nothing changes that anybody could see."""
    return (
        shape(before) == shape(after)
        and before is not None
        and after is not None
        and before.id == after.id
    )


@dataclass(slots=True)
class Witness:
    """Sits on the wire between one state's engine and the cluster. ours: ids of what the engine
    made or adopted; made: id -> name of what it created; theirs: ids of what another state's
    engine changed; forged: names whose rows somebody edited by hand; open_eyes: what the engine
    reads is what there is, and nobody interferes while it works; archive: of logs that were
    lost; touched: name -> the log's length when somebody else changed it; landed: how many
    changes of ours did."""

    house: House
    ours: set[str] = field(default_factory=set)
    made: dict[str, str] = field(default_factory=dict)
    theirs: set[str] = field(default_factory=set)
    forged: set[str] = field(default_factory=set)
    open_eyes: bool = False
    archive: list[Record] = field(default_factory=list)
    touched: dict[str, int] = field(default_factory=dict)
    landed: int = 0
    learned: int = 0
    states: int = 0
    seen: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self.house.sink.after_append = self.appended

    def rebase(self) -> None:
        """The state was edited by hand: look at all of it again."""
        self.seen = (-1, -1)

    # ── at each mutation ────────────────────────────────────────────────────────────────

    def announced(self, name: str, before: Thing | None, after: Thing | None) -> list[Record]:
        """NL1, NL3: the approved, durable intents that say exactly this; only the open ones, if
        there are any."""
        records = [*self.archive, *self.house.sink.records]
        approved = {(r.run, r.body["approval"]) for r in records if r.kind == "approval"}
        said = [
            r
            for r in records
            if r.kind == "intent"
            and r.body["key"] == name
            and (r.run, r.body["approval"]) in approved
            and _says(r.body, before, after)
        ]
        return [r for r in said if self._is_open(r)] or said

    def _is_open(self, intent: Record) -> bool:
        ends = {(get_run(r), r.body.get("step"), r.body.get("attempt")) for r in self._ends}
        return (intent.run, intent.body["step"], intent.body["attempt"]) not in ends

    def in_flight(self, said: Sequence[Record]) -> bool:
        """True if one of these intents has no outcome yet."""
        return any(self._is_open(intent) for intent in said)

    @property
    def _ends(self) -> list[Record]:
        ends = [*self.archive, *self.house.records("outcome", "recover")]
        return [r for r in ends if r.body.get("outcome") in TERMINAL]

    def mutation(
        self, name: str, before: Thing | None, after: Thing | None, said: Sequence[Record]
    ) -> None:
        """NL3, D1: the object is ours, and is what the plan said that it was."""
        self.landed += 1
        if before is None:
            assert after is not None
            self.ours.add(after.id)
            self.made[after.id] = name
            return
        self._learn()
        if after is None:
            assert before.id in self.ours, f"D1: {name} is not ours: {shape(before)}"
        # A request by name can hit a topic that was recreated where no broker showed it yet, so
        # all that can be asked is that it was meant for ours.
        ours = self.ours | self._forged_ids
        meant = any(record.body["incarnation"] in ours for record in said)
        assert meant, f"NL3: {name} is not ours"
        if self.open_eyes and after is not None and all(r.run == self._run for r in said):
            # What somebody changes while a request is under way, nobody can have reviewed.
            late = any(r.seq <= self.touched.get(name, 0) for r in said)
            assert late or any(_reviewed(r.body, before, after) for r in said), (
                f"NL3: {name} was {shape(before)}, which is not what was reviewed"
            )

    @property
    def _run(self) -> str:
        begun = self.house.records("run_begin")
        return begun[-1].run if begun else ""

    @property
    def _forged_ids(self) -> set[str]:
        with suppress(StorageError):  # a late request may land after the state was damaged
            rows = self.house.state.objects.items()
            return {row.incarnation or "" for ident, row in rows if ident.key in self.forged}
        return set()

    def _learn(self) -> None:
        records = self.house.sink.records
        for record in records[self.learned :]:
            body = record.body
            if record.kind == "intent" and body["adopts"] and body["incarnation"]:
                self.ours.add(body["incarnation"])
            ended = record.kind in ("outcome", "recover") and body.get("outcome") in SUCCEEDED
            if ended and body["action"] in MAKING and body["incarnation"]:
                self.ours.add(body["incarnation"])
        self.learned = len(records)

    # ── at each append ──────────────────────────────────────────────────────────────────

    def appended(self, records: Sequence[Record]) -> None:
        """D1: what is to be deleted is in the state when its intent is written."""
        doomed = [r.body for r in records if r.kind == "intent" and r.body["action"] == "delete"]
        objects = self.house.state.objects if doomed else {}
        for body in doomed:
            row = objects.get(identity(body["key"], body["kind"]))
            assert row is not None, f"D1: {body['key']} is not in the state"
            assert row.incarnation == body["incarnation"], f"D1: another {body['key']}"

    # ── at each plan ────────────────────────────────────────────────────────────────────

    def plan(self, plan: Plan, said: Desired, state: State) -> None:
        """No plan deletes what is protected, not ours, or declared, or too much at once."""
        declared = {item.identity for item in said.declared}
        for change in plan.effective:
            row = state.objects.get(change.identity)
            if change.action in (Action.CREATE, Action.FORGET) and row and change.reason in GONE:
                thing = self._live.get(change.identity.key)
                there = thing is not None and thing.id == row.incarnation
                assert not there, f"I8: {change.address} is there: {change.reason}"
        doomed = [change for change in plan.effective if change.action is Action.DELETE]
        for change in doomed:
            row = state.objects[change.identity]
            assert change.incarnation == row.incarnation
            assert row.protected not in ("explicit", "shared"), f"{change.address} is protected"
            if plan.options.mode is Mode.NORMAL:
                assert change.identity not in declared
                assert row.protected == "no" or change.reason == "removed block"
            for step in change.steps:
                assert row.incarnation in step.payload.values()
        if plan.options.mode is Mode.DESTROY or plan.options.max_deletes is not None:
            return
        for kind, count in Counter(change.identity.kind for change in doomed).items():
            whole = sum(1 for ident in state.objects if ident.kind == kind)
            assert count < MANY or count <= whole * LARGE_SHARE, f"{count} of {whole}"

    def already(self, plan: Plan) -> None:
        """What counts as applied already is there."""
        for change in plan.effective if self.open_eyes else ():
            thing = self._live.get(change.identity.key)
            if change.action is Action.DELETE:
                assert thing is None or thing.id != change.incarnation, change.address
            elif change.steps:
                now, after = (
                    shape(thing),
                    {render_path(p): v for p, v in flatten(change.after).items()},
                )
                paths = [render_path(item.path) for item in change.paths]
                wrong = [p for p in paths if p in after and p in now and now[p] != after[p]]
                assert thing is not None and not wrong, f"{change.address} is {now}"

    # ── at any time ─────────────────────────────────────────────────────────────────────

    def storage(self) -> None:
        """NL4, NL5, L1, S2: the chain holds up to the state's anchor; every state is whole and
        follows the one that it was saved over; each intent ends once or is open, and all open
        ones are of one run; no started work is without its obligation."""
        now = len(self.house.sink.records), len(self.house.backend.versions)
        if now == self.seen:
            return
        self.seen = now
        self._serials()
        self.house.check_log()
        ends = Counter((get_run(r), r.body["step"], r.body["attempt"]) for r in self._ends)
        twice = [key for key, count in ends.items() if count > 1]
        assert not twice, f"NL4: these ended twice: {twice}"
        intents = {(r.run, r.body["step"], r.body["attempt"]) for r in self.house.records("intent")}
        assert ends.keys() <= intents, "NL1: an outcome without an intent"
        still = intents - ends.keys()
        assert len({run for run, _, _ in still}) <= 1, f"L1: open intents of runs {still}"
        self._owed()
        self._proven()

    def _serials(self) -> None:
        backend = self.house.backend
        pairs = list(zip(backend.bases, backend.versions, strict=True))[self.states :]
        for base, data in pairs:
            after = state_in(data)
            if base is None:
                continue
            before = state_in(base)
            moved = after.objects != before.objects or after.outputs != before.outputs
            step = after.serial - before.serial
            assert step in ((1,) if moved else (0, 1)), f"S2: serial {before.serial} + {step}"
            assert before.lineage in ("", after.lineage), "S2: another lineage"
        self.states = len(backend.versions)

    def _proven(self) -> None:
        """A row that nobody forged tells of something that we made or adopted."""
        self._learn()
        data = self.house.backend.versions[-1:]
        objects = state_in(data[0]).objects if data else {}
        foreign = [
            ident.key
            for ident, row in objects.items()
            if row.incarnation not in self.ours and ident.key not in self.forged
        ]
        assert not foreign, f"D1: the state has {foreign}, which were never ours"

    def _owed(self) -> set[int]:
        """Each start finds its obligation open before it, and each obligation ends at most once;
        the seq of those that did not."""
        open_: dict[int, str] = {}
        for record in self.house.records("obligation", "outcome", "recover", "discharged"):
            if record.kind == "obligation":
                assert record.body["ticket"] not in open_.values()
                open_[record.seq] = record.body["ticket"]
            elif record.kind == "discharged":
                assert open_.pop(record.body["discharges"]) == record.body["ticket"]
            elif record.body.get("outcome") == "started":
                assert record.body["ticket"] in open_.values(), "started, and nothing is owed"
        return set(open_)

    # ── after a run that ended ──────────────────────────────────────────────────────────

    def settled(self, after: Plan, said: Desired) -> None:
        """NL2, NL4 when nothing is open: state and cluster agree, or a plan lists it.

        after: a plan that was made when every broker shows everything.
        """
        found = self.house.index
        assert found.open_intents == ()
        assert {record.seq for record in found.obligations} == self._owed()
        listed = {change.identity for change in after.changes}
        spared = {d.identity: d.lifecycle for d in said.declared}
        for ident, row in self.house.state.objects.items():
            if ident in listed:
                continue
            thing = self._live.get(ident.key)
            assert thing is not None, f"NL2: {ident.key} is recorded, and nothing is there"
            assert thing.id == row.incarnation, f"NL2: {ident.key} is another one"
            ours = spared.get(ident, Lifecycle())
            recorded = {
                render_path(p): v
                for p, v in flatten(row.attributes).items()
                if not is_ignored(p, ours)
            }
            live = {k: v for k, v in shape(thing).items() if k in recorded}
            assert recorded == live, f"NL2: {ident.key} is {live}, recorded {recorded}"
        self._nothing_lost()

    @property
    def _live(self) -> dict[str, Thing]:
        """By name: no box is called like a topic."""
        return {**self.house.cluster.topics, **self.house.cluster.depot.boxes}

    def _nothing_lost(self) -> None:
        """What we made and still lives is in the state, unless a reviewed change let it go, or
        somebody changed it while nobody could know that it was ours."""
        live = {thing.id for thing in self._live.values()}
        touched = self.house.cluster.touched | self.house.cluster.depot.touched | self.theirs
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
            if made in live and name not in self.forged:
                foreign = name in changed and made in touched
                known = made in recorded or made in let_go or foreign
                other = self.house.state.objects.get(identity(name))
                assert known, f"NL2: {name} was made by us and forgotten; recorded: {other}"


def _reviewed(intent: FrozenMap, before: Thing, after: Thing) -> bool:
    """True if this intent was planned for the object that is changed, as it is now."""
    old, new = shape(before), shape(after)
    paths = {item["path"]: item["before"] for item in intent["paths"]}
    return intent["incarnation"] == before.id and all(
        paths[p] == old.get(p) for p in old.keys() | new.keys() if old.get(p) != new.get(p)
    )


def _says(intent: FrozenMap, before: Thing | None, after: Thing | None) -> bool:
    """True if this intent announces exactly this change of an object."""
    if after is None:
        return intent["action"] == "delete" and before and intent["incarnation"] == before.id
    if before is None:
        target = intent["target"] or EMPTY
        wanted = {render_path(p): v for p, v in flatten(target).items()}
        return intent["action"] == "create" and wanted == shape(after)
    old, new = shape(before), shape(after)
    paths = {item["path"]: item["after"] for item in intent["paths"]}
    changed = [p for p in old.keys() | new.keys() if old.get(p) != new.get(p)]
    return intent["action"] == "update" and all(
        path in paths and paths[path] == new.get(path) for path in changed
    )
