"""`make fleet-demo` without its brokers and without Spark, which take it some minutes."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.cli.app import run_command_line

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/fleet"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("demo")
    for name in ("demo", "outside"):
        sys.modules.pop(name, None)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Types a command in a folder; what it prints."""

    def run(*arguments: str, within: Path) -> str:
        capsys.readouterr()
        with contextlib.chdir(within):
            code = run_command_line(arguments)
        said = capsys.readouterr()
        assert code == 0, said
        return said.out

    return run


def test_it_takes_all_files_of_the_example(demo: Any) -> None:
    """A configuration that is added here is a part of the story, or it is missing there."""
    found = {path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*.hcl")}
    assert set(demo.FILES) == found


def test_its_configurations_are_valid_all_along(
    demo: Any, tmp_path: Path, command: Callable[..., str]
) -> None:
    """In the standard layout, as they are and with what the story makes of them."""
    command("fmt", "--check", "--recursive", str(EXAMPLE), within=tmp_path)
    story = demo.Demo(tmp_path)
    demo.copied(tmp_path)
    command("validate", "-var=eu=a:1", "-var=us=b:1", within=tmp_path / "shop")
    command("validate", "-var=bootstrap=a:1", within=tmp_path / "staging")
    demo.longer(story)
    demo.certified(story)
    command("validate", "-var=eu=a:1", "-var=us=b:1", within=tmp_path / "shop")
    command("validate", "-var=bootstrap=a:1", within=tmp_path / "staging")
    assert '"14d"' in (tmp_path / "shop/shop.kf.hcl").read_text("utf-8")
    assert "next.p12" in (tmp_path / "staging/topics.kf.hcl").read_text("utf-8")


def test_every_command_of_it_exists(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., str]
) -> None:
    """What the story types is understood by the program, flag by flag: it is asked for its help,
    which it gives for words that it knows alone."""
    typed: list[tuple[str, ...]] = []
    ended: list[int] = []

    def open(self: Any, *arguments: str, within: str = ".", output: Any = None) -> Any:
        typed.append(arguments)
        if output is not None and arguments[:2] == ("sandbox", "env"):
            output.write(b"export KAFKAFORM_SANDBOX_BOOTSTRAP=a:1\n")
            output.write(b"export KAFKAFORM_SANDBOX_PASSWORD='x'\n")
        return SimpleNamespace(wait=lambda: ended.append(len(typed)))

    for name in ("alter", "consume", "create", "delete", "open_to_everybody", "produce"):
        monkeypatch.setattr(demo, name, lambda *_: None)
    monkeypatch.setattr(demo, "check", lambda *_: None)
    monkeypatch.setattr(demo.Demo, "open", open)
    story = demo.Demo(tmp_path)
    demo.copied(tmp_path)
    demo.told(story)
    assert [words[1] for words in typed if words[0] == "fleet"] == [
        *("snapshot", "snapshot", "run", "snapshot", "run"),
        *("query", "history", "who-can", "status", "report", "report"),
    ]
    # Three brokers before it waits for one, and their addresses; then both applies.
    assert ended[:7] == [3, 3, 3, 6, 6, 6, 8]
    assert story.clusters["us"] == demo.Cluster("us", "a:1", "x")
    assert all(any(line.startswith(wait) for line in map(" ".join, typed)) for wait in demo.WAITS)
    assert 'operation_timeout = "2s"' in (EXAMPLE / "fleet.hcl").read_text("utf-8")
    for words in dict.fromkeys(typed):
        flags = {word.partition("=")[0].lstrip("-") for word in words if word.startswith("-")}
        verbs = words[:2] if words[0] in ("fleet", "sandbox") else words[:1]
        shown = command(*verbs, "--help", within=tmp_path)
        assert [flag for flag in flags if f"--{flag}" not in shown] == [], words


@pytest.mark.parametrize(
    ("end", "code"), [(KeyboardInterrupt, 130), (SystemExit(1), 1), (SystemExit(143), 143)]
)
def test_nothing_stays_when_it_is_stopped(
    demo: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: Any, code: int
) -> None:
    """By Ctrl-C, by a command that ends otherwise than it should, by a signal: brokers are
    stopped and the folder is gone."""
    folder, stopped = tmp_path / "story", []

    def made(**_: str) -> str:
        folder.mkdir()
        return str(folder)

    def start(self: Any) -> None:
        raise end

    monkeypatch.setattr(demo.tempfile, "mkdtemp", made)
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    monkeypatch.setattr(demo.Demo, "start_clusters", start)
    monkeypatch.setattr(demo.Demo, "stop", lambda self: stopped.append(folder.is_dir()))
    with pytest.raises(SystemExit) as ended:
        demo.main()
    assert (ended.value.code, stopped, folder.exists()) == (code, [True], False)


def test_commands_that_still_run_end_before_the_brokers(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets a signal and is waited for, and every broker is ended, however far it came."""
    story, ended = demo.Demo(tmp_path), []
    program = "import time; print('begun', flush=True); time.sleep(600)"
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert running.stdout is not None and running.stdout.readline()
    story.processes.append(running)

    def begin(*arguments: str) -> Any:
        assert running.poll() is not None
        ended.append(arguments)
        return SimpleNamespace(process=SimpleNamespace(wait=lambda: 0))

    monkeypatch.setattr(story, "begin", begin)
    story.stop()
    running.stdout.close()
    assert ended == [
        ("sandbox", "down", "--name", f"{demo.TOUR}-{name}") for name in ("eu", "us", "staging")
    ]
