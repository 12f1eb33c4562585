"""The ways in which a command ends badly, each with the secret on its lips."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from kafkaform.cli.terminal.console import Console
from kafkaform.cli.terminal.signals import SIGNALS, end_on_signals
from kafkaform.core.change import Outcome, OutcomeStatus, Verdict
from kafkaform.core.errors import ConnectError, StorageError
from kafkaform.core.resource import Failed, Fault, FaultClass
from kafkaform.core.secret import holds_secret
from kafkaform.state.backends.local import LocalBackend

from .house import House, echo


def _fault(secret: str) -> Fault:
    return Fault("INVALID_REQUEST", echo(secret), FaultClass.DEFINITE, "broker 1", echo(secret))


def _raise(error: BaseException) -> None:
    raise error


def _words(secret: str) -> str:
    """What an error says. It repeats the secret if the command has read that; else there is
    nowhere that it could have it from."""
    return echo(secret) if holds_secret(secret) else "no secret is known here"


@contextmanager
def fine(house: House, secret: str) -> Iterator[None]:
    """Nothing fails."""
    yield


@contextmanager
def login_refused(house: House, secret: str) -> Iterator[None]:
    """And the client's error repeats the login."""
    error = ConnectError(f"SASL authentication failed: {echo(secret)}", f"not {secret}")
    house.mood.before = lambda name: _raise(error) if name == "open" else None
    yield


@contextmanager
def broker_down(house: House, secret: str) -> Iterator[None]:
    """Nobody answers."""
    error = ConnectError(f"cannot reach sasl://ci:{secret}@127.0.0.1:1")
    house.mood.before = lambda name: _raise(error) if name == "open" else None
    yield


def _refused(secret: str, dry: bool) -> Callable[[str, Any, Sequence[Any]], Any]:
    def answer(name: str, found: Any, arguments: Sequence[Any]) -> Any:
        if name == "preflight" and dry:
            return [Verdict(v.step, v.evidence, _fault(secret)) for v in found]
        if name == "apply" and not dry:
            return [Outcome(o.step, OutcomeStatus.FAILED, _fault(secret)) for o in found]
        return found

    return answer


@contextmanager
def refused(house: House, secret: str) -> Iterator[None]:
    """The broker refuses every request, and repeats what it was sent."""
    house.mood.answer = _refused(secret, dry=False)
    yield


@contextmanager
def dry_run_refused(house: House, secret: str) -> Iterator[None]:
    """The same before anything is sent."""
    house.mood.answer = _refused(secret, dry=True)
    yield


@contextmanager
def unreadable(house: House, secret: str) -> Iterator[None]:
    """Every read fails with the broker's words."""

    def answer(name: str, found: Any, arguments: Sequence[Any]) -> Any:
        if name == "read":
            return {identity: Failed(identity, _fault(secret)) for identity in found}
        return found

    house.mood.answer = answer
    yield


@contextmanager
def interrupted(house: House, secret: str, at: str = "apply") -> Iterator[None]:
    """Ctrl-C while a request is under way."""

    def before(name: str) -> None:
        if name == at:
            house.mood.before = lambda name: None
            signal.raise_signal(signal.SIGINT)

    house.mood.before = before
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    end_on_signals()
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def interrupted_early(house: House, secret: str) -> Iterator[None]:
    """Ctrl-C while connecting."""
    with interrupted(house, secret, "open"):
        yield


@contextmanager
def crash(house: House, secret: str, at: str = "apply") -> Iterator[None]:
    """A fault of ours, or of a library, whose text has the secret, in the middle of a send."""
    error = RuntimeError(echo(secret), {"password": secret})
    error.add_note(f"with {secret}")
    house.mood.before = lambda name: _raise(error) if name == at else None
    yield


@contextmanager
def crash_early(house: House, secret: str) -> Iterator[None]:
    """The same while the login's password is in hand."""
    with crash(house, secret, "open"):
        yield


@contextmanager
def crash_on_output(house: House, secret: str) -> Iterator[None]:
    """A fault in what every command does: print its result."""

    def broken(console: Console, text: str) -> None:
        words = _words(secret)
        _raise(ValueError(words))  # a trace shows this line, so the mask must not stand in it

    with patch.object(Console, "write", broken):
        yield


@contextmanager
def disk_full(house: House, secret: str) -> Iterator[None]:
    """No byte can be made durable, from the first send on."""
    with ExitStack() as stack:

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, f"no space left for {_words(secret)}")

        def before(name: str) -> None:
            if name == "apply":
                stack.enter_context(patch.object(os, "fsync", full))
                stack.enter_context(patch.object(os, "fdatasync", full))

        house.mood.before = before
        yield


@contextmanager
def unwritable(house: House, secret: str) -> Iterator[None]:
    """The folder takes no files."""
    real = os.open

    def refusing(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR) and str(house.folder) in str(path):
            raise PermissionError(errno.EACCES, f"denied: {_words(secret)}", str(path))
        return real(path, flags, *more, **named)

    with patch.object(os, "open", refusing):
        yield


@contextmanager
def state_lost(house: House, secret: str) -> Iterator[None]:
    """The state cannot be saved after a send, so it is rescued to another place."""

    def save(*_: Any) -> None:
        raise StorageError(f"the state cannot be saved: {_words(secret)}")

    with patch.object(LocalBackend, "save", save):
        yield


PATHS: Mapping[str, Callable[[House, str], Any]] = {
    "fine": fine,
    "login refused": login_refused,
    "broker down": broker_down,
    "refused": refused,
    "dry run refused": dry_run_refused,
    "unreadable": unreadable,
    "interrupted": interrupted,
    "interrupted early": interrupted_early,
    "crash": crash,
    "crash early": crash_early,
    "crash on output": crash_on_output,
    "disk full": disk_full,
    "unwritable": unwritable,
    "state lost": state_lost,
}
"""Name -> what makes a command end so. Without a secret to be had, and with the secret itself in
the place of a reference, are two more (see `matrix`)."""
