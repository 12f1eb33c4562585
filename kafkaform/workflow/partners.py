"""Asks the system behind the one that a command of `explain` has asked for what only that system
knows (`provider.commands.PartnerQuestion`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from ..core.errors import KafkaformError
from ..core.resource import CoverageKind, InstanceWorld
from ..core.value import FrozenMap
from ..plan.observe import Look
from ..plan.uses import expand_patterns
from ..provider.commands import PartnerQuestion, PartnerReply, Question
from ..provider.contract import Session
from ..provider.registry import Registry
from .connection import Connection

HIDDEN = "this login may not see all of them"


def ask_partner(
    question: PartnerQuestion,
    connections: Iterator[Connection],
    id: str | None,
    open_session: Callable[[Connection], AbstractContextManager[Session]],
) -> PartnerReply:
    """The reply of the system with this id, which one of the connections leads to."""
    reason = f'no provider "{question.provider}" block leads to {id or "the system behind it"}'
    try:
        for connection in connections:
            # Another block can lead to the right system while this one leads nowhere.
            try:
                with open_session(connection) as session:
                    if session.facts.scope_id == id:
                        return _read_reply(question, connection, session)
            except KafkaformError as error:
                reason = error.message
    except KafkaformError as error:
        reason = error.message
    return PartnerReply(reason=reason)


def _read_reply(
    question: PartnerQuestion, connection: Connection, session: Session
) -> PartnerReply:
    """Raises KafkaformError."""
    document = _read_document(question, session) if question.command else None
    if question.principal is None:
        return PartnerReply(document)
    instance, provider = connection.instance, connection.provider
    look = Look({instance: session}, {instance: InstanceWorld(session.facts, {})})
    sweeps = look.collect_sweeps(instance, provider.access_needs)
    for sweep in sweeps.values():
        # A right that is not shown would be told as missing.
        if sweep.coverage.kind is not CoverageKind.COMPLETE:
            fault = sweep.coverage.fault
            return PartnerReply(document, reason=fault.message if fault else HIDDEN)
    uses = [*expand_patterns(question.uses, (), look, instance)]
    missing = provider.find_missing_rights(question.principal, uses, (), sweeps, session.facts)
    return PartnerReply(document, missing)


def _read_document(question: PartnerQuestion, session: Session) -> FrozenMap:
    (command,) = (
        command
        for group in Registry().load_commands("describe")
        for command in group.commands
        if (group.provider, command.name) == (question.provider, question.command)
    )
    further = command.make(**question.arguments)
    assert isinstance(further, Question)
    return further.read(session).document
