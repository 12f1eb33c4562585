"""Makes the pictures of the site from what kafkaform prints: `python -m tests.kit.pictures`.

The plan and the apply are those of a sandbox. The fleet's report is the one that `make fleet-demo`
leaves.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from kafkaform import sandbox
from kafkaform.cli.app import run_command_line

from .browser import browser, executable
from .commands.terminal import Terminal
from .sandbox_homes import move_home
from .web_page import DESK

ASSETS = Path(__file__).resolve().parents[2] / "docs/assets"
REPORT = ASSETS.parents[1] / "fleet-demo-report/fleet.html"
HEIGHT = 1400
"""Of the picture of the report, in CSS pixels: as far as what to do first."""
COLUMNS = 92
TOPIC = """
resource "kafka_topic" "orders" {{
  name       = "shop.orders"
  partitions = {partitions}
  config     = {{ "retention.ms" = retention("{keep}") }}
}}
"""
FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich names a font of another server; pictures take the reader's own."""
ERASED = re.compile(r"^.*\r(?!\n)|\x1b\[[0-9;?]*[A-LN-Za-ln-z]", re.MULTILINE)
"""Progress that was overwritten, and movements of the cursor."""


def main() -> None:
    with _started() as folder:
        _declare(folder, partitions=3, keep="7d")
        _run(folder, "apply", "--auto-approve")
        _declare(folder, partitions=6, keep="30d")
        plan = _run(folder, "plan", "--quiet", "--out", "more.kfplan")
        apply = _run(folder, "apply", "--quiet", "more.kfplan")
    _draw("terminal-plan", "kafkaform plan --out more.kfplan", plan)
    _draw("terminal-apply", "kafkaform apply more.kfplan", "\n".join(apply.splitlines()[-4:]))
    _photograph_report()


@contextmanager
def _started() -> Iterator[Path]:
    """A folder with the provider block of a sandbox, which ends afterwards."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        move_home(patch, Path(folder))
        assert run_command_line(["sandbox", "up"]) == 0
        try:
            box = sandbox.load_sandbox("dev")
            patch.setenv("KAFKAFORM_SANDBOX_PASSWORD", box.admin_password)
            work = Path(folder, "work")
            work.mkdir()
            (work / "provider.kf.hcl").write_text(_run(work, "sandbox", "env"), encoding="utf-8")
            yield work
        finally:
            run_command_line(["sandbox", "down"])


def _declare(folder: Path, *, partitions: int, keep: str) -> None:
    text = TOPIC.format(partitions=partitions, keep=keep)
    (folder / "main.kf.hcl").write_text(text, encoding="utf-8")


def _run(folder: Path, *words: str) -> str:
    """What a terminal shows of a command that ends well, with its colours."""
    terminal = Terminal(folder, words, columns=COLUMNS)
    assert terminal.end() == 0, terminal.seen
    return ERASED.sub("", terminal.raw)


def _draw(name: str, title: str, text: str) -> None:
    """Write an SVG of a terminal."""
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        color_system="truecolor",
        force_terminal=True,
    )
    console.print(Text.from_ansi(text.strip("\n")))
    console.print()  # the last line of a picture is cut off at its bottom
    made = console.export_svg(title=title, theme=DIMMED_MONOKAI, unique_id=name)
    (ASSETS / f"{name}.svg").write_text(FACE.sub("", made), encoding="utf-8")


def _photograph_report() -> None:
    """Write the first screen of the fleet's report."""
    command = executable()
    missing = "no browser is installed" if command is None else ""
    if not REPORT.exists():
        missing = "run `make fleet-demo` first"
    if command is None or missing:
        print(f"fleet-report.png is as it was: {missing}", file=sys.stderr)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        browser(command, Path(folder, "profile")) as chromium,
    ):
        chromium.size(DESK, HEIGHT)
        chromium.open(REPORT)
        (ASSETS / "fleet-report.png").write_bytes(chromium.screen())


if __name__ == "__main__":
    main()
