"""Generated configuration goes into new files only: all of them, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.cli.commands.transfer import show_generated
from kafkaform.cli.terminal.console import Console
from kafkaform.core.errors import AppliedInPart, StorageError, UsageError
from kafkaform.workflow.generate.files import GeneratedConfiguration

CONSOLE = Console.make_standard(no_color=True)


def make(complete: bool = True) -> GeneratedConfiguration:
    parts = {"shop": "# shop\n", "override": "# override\n"}
    return GeneratedConfiguration("# main\n", parts, 3, ("A gap.",), complete)


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_parts_are_beside_the_main_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each part has the ending of the main file, and none is read as an override file."""
    show_generated(make(), tmp_path / "live.kf.hcl", CONSOLE)
    assert list_names(tmp_path) == ["live-override.kf.hcl", "live-shop.kf.hcl", "live.kf.hcl"]
    assert (tmp_path / "live-shop.kf.hcl").read_text() == "# shop\n"
    said = capsys.readouterr().err
    assert "A gap." in said
    assert "3 objects to import" in said
    assert "2 files beside it" in said


def test_one_file_that_exists_stops_all(tmp_path: Path) -> None:
    """The part of a team exists: it stays as it is, and nothing is written."""
    (tmp_path / "live-shop.kf.hcl").write_text("# mine\n")
    with pytest.raises(UsageError, match="not overwritten"):
        show_generated(make(), tmp_path / "live.kf.hcl", CONSOLE)
    assert list_names(tmp_path) == ["live-shop.kf.hcl"]
    assert (tmp_path / "live-shop.kf.hcl").read_text() == "# mine\n"


def test_a_file_that_cannot_be_written_takes_the_others_away(tmp_path: Path) -> None:
    """A link that leads nowhere is no file that could be new: the main file is gone again. A name
    that is too long fails at once."""
    (tmp_path / "live-shop.kf.hcl").symlink_to(tmp_path / "nowhere")
    for part in ("shop", "a" * 300):
        made = GeneratedConfiguration("# main\n", {part: "# more\n"}, 1, (), True)
        with pytest.raises(StorageError, match="cannot be written"):
            show_generated(made, tmp_path / "live.kf.hcl", CONSOLE)
        assert list_names(tmp_path) == ["live-shop.kf.hcl"]


def test_a_failed_listing_is_an_error_after_the_files(tmp_path: Path) -> None:
    """What could be read is written, and the command still fails."""
    with pytest.raises(AppliedInPart):
        show_generated(make(complete=False), tmp_path / "live.kf.hcl", CONSOLE)
    assert len(list_names(tmp_path)) == 3
