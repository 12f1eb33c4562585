"""`kafkaform fmt [TARGET…]`: write configuration files in one standard layout."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from msgspec.structs import replace

from ... import render
from ...core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors
from ...core.errors import UsageError
from ...core.storage import make_storage_error, make_temporary_name, read_named_file, write_new
from ...syntax.nodes import FILE_BYTES
from ...syntax.parse import parse
from ...syntax.write import format_text
from ..options.flags import AllFolders, ChangedSince, Folders, NoColor
from ..terminal.console import Console, outlive_output

STDIN = Path("-")
ENDINGS = (".kf.hcl", ".kfpolicy.hcl", ".kfvars.hcl", ".kftest.hcl", ".tf", ".tofu", ".tfvars")
VALUES = (".kfvars.hcl", ".tfvars")
"""Files of variable values. Their lines can contain secrets, so errors do not quote them."""
NAMES = ("fleet.hcl", "kafkaform.hcl")
TAKEN = ", ".join((*(f"*{ending}" for ending in ENDINGS), *NAMES))
"""The names of files that are formatted, for people."""


Targets = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="TARGET", help="Files, folders, or - for standard input.", show_default=False
    ),
]


class ConfigurationText(NamedTuple):
    """A text to format."""

    path: Path
    """The path as it was typed or reached, `-` for standard input."""
    data: bytes


class Wish(NamedTuple):
    """What to do with a text."""

    name: bool
    """Print the name of the file if it changes."""
    write: bool
    """Write the file if it changes."""
    diff: bool
    """Print the difference."""
    result: bool
    """Print the result, changed or not."""


def fmt(
    targets: Targets = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show the changes.")] = False,
    recursive: Annotated[bool, typer.Option("--recursive", help="Include subfolders.")] = False,
    names: Annotated[
        bool, typer.Option("--list/--no-list", help="Print the names of changed files.")
    ] = True,
    write: Annotated[bool, typer.Option("--write/--no-write", help="Write the files.")] = True,
    all: AllFolders = False,
    folder: Folders = [],
    changed_since: ChangedSince = None,
    no_color: NoColor = False,
) -> int:
    """Rewrite configuration files in the standard format.

    Without TARGET, format this folder's files. Only whitespace changes. A file with errors stays as
    it is.
    """
    console, targets = Console.make_standard(no_color=no_color), targets or []
    if all or folder or changed_since:
        targets = _list_repository_files(targets, all, folder, changed_since)
    piped = STDIN in targets
    if piped and len(targets) > 1:
        raise UsageError("`-` stands alone", "Give files and folders, or `-` and nothing else.")
    names, write = names and not piped, write and not check and not piped
    wish = Wish(names, write, diff, not (names or write or diff or check))
    # From here on files change: a reader that leaves must not stop it half way.
    if write:
        outlive_output()
    faults: list[Diagnostic] = []
    changed = False
    for text in _read_standard_input() if piped else _read_texts(targets or [Path()], recursive):
        after, problems = _lay_out(text)
        faults.extend(problems)
        if isinstance(text, ConfigurationText) and after is not None:
            changed |= after != text.data
            _carry_out(wish, text, after, console)
    console.show_diagnostics(tuple(faults))
    return int(has_errors(faults) or (check and changed))


def _lay_out(text: ConfigurationText | Diagnostic) -> tuple[bytes | None, Diagnostics]:
    """The text in the standard layout; None and the faults if it stays as it is."""
    if isinstance(text, Diagnostic):
        return None, (text,)
    _, problems = parse(text.data, str(text.path))
    if has_errors(problems):
        if text.path.name.endswith(VALUES):
            problems = tuple(replace(fault, excerpt=None) for fault in problems)
        return None, problems
    return format_text(text.data.decode()).encode(), ()


def _carry_out(wish: Wish, text: ConfigurationText, after: bytes, console: Console) -> None:
    if after != text.data:
        if wish.name:
            console.write(_render_inline(text.path))
        if wish.write:
            _save_text(text.path, after)
        if wish.diff:
            console.write_lines(_render_difference(text, after, colour=console.colour))
    if wish.result:
        console.write_bytes(after)


def _list_repository_files(
    targets: Sequence[Path], all: bool, globs: Sequence[str], since: str | None
) -> list[Path]:
    """The file and the chosen folders of the repository. Raises UsageError."""
    from ...workflow.configuration.repository_choice import choose_folders  # noqa: PLC0415  # only these flags need it

    if targets:
        raise UsageError(
            "TARGET cannot be combined with --all, --folder and --changed-since",
            "Name the files, or choose folders of the repository.",
        )
    choice = choose_folders(Path(), all, globs, since)
    top = choice.repository.path
    paths = [top / choice.repository.file, *(top / folder.path for folder in choice.folders)]
    return [Path(os.path.relpath(p)) for p in paths if p.suffix != ".json"]


# ── the files ───────────────────────────────────────────────────────────────────────────


def _read_standard_input() -> Iterator[ConfigurationText]:
    yield ConfigurationText(STDIN, sys.stdin.buffer.read())


def _read_texts(
    targets: Sequence[Path], recursive: bool
) -> Iterator[ConfigurationText | Diagnostic]:
    """Read each file once, however often it is named or linked; yield a fault if that fails."""
    read_paths: set[str] = set()
    for target in targets:
        folder = target.is_dir()
        root = os.path.realpath(target if folder else target.parent)
        for path in _list_files(target, recursive) if folder else (target,):
            real = os.path.realpath(path)
            if real not in read_paths:
                read_paths.add(real)
                yield _read_text(path, real, root, named=not folder)


def _list_files(folder: Path, recursive: bool) -> Iterator[Path]:
    """The configuration files of a folder in the order of their names, without hidden ones."""
    # Links to folders are not followed: they can lead in a circle, or to somebody else's files.
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if recursive and not entry.is_symlink():
                yield from _list_files(entry, recursive)
        elif _is_configuration(entry):
            yield entry


def _is_configuration(path: Path) -> bool:
    return path.name.endswith(ENDINGS) or path.name in NAMES


def _read_text(path: Path, real: str, root: str, *, named: bool) -> ConfigurationText | Diagnostic:
    """Read a file. real: its path without links; root: the folder that links must not leave."""
    if named and not _is_configuration(path):
        return _make_fault(f"{path} is not a configuration file", f"Those are {TAKEN}.")
    if os.path.commonpath((real, root)) != root:
        severity = Severity.ERROR if named else Severity.WARNING
        advice = "It was left alone. Format the file in its own folder."
        return _make_fault(f"{path} is a link that leads out of its folder", advice, severity)
    try:
        return ConfigurationText(path, read_named_file(real, FILE_BYTES))
    except OSError as error:
        return _make_fault(
            f"{path} cannot be read: {error.strerror}", "Check the path and its rights."
        )


def _make_fault(summary: str, advice: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(severity, summary, advice=advice)


# ── the results ─────────────────────────────────────────────────────────────────────────


def _save_text(path: Path, data: bytes) -> None:
    """Replace the text of a file atomically, and keep its permissions."""
    real = Path(os.path.realpath(path))
    temporary = make_temporary_name(real)
    try:
        # A rename needs no permission for the file itself, so a read-only file would be replaced.
        with real.open("r+b"):
            pass
        write_new(temporary, data)
        temporary.chmod(real.stat().st_mode)
        temporary.replace(real)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise make_storage_error("cannot write the formatted text", path, error) from None


def _render_difference(text: ConfigurationText, after: bytes, *, colour: bool) -> Iterator[str]:
    """A unified diff as of `diff -u`, with visible control characters."""
    paint = render.text.Paint(colour)
    styles = {"+": "create", "-": "delete", "@": "dim"}
    before, now = (data.decode().splitlines(keepends=True) for data in (text.data, after))
    for line in difflib.unified_diff(before, now, f"old/{text.path}", f"new/{text.path}"):
        yield paint(styles.get(line[:1], ""), _render_inline(line.rstrip("\r\n")))
        if line[:1] in "+- " and not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _render_inline(text: object) -> str:
    """Foreign text without control characters, except tabs."""
    return "\t".join(map(render.text.inline, str(text).split("\t")))
