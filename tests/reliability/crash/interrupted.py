"""Ctrl-C and SIGTERM at every stage of a command on a terminal: where it is held, what it must
say, and what must hold afterwards."""

from __future__ import annotations

import re
import signal
import termios
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ...kit.commands.process_folder import Folder
from ...kit.commands.terminal import Terminal
from ...kit.promises import records_of
from ...kit.proxy.faults import DRY, REAL, Fault
from ...kit.proxy.proxy import Proxy

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
UNSENT = "interrupted before anything was sent"
AT_ONCE = "Interrupted again: stopped at once."
FINISHING = "Interrupted: finishing what is under way. Interrupt again to stop at once."
SECONDS = 60.0
_HOLD = 60.0
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
PROGRAM = ("-c", "from kafkaform.cli.app import main; main()")


@dataclass(frozen=True)
class Stage:
    """One moment of a command. fault: holds it there (None: the text `shown` is waited for);
    once: what it says of the first signal; goes_on: the first signal waits for what is under way;
    twice: what it says of the second; left: a run died before, whose intents are open."""

    words: tuple[str, ...]
    fault: Fault | None
    once: str
    twice: str = AT_ONCE
    shown: str = ""
    goes_on: bool = False
    left: bool = False
    locked: bool = False


def _hold(api: str, phase: str = "any", nth: int = 1) -> Fault:
    return Fault(api, "hold", phase, nth, seconds=_HOLD)


APPLY = ("apply", "-auto-approve")
NOTHING = "Interrupted; nothing was being changed."
STAGES: Mapping[str, Stage] = {
    "connecting": Stage(("plan",), _hold("ApiVersions"), NOTHING),
    "reading": Stage(("plan",), _hold("DescribeConfigs", nth=2), NOTHING),
    "reading to apply": Stage(APPLY, _hold("DescribeConfigs", nth=2), UNSENT),
    "the question": Stage(("apply",), None, UNSENT, shown="is accepted: "),
    "the dry run": Stage(APPLY, _hold("CreateTopics", DRY), UNSENT),
    "sending": Stage(
        APPLY,
        _hold("CreateTopics", REAL),
        "stopped at a signal",
        "stopped at once, at the second signal",
        goes_on=True,
    ),
    "an unclear answer": Stage(
        APPLY,
        Fault("CreateTopics", "reset before", REAL),
        "stopped at a signal",
        "stopped at once, at the second signal",
        goes_on=True,
    ),
    "recovery": Stage(
        APPLY,
        _hold("DescribeConfigs", nth=2),
        "interrupted while finding out what earlier runs left open",
        left=True,
    ),
    "a lock": Stage(
        (*APPLY, "-lock-timeout=60s"), None, UNSENT, shown="for the lock of", locked=True
    ),
}


@dataclass
class Case:
    """A folder behind a proxy; topics: how many its configuration declares."""

    folder: Folder
    proxy: Proxy
    prefix: str
    topics: int = 0

    def more(self) -> None:
        """Declare two more, and change those that are there."""
        self.topics += 2
        names = ", ".join(f'"{self.prefix}{number}"' for number in range(self.topics))
        self.folder.write(
            f'resource "kafka_topic" "it" {{\n  for_each = toset([{names}])\n  name = each.key\n'
            f'  config = {{ "retention.ms" = "{3_600_000 + self.topics}" }}\n}}\n'
        )

    def settle(self) -> None:
        """As a user would who does as he was told."""
        ended = self.folder.apply()
        assert ended.code == 0, ended.out
        again = self.folder.plan()
        assert again.code == 0, again.out


def faults(case: Case, stage: Stage, number: signal.Signals, times: int) -> Iterator[str]:
    """What is wrong with so many signals at this stage, and after the next apply."""
    try:
        yield from _faults(case, stage, number, times)
    except AssertionError:
        case.proxy.disarm()
        yield traceback.format_exc()[-1500:]


def _faults(case: Case, stage: Stage, number: signal.Signals, times: int) -> Iterator[str]:
    case.more()
    if stage.left:
        _die(case)
    before = _written(case)
    # Not by os.environ, which is everybody's: several cases run at a time.
    password = {"PROOF_PASSWORD": case.folder.password}
    with _locked(case, stage):
        case.proxy.arm(*([stage.fault] if stage.fault else []))
        terminal = Terminal(case.folder.path, stage.words, program=PROGRAM, more=password)
        modes = _unflushed(terminal)
        _reached(case, stage, terminal)
        interrupt(terminal, number, stage, times)
        if stage.goes_on and times == 1:
            case.proxy.disarm()
        yield from _told(terminal, modes, stage, number, times)
    case.proxy.disarm()
    if not stage.goes_on and not stage.left and _written(case) != before:
        yield "something was written"
    if stage.goes_on or stage.left:
        case.settle()
    records_of(case.folder.path)


def _unflushed(terminal: Terminal) -> list[object]:
    """The terminal's modes. Else the kernel throws away at a Ctrl-C what nobody has read yet, and
    with it what the command said of the one before."""
    modes = termios.tcgetattr(terminal._terminal)
    modes[3] |= termios.NOFLSH
    termios.tcsetattr(terminal._terminal, termios.TCSANOW, modes)
    return modes


def interrupt(terminal: Terminal, number: signal.Signals, stage: Stage, times: int) -> None:
    """Once or twice; the second when the first was heard, if that shows."""
    for time_ in range(times):
        if time_ and stage.goes_on:
            terminal.wait_for(FINISHING)
        if number is signal.SIGINT:
            terminal.type("\x03")
        else:
            terminal.process.send_signal(number)


def _told(
    terminal: Terminal, modes: object, stage: Stage, number: signal.Signals, times: int
) -> Iterator[str]:
    while terminal._read():
        pass
    after = termios.tcgetattr(terminal._terminal)
    code = terminal.end()
    seen = " ".join(terminal.seen.replace("│", " ").split())
    if code != CODES[number]:
        yield f"it ended with {code}: {seen[-600:]}"
    if after != modes:
        yield "the terminal was left in another mode"
    if terminal.raw.rfind(_SHOW) < terminal.raw.rfind(_HIDE):
        yield "the cursor was left hidden"
    wanted = (stage.once,) if times == 1 else (stage.once, stage.twice)
    if stage.locked:  # the signal may come right after the holder is named
        wanted += (NOTHING,)
    if not any(text in seen for text in wanted):
        yield f"it did not say {' or '.join(wanted)}: {seen[-600:]}"
    if stage.goes_on and FINISHING not in seen:
        yield "it did not say that it heard"
    if not re.search(r"[Rr]un the same command again", seen):
        yield f"it did not say how to go on: {seen[-600:]}"
    if re.search("Traceback|unexpectedly|Exception ignored", seen):
        yield f"a fault of ours: {seen[-900:]}"


def _reached(case: Case, stage: Stage, terminal: Terminal) -> None:
    if stage.fault is None:
        terminal.wait_for(stage.shown)
        return
    assert case.proxy.fired.wait(SECONDS), terminal.seen


def _die(case: Case) -> None:
    """An apply that is killed before its answer comes."""
    case.proxy.arm(_hold("CreateTopics", REAL))
    process = case.folder.start("apply", "-auto-approve")
    try:
        assert case.proxy.fired.wait(SECONDS), process.printed()
    finally:
        process.send_signal(signal.SIGKILL)
        process.finish()


@contextmanager
def _locked(case: Case, stage: Stage) -> Iterator[None]:
    """Another apply holds the lock, stopped before it has sent anything."""
    if not stage.locked:
        yield
        return
    case.proxy.arm(_hold("CreateTopics", DRY))
    process = case.folder.start("apply", "-auto-approve")
    try:
        assert case.proxy.fired.wait(SECONDS), process.printed()
        # On a slow machine it would have given up waiting and gone on before the other one starts.
        process.send_signal(signal.SIGSTOP)
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.finish()


def _written(case: Case) -> dict[str, bytes]:
    """State and log."""
    paths = [case.folder.log, case.folder.path / "kafkaform.state.json"]
    return {path.name: path.read_bytes() for path in paths if path.exists()}


def matrix(names: tuple[str, ...] = tuple(STAGES)) -> list[tuple[str, signal.Signals, int]]:
    """Every stage, signal and number of signals."""
    return [(name, number, times) for name in names for number in CODES for times in (1, 2)]
