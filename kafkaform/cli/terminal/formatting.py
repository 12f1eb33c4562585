"""The layout of configuration files: found, laid out anew, listed, compared, written back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors
from ...core.errors import UsageError
from ...core.storage import make_storage_error
from ...syntax.format import format_text
from ...syntax.parse import parse
from .console import Console
from .outlet import outlive_output

STDIN = Path("-")
ENDINGS = (".kf.hcl", ".kfvars.hcl", ".tf", ".tfvars")
VALUES = (".kfvars.hcl", ".tfvars")
"""Files of values, whose lines may hold secrets and are not quoted."""
NAMES = ("fleet.hcl",)
TAKEN = ", ".join((*(f"*{ending}" for ending in ENDINGS), *NAMES))
"""The names of files that are formatted, for people."""


class ConfigurationText(NamedTuple):
    """path: as it was typed or reached, `-` for standard input."""

    path: Path
    data: bytes


class Wish(NamedTuple):
    """What is done with a text: its name printed if it changes, the file changed, the difference
    printed; or, changed or not, the result printed."""

    name: bool
    write: bool
    diff: bool
    result: bool


def fmt(
    targets: Sequence[Path] = (),
    check: bool = False,
    diff: bool = False,
    recursive: bool = False,
    names: bool = True,
    write: bool = True,
    no_color: bool = False,
) -> int:
    """Lay out files, folders (default: this one) or standard input (`-`).

    With neither names, write, diff nor check the whole results are printed. check: write nothing,
    and 1 if something would change. Also 1 if a text cannot be read or has errors; it stays as
    it is, and the others are done.
    """
    console = Console.make_standard(no_color=no_color)
    piped = STDIN in targets
    if piped and len(targets) > 1:
        raise UsageError("`-` stands alone", "Give files and folders, or `-` and nothing else.")
    names, write = names and not piped, write and not check and not piped
    wish = Wish(names, write, diff, not (names or write or diff or check))
    if write:
        outlive_output()
    faults: list[Diagnostic] = []
    changed = False
    for text in _read_standard_input() if piped else _read_texts(targets or (Path(),), recursive):
        after, problems = _lay_out(text)
        faults.extend(problems)
        if isinstance(text, ConfigurationText) and after is not None:
            changed |= after != text.data
            _carry_out(wish, text, after, console)
    console.show_diagnostics(tuple(faults))
    return int(has_errors(faults) or (check and changed))


def _lay_out(text: ConfigurationText | Diagnostic) -> tuple[bytes | None, Diagnostics]:
    """The text in the standard layout, or None and why it is left alone."""
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


# -- what is found


def _read_standard_input() -> Iterator[ConfigurationText]:
    yield ConfigurationText(STDIN, sys.stdin.buffer.read())


def _read_texts(
    targets: Sequence[Path], recursive: bool
) -> Iterator[ConfigurationText | Diagnostic]:
    """Each file once, however often it was named or linked; a fault for one that is not read."""
    seen: set[str] = set()
    for target in targets:
        folder = target.is_dir()
        root = os.path.realpath(target if folder else target.parent)
        for path in _list_files(target, recursive) if folder else (target,):
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                yield _read_text(path, real, root, named=not folder)


def _list_files(folder: Path, recursive: bool) -> Iterator[Path]:
    """The configuration files of a folder, by name; links to folders are not followed, and what
    is hidden is nobody's configuration."""
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
    """real: where its links lead; root: the folder that they must not leave."""
    if named and not _is_configuration(path):
        return _make_fault(f"{path} is not a configuration file", f"Those are {TAKEN}.")
    if os.path.commonpath((real, root)) != root:
        severity = Severity.ERROR if named else Severity.WARNING
        advice = "It was left alone. Format the file in its own folder."
        return _make_fault(f"{path} is a link that leads out of its folder", advice, severity)
    try:
        return ConfigurationText(path, Path(real).read_bytes())
    except OSError as error:
        return _make_fault(
            f"{path} cannot be read: {error.strerror}", "Check the path and its rights."
        )


def _make_fault(summary: str, advice: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(severity, summary, advice=advice)


# -- what is done


def _save_text(path: Path, data: bytes) -> None:
    """Put the new text in the place of the old one, at once and with its rights."""
    from ...state.backends import files  # noqa: PLC0415  # only a text that changes needs it

    real = Path(os.path.realpath(path))
    temporary = files.make_temporary_name(real)
    try:
        # A rename asks for no right to the file itself, but to write it is what was asked for.
        with real.open("r+b"):
            pass
        files.write_new(temporary, data)
        temporary.chmod(real.stat().st_mode)
        temporary.replace(real)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise make_storage_error("cannot write the formatted text", path, error) from None


def _render_difference(text: ConfigurationText, after: bytes, *, colour: bool) -> Iterator[str]:
    """A unified diff, as `diff -u` writes it; control characters are made visible."""
    import difflib  # noqa: PLC0415  # only a text that changes needs it

    from ...render.style import Paint  # noqa: PLC0415  # only a text that changes needs it

    paint = Paint(colour)
    styles = {"+": "create", "-": "delete", "@": "dim"}
    before, now = (data.decode().splitlines(keepends=True) for data in (text.data, after))
    for line in difflib.unified_diff(before, now, f"old/{text.path}", f"new/{text.path}"):
        yield paint(styles.get(line[:1], ""), _render_inline(line.rstrip("\r\n")))
        if line[:1] in "+- " and not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _render_inline(text: object) -> str:
    """Foreign text on one line, tabs as they are."""
    from ...render.text import inline  # noqa: PLC0415  # only a text that changes needs it

    return "\t".join(map(inline, str(text).split("\t")))
