"""Engines with one deliberate fault each, to prove that the machine would see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kafkaform.apply import execution, recovery
from kafkaform.apply.ledger import Ledger
from kafkaform.apply.recovery import Replayed
from kafkaform.audit.index import LogIndex, index_log
from kafkaform.audit.records import read_glances
from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.resource import FaultClass
from kafkaform.plan import build, lifecycle, observe
from kafkaform.provider.contract import Session
from kafkaform.state.model import Held
from kafkaform.workflow import applying, plan_choice, workspace

from ..kit.simulated.memory_store import MemoryBackend

Patch = tuple[Any, str, Any]


def _unknown_is_applied() -> list[Patch]:
    real = execution.settle_results

    def settled(unclear: Any, *rest: Any) -> Any:
        good = [replace(r, outcome=Outcome(r.step.id, OutcomeStatus.APPLIED)) for r in unclear]
        return real((), *rest) + tuple(good)

    return [(execution, "settle_results", settled)]


def _sent_before_its_intent() -> list[Patch]:
    """Intents are written together with the outcomes."""
    intend, record, waiting = Ledger.write_intents, Ledger.record_outcomes, list[Any]()

    def later(self: Ledger, plan: Any, results: Any) -> None:
        waiting.append((self, plan, results))

    def both(self: Ledger, plan: Any, results: Any) -> None:
        for item in waiting:
            intend(*item)
        waiting.clear()
        record(self, plan, results)

    return [(Ledger, "write_intents", later), (Ledger, "record_outcomes", both)]


def _stale_save() -> list[Patch]:
    """A save looks at the version that is there, instead of the one that was loaded."""
    save = MemoryBackend.save

    def over_any(self: MemoryBackend, state: Any, version: str | None) -> str:
        return save(self, state, self.load().version)

    return [(MemoryBackend, "save", over_any)]


def _absent_by_one_broker() -> list[Patch]:
    def one(session: Session, ids: Any, *rest: Any) -> Any:
        return session.read(ids, at=session.facts.nodes[-1]) if ids else {}

    return [(observe, "confirm_absent", one)]


def _error_36_is_success() -> list[Patch]:
    real = execution._is_unclear
    taken = FaultClass.CONVERGED

    def unclear(result: Any) -> bool:
        return real(result) or execution._has_fault(result, taken)

    return [(execution, "_is_unclear", unclear)]


def _state_never_saved() -> list[Patch]:
    return [(Ledger, "save_state", lambda self, after: setattr(self, "state", after))]


def _unanchored(sink: Any, state: Any) -> LogIndex:
    head = state.audit_head if state else None
    return index_log(read_glances(sink.lines(), sink.location), head)


def _never(*arguments: Any) -> None:
    return None


MUTANTS: Mapping[str, Callable[[], list[Patch]]] = {
    "freshness is skipped": lambda: [
        (applying, "refuse_if_stale", _never),
        (execution, "refuse_if_stale", _never),
    ],
    "unknown counts as applied": _unknown_is_applied,
    "sent before its intent": _sent_before_its_intent,
    "absent because one broker says so": _absent_by_one_broker,
    "deletes need no proof": lambda: [(applying, "refuse_unproven_removals", _never)],
    "obligations are forgotten": lambda: [(Ledger, "_list_started", lambda *_: [])],
    "obligations are never discharged": lambda: [(Ledger, "discharge_ended", _never)],
    "always superseded": lambda: [(recovery, "_can_repeat_at_once", lambda *_: True)],
    "the state is never saved": _state_never_saved,
    "a save over any version": _stale_save,
    "what exists already was made by us": _error_36_is_success,
    "no patience": lambda: [
        (execution, "compute_patience", lambda facts: 0.0),
        (recovery, "compute_patience", _never),
    ],
    "no patience in recovery": lambda: [(recovery, "compute_patience", lambda facts: 0.0)],
    "no recovery": lambda: [(applying, "close_earlier_runs", lambda space, ask, found, *_: found)],
    "what the log knows is not taken in": lambda: [
        (recovery, "replay_log", lambda found, state: Replayed(state))
    ],
    "no protection": lambda: [(lifecycle, "_block_protected", lambda *_, **__: None)],
    "no guard": lambda: [(build, "apply_guards", lambda changes, *_: tuple(changes))],
    "no lock": lambda: [(MemoryBackend, "lock", lambda *_: nullcontext(Held()))],
    "a log that was cut off is believed": lambda: [(applying, "read_log", _unanchored)],
    "all of an open run is done": lambda: [(plan_choice, "_is_shown", lambda *_: True)],
    "any cluster will do": lambda: [
        (build, "refuse_other_scopes", _never),
        (plan_choice, "refuse_if_foreign", _never),
        (recovery, "refuse_other_system", _never),
        (workspace, "refuse_other_scope", _never),
    ],
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Inside, the engine has this fault."""
    with ExitStack() as stack:
        for owner, attribute, new in MUTANTS[name]():
            stack.enter_context(patch.object(owner, attribute, new))
        yield
