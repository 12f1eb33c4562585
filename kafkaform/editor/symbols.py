"""Names that are declared: where they are declared, where they are used, and the edits that rename
them in all files of a configuration.

A rename is tried out before it is offered: if the changed files have a fault that the current files
do not have, it is refused. So a use that only the evaluation finds, such as one in a JSON file, is
not forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from ..core.diagnostics import Diagnostic, has_errors
from ..core.errors import KafkaformError
from ..language.declare.blocks import NAME
from ..language.tests.suites import ENDING as TESTS
from ..syntax.parse import parse
from ..syntax.write import format_text
from ..workflow.configuration.evaluation import Inputs, read_configuration
from ..workflow.configuration.files import Buffers
from ..workflow.configuration.repository_folders import find_repository_faults
from .outline import BlockOutline, Chain, ItemOutline, TextOutline, Word
from .project import (
    FLEET,
    FORMATTED,
    REPOSITORY,
    VALUES,
    ParseCache,
    Project,
    Span,
    Text,
    drop_evaluations,
    get_folder,
)


class Kind(StrEnum):
    """What a name stands for; the value is for messages."""

    VARIABLE = "variable"
    LOCAL = "local value"
    MODULE = "module"
    OUTPUT = "output"
    RESOURCE = "resource"
    DATA = "data source"
    PROVIDER = "provider instance"
    CLUSTER = "cluster"
    """Of a repository file."""


class Symbol(Struct, frozen=True):
    """Something with a name."""

    folder: str
    """The folder of its module, seen from the root."""
    kind: Kind
    name: str
    """`TYPE.NAME` for resources and data sources, `NAME` or `NAME.ALIAS` for providers."""

    @property
    def last(self) -> str:
        """The part of the name that its block has as its last label."""
        return self.name.rpartition(".")[2]


class NameUse(Struct, frozen=True):
    """A place where a name stands."""

    file: str
    word: Word
    symbol: Symbol
    declares: bool = False
    section: BlockOutline | None = None
    """The block around a declaration."""
    historic: bool = False
    """The address of a `moved` or `removed` block, which says what was."""


_KINDS = {
    "variable": Kind.VARIABLE,
    "module": Kind.MODULE,
    "output": Kind.OUTPUT,
    "resource": Kind.RESOURCE,
    "data": Kind.DATA,
}
_HISTORIC = ("moved", "removed")


def list_uses(project: Project) -> Iterator[NameUse]:
    """Every place where a name stands, in all files."""
    for file, outline in project.outlines.items():
        yield from list_file_uses(project, file, outline)


def list_file_uses(project: Project, file: str, outline: TextOutline) -> Iterator[NameUse]:
    """Every place of a file where a name stands."""
    folder = get_folder(file)
    if file.endswith(VALUES):
        for item in outline.root.items:
            yield NameUse(file, item.name, Symbol("", Kind.VARIABLE, item.name.text))
        return
    for path in outline.walk():
        yield from _list_section_uses(project, file, folder, path)
    sections = outline.root.sections
    starts = [section.start for section in sections]
    for chain in outline.chains:
        start = chain.words[0].start
        around = sections[bisect_right(starts, start) - 1] if starts else outline.root
        historic = around.type.text in _HISTORIC and around.start <= start < around.end
        yield from list_chain_uses(project, file, folder, chain, historic)


def _list_section_uses(
    project: Project, file: str, folder: str, path: tuple[BlockOutline, ...]
) -> Iterator[NameUse]:
    section = path[-1]
    kind = section.type.text
    nested = len(path) > 1
    if file == REPOSITORY:
        if kind == "cluster" and len(section.labels) == 1 and not nested:
            label = section.labels[0]
            yield _declare(file, folder, Kind.CLUSTER, label.text, label, section)
        return
    if file.endswith(TESTS):
        if kind == "variables":
            for item in section.items:
                yield NameUse(file, item.name, Symbol("", Kind.VARIABLE, item.name.text))
        return
    if kind == "locals" and not nested:
        for item in section.items:
            yield _declare(file, folder, Kind.LOCAL, item.name.text, item.name, section)
    elif kind == "provider" and section.labels and not nested:
        alias = section.find_item("alias")
        word = section.labels[0]
        name = word.text
        if alias is not None and alias.literal is not None:
            name, word = f"{name}.{alias.literal.text}", alias.literal
        yield _declare(file, folder, Kind.PROVIDER, name, word, section)
    elif kind in _KINDS and section.labels and (not nested or kind == "data"):
        name = ".".join(label.text for label in section.labels)
        if len(section.labels) == (2 if kind in ("resource", "data") else 1):
            yield _declare(file, folder, _KINDS[kind], name, section.labels[-1], section)
    if kind == "module" and not nested:
        yield from _list_arguments(project, file, folder, section)


def _declare(
    file: str, folder: str, kind: Kind, name: str, word: Word, section: BlockOutline
) -> NameUse:
    return NameUse(file, word, Symbol(folder, kind, name), True, section)


def _list_arguments(
    project: Project, file: str, folder: str, section: BlockOutline
) -> Iterator[NameUse]:
    """The arguments of a call, which are variables of the module."""
    called = project.find_source(folder, section)
    if called is not None:
        names = project.list_variables(called)
        for item in section.items:
            if item.name.text in names:
                yield NameUse(file, item.name, Symbol(called, Kind.VARIABLE, item.name.text))


def list_chain_uses(
    project: Project, file: str, folder: str, chain: Chain, historic: bool = False
) -> Iterator[NameUse]:
    """The names in a reference. The first words of it (`var`, a type) are part of none."""
    words = [word.text for word in chain.words]
    if file == REPOSITORY:
        if words[0] == "cluster" and len(words) > 1:
            yield NameUse(file, chain.words[1], Symbol(folder, Kind.CLUSTER, words[1]))
        return
    for number, symbol in _link_words(project, folder, words):
        yield NameUse(file, chain.words[number], symbol, historic=historic)


def _link_words(project: Project, folder: str, words: list[str]) -> Iterator[tuple[int, Symbol]]:
    """The number of a word in a reference, and what it names."""
    root, schemas = words[0], project.library.schemas
    if root in schemas.providers:
        name = ".".join(words[:2])
        yield len(words[:2]) - 1, Symbol("", Kind.PROVIDER, name)
    elif len(words) < 2:
        return
    elif root == "var":
        yield 1, Symbol(folder, Kind.VARIABLE, words[1])
    elif root == "local":
        yield 1, Symbol(folder, Kind.LOCAL, words[1])
    elif root == "data" and len(words) > 2:
        yield 2, Symbol(folder, Kind.DATA, f"{words[1]}.{words[2]}")
    elif root == "module":
        yield 1, Symbol(folder, Kind.MODULE, words[1])
        called = project.find_called(folder, words[1])
        if called is None or len(words) < 3:
            return
        # Addresses of `import` and `moved` go on with what is inside.
        if len(words) > 3 and (words[2] == "module" or words[2] in schemas.types):
            yield from ((n + 2, symbol) for n, symbol in _link_words(project, called, words[2:]))
        else:
            yield 2, Symbol(called, Kind.OUTPUT, words[2])
    elif root in schemas.types:
        yield 1, Symbol(folder, Kind.RESOURCE, f"{root}.{words[1]}")


def find_use(project: Project, file: str, offset: int) -> NameUse | None:
    """The use of a name that a cursor touches, None if there is none.

    The first words of a reference count as its first name: a cursor at `var` is at the variable.
    """
    outline = project.outlines.get(file)
    if outline is None:
        return None
    for chain in outline.chains:
        touched = next((n for n, word in enumerate(chain.words) if word.covers(offset)), None)
        if touched is None:
            continue
        uses = list(list_chain_uses(project, file, get_folder(file), chain))
        positions = [chain.words.index(use.word) for use in uses]
        nearest_use = next(
            (u for u, at in zip(uses, positions, strict=True) if at == touched), None
        )
        if nearest_use is None and positions and touched < positions[0]:
            nearest_use = uses[0]
        return nearest_use
    declared = list_file_uses(project, file, outline)
    return next((use for use in declared if use.word.covers(offset)), None)


def find_module_folder(project: Project, file: str, offset: int) -> str | None:
    """The first file of the module whose `source` a cursor touches, None if it touches none."""
    for path in project.outlines[file].walk():
        section = path[-1]
        source = section.find_item("source")
        if section.type.text != "module" or source is None or source.literal is None:
            continue
        if source.literal.covers(offset):
            called = project.find_source(get_folder(file), section)
            files = [
                module_file
                for module_file in project.outlines
                if called and get_folder(module_file) == called
            ]
            return min(files, default=None)
    return None


def find_uses(project: Project, symbol: Symbol) -> Sequence[NameUse]:
    """Every place where a name stands, its declarations first."""
    declarations, references = project.derive(_group_uses).get(symbol, ((), ()))
    return (*declarations, *references)


def find_declarations(project: Project, symbol: Symbol) -> Sequence[NameUse]:
    """Where a name is declared."""
    return project.derive(_group_uses).get(symbol, ((), ()))[0]


def list_declared(project: Project, kind: Kind, folder: str | None) -> Sequence[Symbol]:
    """The names of a kind that a folder declares; those of all folders without a folder."""
    return project.derive(_group_declared).get((kind, folder), ())


def _group_uses(project: Project) -> Mapping[Symbol, tuple[list[NameUse], list[NameUse]]]:
    """Symbol -> its declarations and its other uses."""
    uses: dict[Symbol, tuple[list[NameUse], list[NameUse]]] = {}
    for use in list_uses(project):
        uses.setdefault(use.symbol, ([], []))[not use.declares].append(use)
    return uses


def _group_declared(project: Project) -> Mapping[tuple[Kind, str | None], Sequence[Symbol]]:
    declared: dict[tuple[Kind, str | None], list[Symbol]] = {}
    for symbol, (declarations, _) in project.derive(_group_uses).items():
        if declarations:
            declared.setdefault((symbol.kind, symbol.folder), []).append(symbol)
            declared.setdefault((symbol.kind, None), []).append(symbol)
    return declared


# ── the outline of a file ───────────────────────────────────────────────────────────────


class Heading(Struct, frozen=True):
    """A block or a local value in the outline that an editor shows."""

    name: str
    detail: str
    section: BlockOutline | ItemOutline
    word: Word
    """What is selected when somebody chooses it."""
    inner: tuple[Heading, ...] = ()


def list_headings(outline: TextOutline) -> tuple[Heading, ...]:
    """The outline of a file."""
    items = tuple(_make_item_heading(item) for item in outline.root.items)
    return items + tuple(_make_heading(section) for section in outline.root.sections)


def _make_heading(section: BlockOutline) -> Heading:
    inner = tuple(map(_make_heading, section.sections))
    if section.type.text == "locals":
        inner += tuple(map(_make_item_heading, section.items))
    labels = ".".join(label.text for label in section.labels)
    word = section.labels[-1] if section.labels else section.type
    return Heading(labels or section.type.text or "{", section.type.text, section, word, inner)


def _make_item_heading(item: ItemOutline) -> Heading:
    return Heading(item.name.text, "", item, item.name)


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
