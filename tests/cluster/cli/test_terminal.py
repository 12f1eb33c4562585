"""A person at a terminal: questions, colours, widths, Ctrl-C, and pipes that close early."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkaform.cli.terminal.signals import FINISHING

from ...kit.commands.folder import Folder
from ...kit.commands.terminal import Terminal

QUESTION = 'Only "yes" is accepted: '

# Lets the request through, says so, and holds the answer back until the test allows it.
HELD = """
import sys, time
from pathlib import Path
from kafkaform.cli.app import main
from kafkaform_kafka.session import KafkaSession
send = KafkaSession.apply
def held(self, batch, secrets):
    outcomes = send(self, batch, secrets)
    Path("sent").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return outcomes
KafkaSession.apply = held
main(sys.argv[1:])
"""

# The signal arrives in a thread that does not wait for the line.
ELSEWHERE = """
import signal, sys, threading, time
from kafkaform.cli.terminal.console import Console
from kafkaform.cli.terminal.signals import end_on_signals
from kafkaform.core.errors import Ended
def asking():
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None and frame.f_code.co_name != "ask":
        frame = frame.f_back
    return frame is not None
def signalled():
    while not asking():
        time.sleep(0.01)
    signal.pthread_kill(threading.get_ident(), int(sys.argv[1]))
end_on_signals()
threading.Thread(target=signalled).start()
try:
    Console.make_standard().ask("Really? ")
except Ended as ended:
    sys.exit(ended.exit_code)
"""


def test_yes_applies(folder: Folder) -> None:
    """The plan is shown, the answer is awaited on a line of its own, and only then it is sent."""
    folder.declare("a")
    terminal = Terminal(folder.path, ["apply"])
    with folder.untouched():
        terminal.wait_for(QUESTION)
        holder = folder.done("lock", "show").out
    assert f"process {terminal.process.pid}" in holder
    terminal.type("yes\n")
    assert terminal.end() == 0
    assert "Apply complete: 1 added" in terminal.seen
    assert set(folder.topics()) == {"a"}


def test_what_is_typed_before_the_question_is_no_answer(folder: Folder) -> None:
    """Nobody approves a plan that they have not seen."""
    folder.declare("a")
    terminal = Terminal(folder.path, ["apply"])
    with folder.untouched():
        terminal.type("yes\n")
        terminal.wait_for(QUESTION)
        terminal.until_it_waits()
        terminal.type("no\n")
        assert terminal.end() == 1
    assert "not approved; nothing was sent" in terminal.seen


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ("y\n", 1, "not approved; nothing was sent"),
        ("\x03", 130, "interrupted before anything was sent"),
    ],
)
def test_anything_else_sends_nothing(folder: Folder, typed: str, code: int, words: str) -> None:
    """`y` is not `yes`, and Ctrl-C at the question ends it."""
    folder.declare("a")
    terminal = Terminal(folder.path, ["apply", "-quiet"])
    with folder.untouched():
        terminal.wait_for(QUESTION)
        terminal.type(typed)
        assert terminal.end() == code
    assert words in terminal.seen
    assert "Traceback" not in terminal.seen


def test_sigterm_at_the_question(folder: Folder) -> None:
    """A pipeline that is cancelled ends with 143, and the lock is free again."""
    folder.declare("a")
    terminal = Terminal(folder.path, ["apply"])
    with folder.untouched():
        terminal.wait_for(QUESTION)
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 143
    assert "not locked" in folder.done("lock", "show").out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_does_not_interrupt_the_reading(tmp_path: Path, number: int) -> None:
    """A signal that comes just before the line is waited for leaves the waiting undisturbed, as one
    does here that another thread gets: the question is ended by it all the same."""
    terminal = Terminal(tmp_path, [str(number)], program=("-c", ELSEWHERE))
    assert terminal.end() == 128 + number


def test_destroy_asks_for_the_cluster(folder: Folder) -> None:
    """The id has to be typed, a `yes` is not enough."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    terminal = Terminal(folder.path, ["destroy"])
    with folder.untouched():
        terminal.wait_for('This deletes 1 object that kafkaform manages on "kafka".')
        terminal.wait_for(f"Cluster ID ({folder.broker.cluster_id}): ")
        terminal.type("yes\n")
        assert terminal.end() == 1
    assert "not approved; nothing was sent" in terminal.seen


def ours(text: str) -> str:
    """The text without what other tests have on the same broker meanwhile."""
    return re.sub(r"Not managed by this configuration\n(?:  .*\n)+\n", "", text)


def drop_approval(plan: str) -> str:
    """The plan of a pipe as somebody at a terminal gets it: the next command has the approval."""
    (line,) = [line for line in plan.splitlines() if line.startswith("Approval: ")]
    assert f"apply --expect {line.removeprefix('Approval: ')}" in plan
    return plan.replace(f"{line}\n", "")


def test_a_plan_on_a_terminal(folder: Folder) -> None:
    """In colour; the progress leaves nothing behind, and no line of the plan is broken, so that
    the command with the approval can be copied."""
    folder.declare("a")
    plain = ours(drop_approval(folder.done("plan").out))
    for terminal in [Terminal(folder.path, ["plan"], columns) for columns in (80, 120)]:
        assert terminal.end() == 0
        assert "\x1b[32m+" in terminal.raw
        assert plain in ours(terminal.seen)
        after_bars = terminal.raw.rpartition("\x1b[2K")[2]
        assert "━" not in after_bars
        assert "Reading" not in after_bars


def test_no_color(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR and --no-color keep colours off a terminal that would have them."""
    folder.declare("a", more="nonsense = 1")
    coloured = Terminal(folder.path, ["validate"])
    flagged = Terminal(folder.path, ["plan", "-no-color"])
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal(folder.path, ["validate"])
    assert [each.end() for each in (coloured, flagged, plain)] == [1, 1, 1]
    assert "\x1b[1;31mError" in coloured.raw
    for each in (flagged, plain):
        assert "\x1b[1" not in each.raw
    assert "Error: " in plain.raw


def test_a_plan_in_a_file_while_the_terminal_shows_progress(folder: Folder) -> None:
    """`kafkaform plan > plan.txt` puts the plan into the file."""
    folder.declare("a")
    plain = drop_approval(folder.done("plan").out)
    code = (
        "import sys, subprocess; sys.exit(subprocess.run("
        "[sys.executable, '-m', 'kafkaform', 'plan'], stdout=open('plan.txt', 'w')).returncode)"
    )
    folder.write("run.py", code)
    terminal = Terminal(folder.path, ["plan"], program=["run.py"])
    assert terminal.end() == 0
    assert ours((folder.path / "plan.txt").read_text()) == ours(plain)
    assert "kafka_topic.a" not in terminal.seen


def test_output_into_head(folder: Folder) -> None:
    """A reader that has seen enough is no reason for a traceback, and nothing is sent."""
    folder.declare(*(f"t{n}" for n in range(50)))
    with folder.untouched():
        process = folder.process(
            "apply", "-auto-approve", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
        process.wait(120)
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


# ── signals while a request is under way ────────────────────────────────────────────────


@pytest.fixture
def under_way(folder: Folder) -> Folder:
    """`a` is live; the next apply creates `b` in one request and alters `a` in a later one."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    folder.declare("a", "b", more='config = { "retention.ms" = "1000000" }')
    folder.write("held.py", HELD)
    return folder


def _held(folder: Folder) -> subprocess.Popen[str]:
    """An apply whose first request was carried out, and that waits for the answer."""
    process = subprocess.Popen(
        [sys.executable, "held.py", "apply", "-auto-approve"],
        cwd=folder.path,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    _until_there(folder.path / "sent", process)
    return process


def _until_there(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _until_said(process: subprocess.Popen[str], line: str) -> str:
    """What it prints up to this line."""
    said = ""
    assert process.stdout is not None
    while line not in said:
        read = process.stdout.readline()
        assert read, said
        said += read
    return said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_batch_in_flight(
    under_way: Folder, number: signal.Signals, code: int
) -> None:
    """What was sent is recorded, nothing more is sent, and the next run does the rest."""
    process = _held(under_way)
    process.send_signal(number)
    begun = _until_said(process, FINISHING)
    assert process.poll() is None
    (under_way.path / "go").touch()
    said = begun + process.communicate(timeout=120)[0]
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert "applied  + kafka_topic.b" in said
    assert "skipped  ~ kafka_topic.a" in said
    assert "Run the same command again" in said
    assert under_way.config("a")["retention.ms"] != "1000000"
    assert under_way.done("state", "list").out == "kafka_topic.a\nkafka_topic.b\n"

    said = under_way.done("apply", "-auto-approve").out
    assert "0 added, 1 changed, 0 destroyed" in said
    assert under_way.config("a")["retention.ms"] == "1000000"


def test_a_second_signal_does_not_wait(under_way: Folder) -> None:
    """The outcome that was not awaited is unknown, is said to be, and is found by the next run."""
    process = _held(under_way)
    process.send_signal(signal.SIGINT)
    begun = _until_said(process, FINISHING)
    process.send_signal(signal.SIGINT)
    said = begun + process.communicate(timeout=120)[0]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "unknown  + kafka_topic.b" in said
    assert under_way.done("state", "list").out == "kafka_topic.a\n"

    again = under_way.done("apply", "-auto-approve")
    assert "Recovered kafka_topic.b: applied." in again.text
    assert "0 added, 1 changed, 0 destroyed" in again.out
    assert under_way.done("state", "list").out == "kafka_topic.a\nkafka_topic.b\n"


def test_a_killed_run(under_way: Folder) -> None:
    """Even SIGKILL leaves a lock that is free and an intent that the next run closes."""
    process = _held(under_way)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
    assert "unresolved from run" in under_way.done("plan").out
    again = under_way.done("apply", "-auto-approve")
    assert "Recovered kafka_topic.b: applied." in again.text
    assert "No changes" not in under_way.done("audit", "show").text
    assert re.search(r"The audit log is sound: \d+ records", under_way.done("audit", "verify").out)


def test_a_killed_first_run(folder: Folder) -> None:
    """Before any state was saved, the log alone knows whose run it was; the plan that was
    reviewed then is resumed, not refused."""
    folder.declare("b")
    folder.write("held.py", HELD)
    folder.done("plan", "-out=first.kfplan")
    process = _held(folder)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
    again = folder.done("apply", "first.kfplan")
    assert "Recovered kafka_topic.b: applied." in again.text
    assert folder.done("state", "list").out == "kafka_topic.b\n"
    assert len(folder.records("intent")) == 1
