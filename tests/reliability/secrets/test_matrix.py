"""No secret is left anywhere, whichever command is typed and however it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...kit.canaries import CANARIES, SHORTEST_PIECE, hits
from .commands import LINES, LITERALS, TYPED, WORLDLY, every_command
from .house import Template, echo
from .matrix import Cell, Left, few, run_cell
from .paths import PATHS

SPARK = ("fleet prepare", "fleet doctor")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Template]:
    """See `Template`."""
    yield Template.build(tmp_path_factory.mktemp("canaries") / "template")


def left(template: Template, canary: str, command: str, path: str) -> Left:
    found = run_cell(template, Cell(canary, command, path))
    assert found.violations == ()
    return found


def test_every_command_is_in_the_matrix() -> None:
    """Whoever adds a command adds how it is typed here."""
    assert set(every_command()) == set(LINES)
    assert {*WORLDLY, *TYPED, *LITERALS} <= set(LINES)


def test_twenty_secrets_of_all_kinds() -> None:
    """Distinct ones, which a search finds in each spelling, and in nothing else."""
    assert len(set(CANARIES.values())) == 20
    for name, secret in CANARIES.items():
        assert len(secret) >= SHORTEST_PIECE
        assert hits(secret, {"there": f"x{echo(secret)}y".encode(), "not": b"x"}), name
        others = {n: echo(s).encode() for n, s in CANARIES.items() if n != name}
        assert hits(secret, others) == [], name


@pytest.mark.parametrize(
    "command",
    # They start Java, or fetch the jars of Spark.
    [pytest.param(x, marks=pytest.mark.spark) if x in SPARK else x for x in LINES],
)
def test_no_command_leaves_a_secret(template: Template, command: str) -> None:
    """Neither on a screen nor in any file, as text or encoded."""
    for cell in few(command):
        found = run_cell(template, cell)
        assert found.violations == ()
        assert found.looked_at > 5


@pytest.mark.parametrize(
    ("path", "command", "code"),
    [
        ("fine", "plan", 0),
        ("fine", "apply", 0),
        ("fine", "import", 0),
        ("fine", "destroy", 0),
        ("login refused", "plan", 1),
        ("broker down", "apply", 1),
        ("refused", "apply", 5),
        ("dry run refused", "apply", 1),
        ("unreadable", "apply", 8),
        ("interrupted", "apply", 130),
        ("interrupted early", "apply", 130),
        ("crash", "apply", 1),
        ("crash early", "plan", 1),
        ("crash on output", "version", 1),
        ("disk full", "apply", 9),
        ("unwritable", "apply", 9),
        ("state lost", "apply", 9),
        ("literal", "apply", 1),
        ("missing", "apply", 1),
    ],
)
def test_each_way_to_fail_is_met(template: Template, path: str, command: str, code: int) -> None:
    """The command ends as it should, and where something repeats the secret the filter is what
    keeps it back."""
    found = left(template, "ascii", command, path)
    assert found.code == code
    repeats = path in PATHS and path not in (
        "fine", "interrupted", "interrupted early", "crash on output", "unwritable", "disk full"
    )  # fmt: skip
    assert found.masked == repeats
