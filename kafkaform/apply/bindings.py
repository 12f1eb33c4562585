"""Systems that state and log know by half of their id only.

Earlier versions opened a session although a server had not said whose it is, and recorded an id
without its second half, such as `kind:` or `kind:/group`. Such an id names no other system than the
one that answers now with a whole one, so it is completed instead of refused: by a plan for itself,
and by the next apply for good, with a record in the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..audit.index import LogIndex
from ..audit.journal import make_state_edit_body
from ..audit.records import RecordKind
from ..core.errors import OtherSystem
from ..core.resource import Observed
from ..core.words import Vocabulary
from ..provider.contract import Session
from ..state.model import State, set_scope
from .ledger import Ledger

REASON = "apply"
"""What completes an id, as the record names it."""


class Binding(Struct, frozen=True):
    """A provider instance whose system is known by half, and which system it is."""

    half: str
    """The recorded id."""
    scope_id: str
    """The whole id, as the system says it."""


def find_bindings(
    state: State, index: LogIndex, sessions: Mapping[str, Session]
) -> Mapping[str, Binding]:
    """Provider instance -> the whole id of its system, for those that state or log know by half.
    Raises OtherSystem if objects are recorded there and the system has none of them."""
    bindings: dict[str, Binding] = {}
    for instance, session in sessions.items():
        whole = session.facts.scope_id
        for recorded in (index.scopes.get(instance), state.providers.get(instance)):
            if recorded is not None and _is_half(recorded, whole):
                bindings[instance] = Binding(recorded, whole)
    for instance, binding in bindings.items():
        _refuse_strange(state, instance, binding, sessions[instance])
    return bindings


def _is_half(recorded: str, whole: str) -> bool:
    """Whether the recorded id lacks what the whole one has between `kind:` and `/group`."""
    kind, colon, identifier = recorded.partition(":")
    if not colon or (identifier and not identifier.startswith("/")) or recorded == whole:
        return False
    return whole.startswith(f"{kind}:") and whole.endswith(identifier)


def _refuse_strange(state: State, instance: str, binding: Binding, session: Session) -> None:
    """Raises OtherSystem if none of the recorded objects is there: it may be another system."""
    recorded = [identity for identity in state.objects if identity.instance == instance]
    if not recorded:
        return
    readings = session.read(recorded)
    session.prove()
    if any(isinstance(reading, Observed) for reading in readings.values()):
        return
    words = session.words
    raise OtherSystem(
        f'the state knows the {words.system} of "{instance}" only as {binding.half}; '
        f"{binding.scope_id} answers, and it shows none of the {len(recorded):,} recorded objects, "
        f"so it may be another {words.system}",
        f"{words.check_address} If it is the right one, and its objects are gone for good, forget "
        f"them with `kafkaform state rm --provider {instance}`.",
    )


def complete_index(index: LogIndex, bindings: Mapping[str, Binding]) -> LogIndex:
    """What the log proves, with whole ids."""
    if not bindings:
        return index
    origins = {
        seq: replace(origin, scope_id=binding.scope_id)
        if (binding := bindings.get(origin.identity.instance)) and origin.scope_id == binding.half
        else origin
        for seq, origin in index.origins.items()
    }
    scopes = {instance: binding.scope_id for instance, binding in bindings.items()}
    return replace(index, origins=origins, scopes={**index.scopes, **scopes})


def complete_records(
    state: State, index: LogIndex, bindings: Mapping[str, Binding]
) -> tuple[State, LogIndex]:
    """State and log with whole ids; nothing is saved."""
    for instance, binding in bindings.items():
        state = set_scope(state, instance, binding.scope_id)
    return state, complete_index(index, bindings)


def record_bindings(
    ledger: Ledger, index: LogIndex, bindings: Mapping[str, Binding]
) -> tuple[LogIndex, Mapping[str, Binding]]:
    """Record the whole ids, first in the log and then in the state. The index of the log after
    that, and what was recorded. Raises StorageError, Locked."""
    # What an earlier run recorded may have been taken from the log meanwhile.
    bindings = {
        instance: binding
        for instance, binding in bindings.items()
        if binding.half in (ledger.state.providers.get(instance), index.scopes.get(instance))
    }
    if not bindings:
        return index, bindings
    scopes = {instance: binding.scope_id for instance, binding in bindings.items()}
    serial, version = ledger.state.serial + 1, ledger.version or ""
    edit = make_state_edit_body(serial, version, REASON, {}, scopes=scopes)
    ledger.journal.write_all([(RecordKind.STATE, edit)])
    state, index = complete_records(ledger.state, index, bindings)
    ledger.save_state(state)
    return replace(index, head=ledger.journal.head), bindings


def describe_bindings(
    bindings: Mapping[str, Binding], words: Vocabulary, end: str
) -> Iterator[str]:
    """A line about each system that has proven who it is. end: what becomes of it."""
    for instance, binding in bindings.items():
        yield (
            f'The state knew the {words[instance].system} of "{instance}" only as {binding.half}, '
            f"and it has proven to be {binding.scope_id}. {end}"
        )
