"""Run the commands that print secrets: without a shell, with a time limit, and each one once.

Neither of a command's streams is shown: the standard output is the secret, and the standard error
can repeat it, as with `curl --verbose` or `sh -x`.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from ...core.errors import UsageError
from ...core.secret import NoSecret
from .files import MAX_SECRET_BYTES, decode_secret

Answers = dict[tuple[str, ...], str | NoSecret]
"""The words of a command -> what it printed, or why that is no secret."""

TIMEOUT = "KAFKAFORM_SECRET_COMMAND_TIMEOUT"
DEFAULT_SECONDS = 60.0
"""Time enough for a person who has to allow the access, on a phone or with a finger."""
AT_ONCE = 4
"""How many commands run at the same time: clients of secret stores take whole cores to start."""
_REAP_SECONDS = 5.0
"""How long to wait for the end of a command that was killed."""
LOOK_SECONDS = 0.5
"""How long a signal can go unnoticed that arrives just before a wait, or in another thread."""
_SECONDS = re.compile(r"\d{1,5}(\.\d+)?")
_WINDOWS = os.name == "nt"


class _Program:
    """A command that runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.over = Event()
        """Set if its output has ended, if there is too much of it, or if it was stopped."""
        self.output = b""

    def read_output(self) -> None:
        """Read until the end, or until it is more than a secret can be."""
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            # One byte more than allowed, to see that it is more.
            self.output = stream.read(MAX_SECRET_BYTES + 1)
        self.over.set()

    def stop(self) -> None:
        """End the command and all that it has started."""
        with suppress(OSError):
            if _WINDOWS:
                self.process.kill()
            elif self.process.returncode is None:
                # Its process group: what a script has started would go on without it.
                os.killpg(self.process.pid, signal.SIGKILL)
        self.over.set()


class _Batch:
    """Commands that are asked together, and can be stopped together."""

    def __init__(self, folder: Path, environment: Mapping[str, str], seconds: float) -> None:
        self.folder, self.environment, self.seconds = folder, environment, seconds
        self._running: set[_Program] = set()
        self._stopped = False

    def stop(self) -> None:
        """End all commands; none starts any more."""
        self._stopped = True
        for program in tuple(self._running):
            program.stop()

    def ask(self, words: tuple[str, ...]) -> str | NoSecret:
        """What the command prints."""
        if self._stopped:
            return NoSecret("kafkaform was interrupted.")
        try:
            process = subprocess.Popen(  # the configuration's own choice, no shell
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.folder,
                env=dict(self.environment),
                # A group, to end what a script starts. No session of its own: clients that ask for
                # permission once for a terminal would ask for every command.
                process_group=0,
            )
        except (OSError, ValueError) as fault:
            return _explain_start(words[0], fault)
        program = _Program(process)
        self._running.add(program)
        try:
            if self._stopped:  # meanwhile
                program.stop()
            return self._wait(words, program)
        finally:
            self._running.discard(program)
            program.stop()
            with suppress(subprocess.TimeoutExpired):  # it runs as another user, as with sudo
                process.wait(_REAP_SECONDS)

    def _wait(self, words: tuple[str, ...], program: _Program) -> str | NoSecret:
        end = monotonic() + self.seconds
        # A thread of its own, because something that the command has started can keep the pipe
        # open for ever.
        Thread(target=program.read_output, daemon=True).start()
        in_time = program.over.wait(self.seconds)
        output = program.output
        if len(output) > MAX_SECRET_BYTES:
            return NoSecret(f"The command printed more than {MAX_SECRET_BYTES:,} bytes.")
        try:
            code = program.process.wait(max(end - monotonic(), 0)) if in_time else None
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            return self._explain_timeout(words)
        if code:
            ending = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
            return NoSecret(f"The command {ending}.", self._advise_trial(words, "to see why"))
        secret = decode_secret(output, "The command printed")
        if isinstance(secret, NoSecret) or secret:
            return secret
        return NoSecret("The command printed nothing.", self._advise_trial(words))

    def _explain_timeout(self, words: tuple[str, ...]) -> NoSecret:
        return NoSecret(
            f"The command took more than {self.seconds:g} s and was ended.",
            f"{self._advise_trial(words)} {TIMEOUT} sets another number of seconds. A command "
            "cannot ask for input.",
        )

    def _advise_trial(self, words: tuple[str, ...], cause: str = "") -> str:
        return f"Run it by hand in {self.folder}{f' {cause}' * bool(cause)}: `{shlex.join(words)}`."


def ask_commands(
    commands: Iterable[tuple[str, ...]],
    folder: Path,
    environment: Mapping[str, str],
    answers: Answers,
) -> None:
    """Run the commands that have no answer yet, some of them at the same time, and note what they
    print.

    folder: where they run; environment: theirs. A signal ends them. Raises UsageError for a time
    limit that is not a number.
    """
    new = [words for words in dict.fromkeys(commands) if words not in answers]
    batch = _Batch(folder, environment, _read_timeout(environment))
    # Signals are for the main thread. One that ends kafkaform while a command is being started
    # would leave that command running, if both were in the same thread.
    pool = ThreadPoolExecutor(AT_ONCE, "secret")
    started: dict[tuple[str, ...], Future[str | NoSecret]] = {}
    try:
        for words in new:
            started[words] = pool.submit(batch.ask, words)
        for words, future in started.items():
            while not future.done():
                wait([future], LOOK_SECONDS)
            answers[words] = future.result()
    finally:
        # After a signal they still run. Otherwise there is nothing to stop.
        batch.stop()
        pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in started.values() if not future.cancelled()], _REAP_SECONDS)


def _read_timeout(environment: Mapping[str, str]) -> float:
    text = environment.get(TIMEOUT)
    if not text:
        return DEFAULT_SECONDS
    if not _SECONDS.fullmatch(text) or not float(text):
        raise UsageError(
            f"{TIMEOUT} is not a number of seconds",
            f"Set it to a number such as 120, or unset it for {DEFAULT_SECONDS:g}.",
        )
    return float(text)


def _explain_start(program: str, fault: OSError | ValueError) -> NoSecret:
    """Why a command could not be started."""
    if isinstance(fault, FileNotFoundError):
        # PATH is searched for names without a slash only.
        todo = "Correct the path." if "/" in program else "Install it, or add its folder to PATH."
        return NoSecret(f"There is no command {program}.", todo)
    # A ValueError quotes words; an OSError's reason is the system's.
    reason = (fault.strerror or "").lower() if isinstance(fault, OSError) else ""
    return NoSecret(f"The command {program} cannot be run{f': {reason}' * bool(reason)}.")
