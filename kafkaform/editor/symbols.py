"""Names that are declared: where they are declared, and where they are used."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from ..language.tests.suites import ENDING as TESTS
from .outline import BlockOutline, Chain, ItemOutline, TextOutline, Word
from .project import REPOSITORY, VALUES, Project, get_folder


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
