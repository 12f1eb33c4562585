"""Edits of open files: their format, and a rename in all files of a configuration.

A rename is tried out before it is offered: if the changed files have a fault that the current files
do not have, it is refused. So a use that only the evaluation finds, such as one in a JSON file, is
not forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..core.diagnostics import Diagnostic, has_errors
from ..core.errors import KafkaformError
from ..language.declare.blocks import NAME
from ..syntax.parse import parse
from ..syntax.write import format_text
from ..workflow.configuration.evaluation import Inputs, read_configuration
from ..workflow.configuration.files import Buffers
from ..workflow.configuration.repository_folders import find_repository_faults
from .project import FLEET, FORMATTED, REPOSITORY, ParseCache, Project, drop_evaluations
from .symbols import Kind, NameUse, Symbol, find_use, find_uses
from .texts import Span, Text

_MOVED = {Kind.RESOURCE: "", Kind.MODULE: "module."}
"""What has objects behind it -> what stands before its name in an address."""
LABEL = "Add a moved block, so that the live objects keep their state"
"""Describes the block to whoever confirms an edit."""


class CannotRename(Exception):
    """Why something cannot be renamed, in one sentence."""


class TextChange(Struct, frozen=True):
    """An edit of a file."""

    file: str
    start: int
    end: int
    """Offsets."""
    text: str
    moved: bool = False
    """It adds a `moved` block."""


def find_renamed(project: Project, file: str, offset: int) -> NameUse:
    """The use of a name that can be renamed. Raises CannotRename."""
    use = find_use(project, file, offset)
    if use is None:
        raise CannotRename(
            "This is not a name that the configuration declares: variables, local values, modules, "
            "outputs, resources, data sources and the clusters of a repository can be renamed."
        )
    if use.symbol.kind is Kind.PROVIDER:
        raise CannotRename(
            "A provider instance cannot be renamed here: the state knows its objects by that name."
        )
    if use.historic:
        raise CannotRename("This is an address of the past, which stays as it was.")
    if not any(declaration.declares for declaration in find_uses(project, use.symbol)):
        raise CannotRename(f"The {use.symbol.kind} {use.symbol.name} is not declared here.")
    return use


def rename(
    project: Project,
    file: str,
    offset: int,
    new: str,
    buffers: Buffers,
    parsed: ParseCache | None = None,
) -> tuple[TextChange, ...]:
    """The edits that rename what stands at an offset. Raises CannotRename.

    buffers: the open files, as the project was read with them. parsed: what was parsed of it.
    """
    parsed = parsed or ParseCache()
    symbol = find_renamed(project, file, offset).symbol
    if new == symbol.last:
        return ()
    _check_name(project, symbol, new)
    _check_texts(project, parsed)
    uses = find_uses(project, symbol)
    changes = [
        TextChange(use.file, use.word.start, use.word.end, new) for use in uses if not use.historic
    ]
    saved = sorted({use.file for use in uses if use.file.endswith(".json")})
    if saved:
        raise CannotRename(
            f"{saved[0]} uses the name, and JSON files are not edited. Edit it first."
        )
    if symbol.kind in _MOVED:
        changes.append(_make_moved(project, symbol, new, next(u for u in uses if u.declares)))
    _try_out(project, symbol, changes, buffers, parsed)
    return tuple(changes)


def _check_name(project: Project, symbol: Symbol, new: str) -> None:
    if not NAME.fullmatch(new):
        raise CannotRename(f'"{new}" is not a name: a letter followed by letters, digits, _ and -.')
    prefix = symbol.name.removesuffix(symbol.last)
    namesakes = find_uses(project, Symbol(symbol.folder, symbol.kind, prefix + new))
    if any(use.declares for use in namesakes):
        raise CannotRename(f"The name is taken: {symbol.kind} {prefix}{new}.")


def _check_texts(project: Project, parsed: ParseCache) -> None:
    for name, text in project.texts.items():
        if name.endswith(".json"):
            continue
        faults = parsed.parse(text.text.encode("utf-8", "surrogatepass"), name)[1]
        if has_errors(faults):
            position = faults[0].range
            raise CannotRename(
                f"{position or name} does not parse, so its uses are not known. Correct it first."
            )


def _make_moved(project: Project, symbol: Symbol, new: str, use: NameUse) -> TextChange:
    """The edit that adds a `moved` block behind the renamed one."""
    assert use.section is not None
    text = project.texts[use.file].text
    end = text.find("\n", use.section.end)
    at = len(text) if end < 0 else end + 1
    line = "\r\n" if "\r\n" in text else "\n"
    prefix = _MOVED[symbol.kind]
    target = symbol.name.removesuffix(symbol.last) + new
    lines = (
        "",
        "moved {",
        f"  from = {prefix}{symbol.name}",
        f"  to   = {prefix}{target}",
        "}",
        "",
    )
    return TextChange(use.file, at, at, ("" if end >= 0 else line) + line.join(lines), True)


def _try_out(
    project: Project,
    symbol: Symbol,
    changes: Sequence[TextChange],
    buffers: Buffers,
    parsed: ParseCache,
) -> None:
    """Raises CannotRename if the changed files have another fault than those before."""
    texts = edit_texts(project, changes)
    typed = Buffers(buffers)
    for name, text in texts.items():
        mark = "\ufeff" if project.texts[name].mark else ""
        typed[project.folder / name] = (mark + text).encode()
    before = _find_errors(project, symbol, buffers, parsed)
    # A fault can have the new name in its text where the old one was.
    old_summaries = {_hide_name(old_fault, symbol.last) for old_fault in before}
    new = next(iter(changes)).text
    # The changed files must not take the places of those that are there.
    changed = ParseCache(dict(parsed.entries))
    for fault in _find_errors(project, symbol, typed, changed):
        if (
            _hide_name(fault, new) not in old_summaries
            and _hide_name(fault, symbol.last) not in old_summaries
        ):
            location = f" ({fault.range})" if fault.range is not None else ""
            raise CannotRename(f"The configuration would have a fault{location}: {fault.summary}.")


def _hide_name(fault: Diagnostic, name: str) -> str:
    return fault.summary.replace(name, "…")


def _find_errors(
    project: Project, symbol: Symbol, buffers: Buffers, parsed: ParseCache
) -> list[Diagnostic]:
    """The errors of the files that can use the name."""
    if symbol.kind is Kind.CLUSTER:
        path = project.folder / REPOSITORY
        content = buffers.get(path) or project.texts[REPOSITORY].text.encode()
        return [fault for fault in find_repository_faults(path, content) if has_errors((fault,))]
    try:
        configuration = read_configuration(
            project.folder, Inputs.read(()), buffers=buffers, parse_file=parsed.parse
        )
        diagnostics = configuration.evaluate(offline=True).desired.diagnostics
    except KafkaformError as error:
        diagnostics = error.diagnostics
    drop_evaluations()
    return [fault for fault in diagnostics if has_errors((fault,))]


def edit_texts(project: Project, changes: Sequence[TextChange]) -> Mapping[str, str]:
    """File -> its text after the changes."""
    file_pieces: dict[str, list[str]] = {}
    ends: dict[str, int] = {}
    for change in sorted(changes, key=lambda change: change.start):
        text, end = project.texts[change.file].text, ends.get(change.file, 0)
        file_pieces.setdefault(change.file, []).extend((text[end : change.start], change.text))
        ends[change.file] = change.end
    return {
        file: "".join((*pieces, project.texts[file].text[ends[file] :]))
        for file, pieces in file_pieces.items()
    }


class LineEdit(Struct, frozen=True):
    """A part of a file, and what replaces it."""

    span: Span
    text: str


def format_document(name: str, text: Text) -> LineEdit | None:
    """The lines that change; None if none does, or if the text does not parse."""
    if not (name.endswith(FORMATTED) or name in (FLEET, REPOSITORY)):
        return None
    if has_errors(parse(text.text, name)[1]):
        return None
    before, after = (
        content.splitlines(keepends=True) for content in (text.text, format_text(text.text))
    )
    if before == after:
        return None
    # The editor keeps the cursor in lines that are not part of the edit.
    first = _count_equal(before, after)
    last = _count_equal(before[first:][::-1], after[first:][::-1])
    start = sum(map(len, before[:first]))
    end = sum(map(len, before[: len(before) - last]))
    return LineEdit(text.locate_span(start, end), "".join(after[first : len(after) - last]))


def _count_equal(old_lines: list[str], new_lines: list[str]) -> int:
    pairs = zip(old_lines, new_lines, strict=False)
    return next(
        (n for n, (a, b) in enumerate(pairs) if a != b), min(len(old_lines), len(new_lines))
    )
