"""One state, its log and its configuration, and the people who work with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from kafkaform.core.canonical import from_data
from kafkaform.core.errors import ConnectError, KafkaformError, Locked, StorageError
from kafkaform.core.resource import Declared, Desired
from kafkaform.plan.model import Mode, Options, Plan
from kafkaform.state.codec import decode, encode
from kafkaform.state.model import drop_row
from kafkaform_kafka.memory import Killed

from ..kit.simulated import engine
from ..kit.simulated.memory_store import MemoryObjects, Surprise
from . import forgery
from .wishes import DURABLE, FOREIGN, MISHAPS, WRITES, Wish, desired
from .witness import Witness

ANYTHING = (KafkaformError, Killed)
ALL_WRITES = (*WRITES, "CreateBox", "LabelBox", "MoveBox", "DeleteBox")


@dataclass
class Home:
    """wishes: what is declared; saved: a plan that somebody kept; meddle: another person's edit;
    raced: a tool that ignores the lock saved the state while a run went on; unusable: the state
    was edited so that nothing works; good: the state before that; sent: `writes` when somebody took
    the lock over; saves: how often a tool that ignores the lock saved."""

    house: engine.House
    meddle: Callable[[str, str], None]
    wishes: dict[str, Wish] = field(default_factory=dict)
    boxes: dict[str, Declared] = field(default_factory=dict)
    removed: dict[str, bool] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    saved: Plan | None = None
    raced: bool = False
    unusable: bool = False
    good: bytes | None = None
    sent: int = 0
    saves: int = 0

    def __post_init__(self) -> None:
        self.witness = Witness(self.house)
        self.house.sink.sealed = MemoryObjects(self.house.fate)

    # ── what is wished ──────────────────────────────────────────────────────────────────

    def declare(self, new: Sequence[dict[str, Any]]) -> None:
        """New blocks, or other texts in old ones."""
        for wish in new:
            old = self.wishes.get(wish["name"])
            self.wishes[wish["name"]] = Wish(**wish, renamed=old.renamed if old else False)
            self.removed.pop(wish["name"], None)

    def undeclare(self, name: str, how: bool | None) -> None:
        """A block goes: with a `removed` block that destroys or forgets, or just so."""
        self.wishes.pop(name, None)
        self.boxes.pop(name, None)
        self.removed.pop(name, None)
        if how is not None:
            self.removed[name] = how

    def rename(self, name: str) -> None:
        """A block gets another address, with `moved` blocks that tell of it."""
        if name in self.wishes:
            self.wishes[name] = replace(self.wishes[name], renamed=not self.wishes[name].renamed)

    def place(self, new: Sequence[dict[str, Any]]) -> None:
        for item in new:
            self.boxes[item["name"]] = engine.box(**item)
            self.removed.pop(item["name"], None)

    def said(self) -> Desired:
        return desired(self.wishes, self.boxes, self.removed, **self.settings)

    # ── what the tool does ──────────────────────────────────────────────────────────────

    def plan(self, trouble: Sequence[dict[str, Any]]) -> None:
        """A plan that somebody keeps, to apply it later."""
        said = self.said()
        self.prepare(trouble)
        before = self.stored
        try:
            self.saved = engine.plan(self.house, said)
        except ANYTHING as error:
            self._tolerable(error)
        else:
            self.witness.plan(self.saved, said, self.house.state)
        alone = not any(item["kind"] == "rival" for item in trouble)  # a plan takes no lock
        assert not alone or before == self.stored, "a plan wrote"

    @property
    def stored(self) -> tuple[int, bytes | None]:
        return len(self.house.sink.whole), self.house.backend.data

    def apply(
        self,
        options: Options = engine.NORMAL,
        trouble: Sequence[dict[str, Any]] = (),
        meanwhile: Sequence[dict[str, str]] = (),
        *,
        saved: Plan | None = None,
        expect: str | None = None,
    ) -> None:
        """One run through all this. meanwhile: edits between plan and approval."""
        said = self.said()
        self.prepare(trouble)

        def shown(plan: Plan) -> None:
            if saved is None:
                self.witness.plan(plan, said, self.house.state)
            for edit in meanwhile:
                self.meddle(edit["name"], edit["deed"])

        try:
            done = engine.apply(self.house, said, options, saved=saved, expect=expect, shown=shown)
        except ANYTHING as error:
            self._tolerable(error)
        else:
            if done.already:
                self.witness.already(done.plan)
        assert not self.house.backend.lost or self.sent == self.writes, "L3: sent without the lock"

    @property
    def writes(self) -> int:
        """How many writing requests have left, whoever sent them."""
        requests = self.house.cluster.requests
        return sum(requests[api] for api in ALL_WRITES)

    def resume(self, trouble: Sequence[dict[str, Any]]) -> None:
        """The open run's approval once more, by its token alone."""
        if self.unusable:
            return
        run = self.house.index.open_run
        if run is not None and run.plan is not None:
            self.apply(trouble=trouble, expect=from_data(Plan, run.plan).token)

    def recover(self) -> None:
        """J2: what recovers and is then not approved, twice, is as once."""
        landed = self.witness.landed
        self._look()
        objects = None if self.unusable else self.house.state.objects
        closed = len(self.house.records("recover"))
        self._look()
        # What was superseded may land late, during a look, and a broker may show the past: then
        # the next look has more to see.
        late = self.witness.landed > landed or not self.witness.open_eyes
        assert self.unusable or late or self.house.state.objects == objects, "J2: another state"
        assert len(self.house.records("recover")) == closed, "J2: recovered twice"

    def _look(self) -> None:
        try:
            engine.apply(self.house, self.said(), gap=lambda plan: None, answer=False)
        except ANYTHING as error:
            self._tolerable(error)

    def _tolerable(self, error: BaseException) -> None:
        stored = isinstance(error, StorageError) and not self.unusable
        locked = isinstance(error, Locked) and not self.raced
        assert not (stored or locked), error

    # ── what goes wrong ─────────────────────────────────────────────────────────────────

    def prepare(self, trouble: Sequence[dict[str, Any]]) -> None:
        """Let all this happen during what comes."""
        for item in trouble:
            self._prepare(**item)

    def _prepare(self, kind: str, how: Any, what: str, skip: int) -> None:
        house = self.house
        if kind == "mishap":
            house.cluster.faults.schedule(MISHAPS[how], what, skip=skip)
            return
        if how == "take over" and what not in DURABLE:
            how = "plan"  # a request that is leaving is not held back any more
        if kind == "death":
            house.fate.set(what, skip, how)
            return
        happen = {
            "edit": lambda: self.meddle(how["name"], how["deed"]),
            "rival": lambda: self._rival(how),
        }[kind]
        self.witness.open_eyes = False
        for fate in (house.fate,) if what in DURABLE else (house.cluster.fate,):
            fate.surprises.append(Surprise(what, skip, happen))

    def _rival(self, how: str) -> None:
        """Somebody else works with the same state at this very moment."""
        if self.unusable or (how == "save" and self.house.backend.data is None):
            return
        if how == "take over":
            if not self.house.backend.lost:
                self.house.backend.lost = self.raced = True
                self.sent = self.writes
            return
        if how == "save":
            self.raced = True
            self.saves += 1
            state = self.house.state
            self.house.backend.data = encode(replace(state, serial=state.serial + 1))
            return
        before, saves = self.stored, self.saves
        screen = self.house.screen
        try:
            if how == "plan":
                self.saved = engine.plan(self.house, self.said())
            else:
                was_held = self.house.backend.held
                engine.apply(self.house, self.said())
                assert not was_held, "L1: two runs at once"
        except ANYTHING:
            pass
        else:
            assert how == "plan" or not was_held
        if how == "plan" or was_held:
            # A tool that ignores the lock may do so at this moment too.
            assert saves < self.saves or before == self.stored, "a second runner wrote"
        self.house.screen = screen

    def forge(self, how: str, name: str) -> None:
        """Somebody edits the state by hand."""
        self.good = self.good if self.unusable else self.house.backend.data
        if not self.unusable and forgery.forge(self.house, how, name):
            self.unusable = how in forgery.UNUSABLE
            if how not in forgery.WHOLE and not self.unusable:
                self.witness.forged |= {name, FOREIGN}
            self.witness.rebase()

    def roll_back(self, versions: int) -> None:
        """An old copy of the state is put back; the log is today's."""
        kept = self.house.backend.versions
        if kept:
            self.house.backend.data = kept[-1 - versions % len(kept)]
            self.unusable = False

    def lose_state(self) -> None:
        """The state is deleted, the log stays."""
        if self.house.backend.versions:
            self.house.backend.data, self.unusable = None, False

    def lose_log(self) -> None:
        """The log is deleted, the state stays; nothing works until it is put back."""
        sink, head = self.house.sink, None if self.unusable else self.house.state.audit_head
        if head is None:
            return
        whole, records = sink.whole, sink.records
        for left in (0, head.seq - 1):
            sink.whole, sink.records = whole[:left], records[:left]
            before = self.stored, self.house.cluster.requests.copy()
            with suppress(Killed):
                try:
                    engine.apply(self.house, self.said())
                except StorageError:
                    pass
                else:
                    raise AssertionError("A1: a log that was cut off is believed")
            assert before == (self.stored, self.house.cluster.requests), "it sent or wrote"
        sink.whole, sink.records = whole, records

    # ── when all is calm ────────────────────────────────────────────────────────────────

    def calm(self) -> None:
        """Everything works again: one apply recovers and converges, a second has nothing to do."""
        house = self.house
        self._mend()
        said = self.said()
        recovered = self._around(said)
        self._mend()
        done = engine.apply(
            house,
            said,
            recovered,
            shown=lambda plan: self.witness.plan(plan, said, self.house.state),
        )
        assert done.report is None or done.report.complete, done.report
        after = engine.plan(house, said)
        self.witness.settled(after, said)
        if not any(change.adopts for change in done.plan.effective):
            again = engine.plan(house, said, recovered)
            assert again.effective == (), again.effective
            assert again.drifted == (), again.drifted
        house.clock.advance(3600.0)
        engine.apply(house, said, recovered)
        assert house.index.obligations == ()
        self.witness.storage()

    def _around(self, said: Desired) -> Options:
        """Options that go round what cannot be done, after one apply that recovers."""
        self.recover()
        try:
            engine.apply(self.house, said, fail_on=("blocked", "drift"))
        except KafkaformError as error:
            assert not isinstance(error, StorageError | Locked | ConnectError), error
        stopping = engine.plan(self.house, said).list_blocked(stopping=True)
        return Options(exclude=tuple(change.address for change in stopping))

    def _mend(self) -> None:
        """The state as it was is put back over one that cannot be used, and
        rows that somebody forged are taken out (`state rm`)."""
        backend = self.house.backend
        if self.unusable:
            backend.data, self.unusable = self.good, False
        if not self.witness.forged or backend.data is None:
            return
        state = decode(backend.data, "")
        for ident in [i for i in state.objects if i.key in self.witness.forged]:
            state = drop_row(state, ident)
        backend.data = encode(replace(state, serial=state.serial + 1))
        self.witness.rebase()


def options(mode: str, most: int | None) -> Options:
    return Options(Mode(mode), max_deletes=most)
