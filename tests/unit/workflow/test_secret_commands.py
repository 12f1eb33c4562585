"""Commands that print secrets: how they are run, what they may answer, and what is said if not."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from kafkaform.core.errors import Ended, UsageError
from kafkaform.core.secret import NoSecret, mask_secrets, watch_secrets
from kafkaform.core.value import make_command_reference
from kafkaform.workflow.configuration import secret_commands
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.configuration.files import MAX_SECRET_BYTES
from kafkaform.workflow.configuration.secret_commands import TIMEOUT, Answers, ask_commands

from ...kit.interrupts import LatePopen, interrupt_once, is_closed

PYTHON = sys.executable


def script(code: str, *arguments: str) -> tuple[str, ...]:
    """The words of a command that runs this Python program."""
    return (PYTHON, "-I", "-S", "-c", code, *arguments)


def ask(
    words: tuple[str, ...], folder: Path, environment: Mapping[str, str] = os.environ
) -> str | NoSecret:
    answers: Answers = {}
    ask_commands([words], folder, environment, answers)
    return answers[words]


def reason(found: str | NoSecret) -> str:
    assert isinstance(found, NoSecret), found
    return found.reason


@pytest.mark.parametrize(
    ("printed", "secret"),
    [
        ("hunter2", "hunter2"),
        ("hunter2\n", "hunter2"),
        ("hunter2\r\n", "hunter2"),
        ("hunter2\n\n", "hunter2\n"),
        (" hunter2 ", " hunter2 "),
        ("é", "é"),
        ("two\nlines\n", "two\nlines"),
    ],
)
def test_the_output_without_one_line_break_is_the_secret(
    tmp_path: Path, printed: str, secret: str
) -> None:
    """Blanks and further line breaks belong to it."""
    code = "import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))"
    assert ask(script(code, printed.encode().hex()), tmp_path) == secret


def test_no_shell_sees_the_words(tmp_path: Path) -> None:
    """Each word arrives as it is written."""
    words = ("$HOME", "; exit 1", "`id`", "a b", '"', "*", "")
    code = "import sys; print(sys.argv[1:], end='')"
    assert ask(script(code, *words), tmp_path) == repr(list(words))


def test_it_has_the_environment_and_the_folder_and_no_input(tmp_path: Path) -> None:
    """The environment is the one that kafkaform was given; nothing can be typed."""
    code = "import os, sys; print(os.environ['X'], os.getcwd(), repr(sys.stdin.read()), end='')"
    found = ask(script(code), tmp_path, {"X": "y"})
    assert found == f"y {tmp_path.resolve()} ''"


def test_a_program_of_the_folder(tmp_path: Path) -> None:
    """A path with a slash starts from the configuration's folder."""
    program = tmp_path / "get.sh"
    program.write_text("#!/bin/sh\nprintf '%s' \"$1\"\n")
    program.chmod(0o700)
    assert ask(("./get.sh", "hunter2"), tmp_path) == "hunter2"


SECRET = "a-secret-that-nobody-may-see"
PRINTED = " + ".join(map(repr, SECRET))
"""An expression for the secret that does not contain it."""
FAILURES = {
    "exit code": (script(f"print({PRINTED}); raise SystemExit(3)"), "ended with exit code 3"),
    "signal": (script("import os; os.kill(os.getpid(), 9)"), "was ended by signal 9"),
    "nothing": (script("print()"), "printed nothing"),
    "not text": (script("import sys; sys.stdout.buffer.write(b'\\xff')"), "not UTF-8 text"),
    "too much": (
        script(f"import sys\nwhile True: sys.stdout.write('x' * {MAX_SECRET_BYTES})"),
        "printed more than 65,536 bytes",
    ),
    "not there": (("no-such-program-here",), "There is no command no-such-program-here."),
    "not a program": (("/",), "cannot be run: permission denied"),
    "too long": (("sh", "x" * (1 << 22)), "cannot be run: argument list too long"),
}


@pytest.mark.parametrize(("words", "why"), FAILURES.values(), ids=FAILURES)
def test_what_is_no_secret(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    """The reason says what happened, and nothing of the output."""
    found = ask(words, tmp_path)
    assert why in reason(found)
    assert not found and SECRET not in repr(found)


def test_a_failure_says_how_to_look_at_it(tmp_path: Path) -> None:
    """The command to type, quoted for a shell, and where. The standard error is not shown: it
    can repeat the secret."""
    code = f"import sys; sys.stderr.write({PRINTED}); sys.exit(1)"
    words = script(code, "a b")
    found = ask(words, tmp_path)
    assert isinstance(found, NoSecret)
    assert found.advice == f"Run it by hand in {tmp_path} to see why: `{shlex.join(words)}`."


def test_the_standard_error_goes_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither to the terminal nor into the secret."""
    found = ask(script("import sys; sys.stderr.write('noise'); print('hunter2')"), tmp_path)
    assert found == "hunter2"
    assert capfd.readouterr() == ("", "")


HANGS = {
    "it sleeps": "sleep 1000",
    "its child keeps the pipe": "sleep 1000 & exit 0",
    "it has closed its output": "exec >&-; sleep 1000",
    "it asks": "while :; do read line </dev/tty || sleep 1000; done",
}


@pytest.mark.parametrize("line", HANGS.values(), ids=HANGS)
def test_a_command_that_does_not_end_is_ended(tmp_path: Path, line: str) -> None:
    """With everything that it has started. The message names the limit and how to change it."""
    held = tmp_path / "alive"
    os.mkfifo(held)
    words = ("sh", "-c", f"exec 9>{shlex.quote(str(held))}; {line}")
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = ask(words, tmp_path, {**os.environ, TIMEOUT: "0.5"})
        os.set_blocking(reader, True)
        assert is_closed(reader)  # nobody holds the other end any more
    finally:
        os.close(reader)
    assert reason(found) == "The command took more than 0.5 s and was ended."
    assert isinstance(found, NoSecret) and TIMEOUT in found.advice


@pytest.mark.parametrize("text", ["x", "-1", "0", "1e3", "1 s"])
def test_a_limit_that_is_no_number(tmp_path: Path, text: str) -> None:
    """A typing error must not end as no limit."""
    with pytest.raises(UsageError, match="not a number of seconds"):
        ask(script("print(1)"), tmp_path, {TIMEOUT: text})


def test_what_a_command_leaves_behind_lives_on(tmp_path: Path) -> None:
    """An agent that a client starts for its next calls is not killed after a success."""
    left = tmp_path / "left"
    os.mkfifo(left)
    words = ("sh", "-c", f"(exec >/dev/null; cat {shlex.quote(str(left))}) & echo hunter2")
    assert ask(words, tmp_path) == "hunter2"
    # Opening the pipe for writing waits for a reader: the one that was left behind.
    with left.open("w") as pipe:
        pipe.write("end")


def test_each_command_is_asked_once(tmp_path: Path) -> None:
    """Also one that fails, and one that is named twice."""
    good = script("open('log', 'a').write('good\\n'); print('hunter2')")
    bad = script("open('log', 'a').write('bad\\n'); raise SystemExit(1)")
    answers: Answers = {}
    for _ in range(2):
        ask_commands([good, bad, good], tmp_path, os.environ, answers)
    assert sorted((tmp_path / "log").read_text().split()) == ["bad", "good"]


def test_several_run_at_the_same_time_but_not_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that wait for each other both answer; a third one starts when one of them is done."""
    monkeypatch.setattr(secret_commands, "AT_ONCE", 2)
    first, second = (tmp_path / name for name in ("first", "second"))
    os.mkfifo(first)
    os.mkfifo(second)
    counted = "echo + >>log; {} ; echo - >>log; echo hunter2"
    commands = [
        ("sh", "-c", counted.format("echo x >first; cat second >/dev/null")),
        ("sh", "-c", counted.format("cat first >/dev/null; echo x >second")),
        *(("sh", "-c", counted.format(f": {number}")) for number in range(4)),
    ]
    answers: Answers = {}
    ask_commands(commands, tmp_path, os.environ, answers)
    assert all(answer == "hunter2" for answer in answers.values()) and len(answers) == 6
    running = most = 0
    for mark in (tmp_path / "log").read_text().split():
        running += 1 if mark == "+" else -1
        most = max(most, running)
    assert most == 2


def test_what_they_print_is_masked_in_every_run(tmp_path: Path) -> None:
    """Also in a later one, which gets the answer without asking again."""
    (tmp_path / "main.kf.hcl").write_text("")
    commands = [script(f"print('hunter2-{name}')") for name in ("one", "two")]
    refs = [make_command_reference(words) for words in commands]
    found = read_configuration(tmp_path, Inputs())
    for _ in range(2):
        with watch_secrets():
            assert list(map(bool, found.find_secrets(refs).values())) == [True, True]
            assert mask_secrets("hunter2-one hunter2-two") == "(secret) (secret)"
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("when", ["it runs", "it runs, elsewhere", "it is being started"])
@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupt_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, when: str
) -> None:
    """What runs is ended with all that it has started, and what waits is never started; also if the
    signal does not wake the main thread, as when another thread gets it, and if the command has
    begun before the system has told so."""
    monkeypatch.setattr(secret_commands, "AT_ONCE", 2)
    if when == "it is being started":
        monkeypatch.setattr(subprocess, "Popen", LatePopen)
    held, log = tmp_path / "alive", tmp_path / "begun"
    os.mkfifo(held)
    commands = [
        ("sh", "-c", f"exec 9>alive; echo {number} >>begun; sleep 1000 & sleep 1000")
        for number in range(count)
    ]

    def begun() -> bool:
        return log.exists() and len(log.read_text().split()) == min(count, 2)

    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    asked = time.monotonic()
    try:
        with (
            interrupt_once(begun, elsewhere=when == "it runs, elsewhere"),
            pytest.raises(Ended),
        ):
            ask_commands(commands, tmp_path, os.environ, {})
        assert time.monotonic() - asked < secret_commands.DEFAULT_SECONDS, "they ended on their own"
        assert is_closed(reader), "what they have started is alive"
        assert begun()
    finally:
        os.close(reader)
