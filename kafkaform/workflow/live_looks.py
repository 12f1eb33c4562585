"""Looks at live systems that a person asks for: in a browser or an editor, who uses an object now
and how full the system is; with a command of `explain`, what only the system behind knows
(`provider.commands.PartnerQuestion`).

A look is what the provider's group of commands `look` asks, within the bounds of a plan. Nothing is
ever looked at again by itself: an answer, also that of a failure, is kept for a while and shown
with its age, and whoever asks while a look is under way gets its answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from pathlib import Path
from threading import Event, Lock, Thread

from msgspec import Struct
from msgspec.structs import replace

from ..core.diagnostics import has_errors
from ..core.errors import ConfigurationError, KafkaformError, OtherSystem
from ..core.progress import ignore_event, report_slow_tasks
from ..core.resource import CoverageKind, InstanceWorld
from ..core.secret import mask_secrets
from ..core.text import Grid, Prose, make_sentence, render_span
from ..core.value import FrozenMap
from ..plan.model import Extent
from ..plan.observe import BOUNDS, Look
from ..plan.uses import expand_patterns
from ..provider.commands import Command, PartnerQuestion, PartnerReply, Question
from ..provider.contract import Session
from ..provider.registry import Registry
from ..render.text import render_page
from .configuration.evaluation import Inputs
from .connection import Connection, resolve_instance, resolve_objects

GROUP = "look"
"""The group of commands whose questions are looks. No command line has it."""
KEPT_SECONDS = 300.0
"""How long an answer is shown."""
WAIT_SECONDS = 20.0
"""How long somebody waits for a look; connecting can take longer than the look itself."""
KEPT = 200
"""How many answers are kept at most, the newest."""
OBJECTS = 5
"""Objects of one block that are looked at."""
HOVER_SECONDS, WIDTH = 60.0, 100
"""The age at which an answer will do for a hover, and its columns."""


class Subject(Struct, frozen=True):
    """What is looked at."""

    folder: Path
    """Whose configuration says how to connect."""
    instance: str = ""
    """The provider instance."""
    kind: str = ""
    """The type of the object; empty for the system as a whole."""
    key: str = ""
    """Of the object."""
    scope_id: str = ""
    """The system that has to answer; empty for any."""
    address: str = ""
    """The block whose objects are looked at, `TYPE.NAME`, in the place of `instance`, `kind` and
    `key`."""


class LookAnswer(Struct, frozen=True):
    """What a look has seen."""

    time: float
    """When it ended, seconds since 1970."""
    page: Sequence[str | Grid | Prose] = ()
    """What there is to show, without secrets."""
    fault: str = ""
    """Why nothing was seen, and what to do; empty if something was."""

    @property
    def age(self) -> int:
        """Seconds."""
        return max(0, int(time.time() - self.time))


class _Run(Struct):
    """A look that is under way."""

    ended: Event
    answer: LookAnswer | None = None
    error: Exception | None = None
    """What nobody expected."""


class LiveLooks:
    """The looks of one window or editor. Any thread may call it."""

    def __init__(self, inputs: Inputs) -> None:
        """inputs: the values of the configurations' variables."""
        self._inputs, self._registry = inputs, Registry()
        # The filter of secrets belongs to the command, and a new thread would not have it.
        self._context = copy_context()
        self._lock, self._turn = Lock(), Lock()
        self._runs: dict[Subject, _Run] = {}
        self._answers: dict[Subject, LookAnswer] = {}

    def find_lead(self, kind: str, instance: str) -> str:
        """What a look at objects of this type says, as a sentence; empty if there is no such
        look."""
        command = self._find_command(kind, instance)
        return "" if command is None else (command.make.__doc__ or "").partition("\n")[0]

    def find_answer(self, subject: Subject) -> LookAnswer | None:
        """The answer that is kept; None without one. Asks nobody."""
        with self._lock:
            answer = self._answers.get(subject)
        return answer if answer is not None and answer.age < KEPT_SECONDS else None

    def list_lines(self, folder: Path, address: str) -> Sequence[str]:
        """What a look at the objects of a block shows, or a look of the last minute, laid out for a
        hover; none for objects that cannot be looked at."""
        kind = address.partition(".")[0]
        if all(kind != command.name for _, command in self._list_commands()):
            return ()
        answer = self.ask(Subject(folder, address=address), HOVER_SECONDS)
        if answer is None:
            return ("The system has not answered yet. Ask again in a moment.",)
        page = answer.page or (Prose(answer.fault),)
        head = f"Now (asked {render_span(answer.age)} ago):"
        return (head, *render_page(iter(page), WIDTH))

    def is_running(self, subject: Subject) -> bool:
        """Whether a look at this is under way."""
        with self._lock:
            return subject in self._runs

    def ask(self, subject: Subject, oldest: float = 0.0) -> LookAnswer | None:
        """Look, or wait for the look that is under way; None if it takes longer than WAIT_SECONDS.
        oldest: the age in seconds at which an answer that is kept will do. Raises what nobody
        expected."""
        answer = self.find_answer(subject)
        if answer is not None and answer.age < oldest:
            return answer
        with self._lock:
            run = self._runs.get(subject)
            if run is None:
                run = self._runs[subject] = _Run(Event())
                work = self._context.copy().run
                # A daemon: a system that does not answer must not keep the command from ending.
                Thread(target=work, args=(self._carry_out, subject, run), daemon=True).start()
        run.ended.wait(WAIT_SECONDS)
        if run.error is not None:
            raise run.error
        return run.answer

    def _carry_out(self, subject: Subject, run: _Run) -> None:
        try:
            # One look at a time: many open pages must not become as many logins.
            with self._turn, report_slow_tasks(ignore_event):
                run.answer = self._look(subject)
        except Exception as error:  # noqa: BLE001  # whoever waits for the look gets it
            run.error = error
        with self._lock:
            del self._runs[subject]
            self._answers.pop(subject, None)
            if run.answer is not None:
                self._answers[subject] = run.answer
            for oldest in list(self._answers)[:-KEPT]:
                del self._answers[oldest]
        run.ended.set()

    def _look(self, subject: Subject) -> LookAnswer:
        try:
            page = tuple(map(_mask_item, self._read_page(subject)))
        except KafkaformError as error:
            return LookAnswer(time.time(), fault=mask_secrets(_explain(error)))
        return LookAnswer(time.time(), page)

    def _read_page(self, subject: Subject) -> Iterator[str | Grid | Prose]:
        """Raises KafkaformError."""
        if not subject.address:
            connection = resolve_instance(subject.folder, self._inputs, subject.instance)
            yield from self._ask_system(connection, subject, [subject.key])
            return
        groups = resolve_objects(subject.folder, self._inputs, subject.address)
        if not groups:
            yield Prose("The saved configuration declares no object here.")
        for connection, keys in groups:
            if len(groups) > 1:
                yield connection.instance
            yield from self._ask_system(connection, subject, keys[:OBJECTS])
            if len(keys) > OBJECTS:
                yield Prose(f"{len(keys) - OBJECTS:,} objects more were not looked at.")

    def _ask_system(
        self, connection: Connection, subject: Subject, keys: Sequence[str]
    ) -> Iterator[str | Grid | Prose]:
        kind = subject.kind or subject.address.partition(".")[0]
        command = self._find_command(kind, connection.instance)
        if command is None:
            return
        question = command.make(keys, BOUNDS[Extent.FAST])
        assert isinstance(question, Question)
        session = connection.open()
        try:
            scope = session.facts.scope_id
            if subject.scope_id and scope != subject.scope_id:
                raise OtherSystem(
                    f"{connection.instance} leads to {scope}, and the state is about "
                    f"{subject.scope_id}",
                    "Correct the address in the provider block.",
                )
            document = question.read(session).document
        finally:
            session.close()
        yield from question.page(document)

    def _find_command(self, kind: str, instance: str) -> Command | None:
        provider = instance.partition(".")[0]
        looks = self._list_commands()
        return next((look for name, look in looks if (name, look.name) == (provider, kind)), None)

    def _list_commands(self) -> Iterator[tuple[str, Command]]:
        """Provider and look."""
        for group in self._registry.load_commands(GROUP):
            for command in group.commands:
                yield group.provider, command


def _explain(error: KafkaformError) -> str:
    """The error with the first fault of a configuration, and what to do."""
    if isinstance(error, ConfigurationError) and has_errors(error.diagnostics):
        fault = error.diagnostics[0]
        line = f" ({fault.range})" if fault.range else ""
        text, advice = f"{error.message}: {fault.summary}{line}", fault.advice
    else:
        text, advice = error.message, error.advice
    return f"{make_sentence(text)} {make_sentence(advice)}".strip()


def _mask_item(item: str | Grid | Prose) -> str | Grid | Prose:
    if isinstance(item, Grid):
        return replace(item, rows=tuple(tuple(map(mask_secrets, row)) for row in item.rows))
    return Prose(mask_secrets(item.text)) if isinstance(item, Prose) else mask_secrets(item)


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
