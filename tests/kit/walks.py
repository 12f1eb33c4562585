"""A page with commands, followed as a reader follows it.

A fenced block with a title is a file, `sh` is typed, and a `text` block behind it is what that
prints. In such a text, a line `...` stands for any lines. What is another in every run (ids, times,
ports) is not compared.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ANSWERS = {
    "kafkaform apply": "kafkaform apply --auto-approve",
    "kafkaform undo --last": "kafkaform undo --last --auto-approve",
    "kafkaform alter group billing --reset-offsets --by-duration 2h --all-topics": (
        "kafkaform alter group billing --reset-offsets --by-duration 2h --all-topics --auto-approve"
    ),
    "kafkaform destroy": 'kafkaform destroy --confirm "$(kafkaform describe cluster --json'
    f" | {shlex.quote(sys.executable)} -c 'import json, sys;"
    ' print(json.load(sys.stdin)["cluster_id"])\')"',
}
"""A command that asks -> the same with the answer."""
DIFFERENT = (
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+Z|\s+UTC)?", "TIME"),
    (r"\b127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b\d+:[0-9a-f]{64}\b", "HEAD"),
    (r"\b[0-9a-f]{64}(\.[0-9a-f]{64})?\b", "DIGEST"),
    (r"\b[0-9a-f]{12}\b", "RUN"),
    (r"(?<=: )[\w-]{22}(?= at )", "CLUSTER"),
    (r"sound: \d+ records", "sound: N records"),
    (r"(?<=TIME by )\w+", "USER"),
    (r"\babout (\d+ h )?\d+ min( \d+ s)?", "about SO LONG"),
)
"""What is another in every run -> what stands for it."""
PROGRESS = re.compile(r"^kafkaform: .*\n", re.MULTILINE)
END = "@@@ end"
PROGRAM = (sys.executable, "-m", "kafkaform")


@dataclass(frozen=True)
class Step:
    """What a reader types at once. files: name -> text, saved before; shown: what the page says
    that it prints, None if it says nothing."""

    files: Mapping[str, str]
    typed: str
    shown: str | None


def read_steps(page: str) -> Iterator[Step]:
    """The steps of a page, in order."""
    files: dict[str, str] = {}
    typed = ""
    for language, title, body in FENCE.findall(page):
        if language == "text":
            assert typed, f"no command prints this:\n{body}"
            yield Step(files, typed, body)
            files, typed = {}, ""
        elif language == "sh" or title:
            if typed:
                yield Step(files, typed, None)
                files, typed = {}, ""
            if title:
                files[title] = body
            else:
                typed = body
    if typed:
        yield Step(files, typed, None)


def follow(page: Path, folder: Path, program: Sequence[str] = PROGRAM) -> list[str]:
    """Follow a page in one shell; what differs from it. A command that fails differs, unless the
    page shows its error. program: what `kafkaform` stands for."""
    steps = list(read_steps(page.read_text(encoding="utf-8")))
    assert steps, f"{page.name} has no commands"
    done = subprocess.run(
        ["bash", "-c", "".join(_make_script(steps, program))],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=280,
    )
    printed = done.stdout.split(f"{END}\n")
    assert len(printed) == len(steps) + 1, done.stdout
    return [text for step, out in zip(steps, printed, strict=False) for text in _judge(step, out)]


def _make_script(steps: Sequence[Step], program: Sequence[str]) -> Iterator[str]:
    yield f'kafkaform() {{ {shlex.join(program)} "$@"; }}\n'
    yield "trap 'echo \"@@@ failed: $BASH_COMMAND\"' ERR\n"
    for step in steps:
        for name, text in step.files.items():
            yield f"mkdir -p {shlex.quote(str(Path(name).parent))}\n"
            yield f"cat > {shlex.quote(name)} <<'@@@'\n{text}@@@\n"
        for line in step.typed.splitlines():
            yield f"{ANSWERS.get(line, line)}\n"
        yield f"echo '{END}'\n"


def _judge(step: Step, printed: str) -> Iterator[str]:
    """What differs between a step and what it printed."""
    failed = re.search(r"^@@@ failed: .*\n", printed, re.MULTILINE)
    told = step.shown is not None and "Error:" in step.shown
    if bool(failed) != told:
        yield f"{step.typed}{'must fail' if told else 'fails'}:\n{printed}"
    elif step.shown is not None and not fits(step.shown, printed):
        yield f"{step.typed}prints:\n{printed}\ninstead of:\n{step.shown}"


def fits(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed."""
    parts = re.split(r"^\.\.\.\n", _level(shown), flags=re.MULTILINE)
    pattern = r"(?:.*\n)*".join(map(re.escape, parts))
    return re.fullmatch(pattern, _level(PROGRESS.sub("", printed))) is not None


def _level(text: str) -> str:
    """A text without what is another in every run, and without empty lines at its ends."""
    for pattern, word in DIFFERENT:
        text = re.sub(pattern, word, text)
    return text.strip("\n") + "\n"
