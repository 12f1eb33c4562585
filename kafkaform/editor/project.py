"""A configuration with its modules, tests and value files, as the open buffers have them, and what
the installed providers and the language offer to it. Offsets of a text are the positions of the
Language Server Protocol here, and the reverse."""

from __future__ import annotations

import gc
import posixpath
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.diagnostics import Diagnostics
from ..core.errors import KafkaformError
from ..core.schema import ObjectSchema
from ..language.declare.folder import FAMILIES, parse_configuration
from ..language.declare.json_bodies import parse_json_file
from ..language.declare.modules import SourceFault, is_git, resolve_source
from ..language.evaluate.evaluation_state import Schemas
from ..language.expressions.calls import FORMS
from ..language.functions import group_functions
from ..language.functions.spec import render_usage
from ..language.tests.suites import ENDING as TESTS
from ..provider.contract import Provider
from ..provider.registry import Registry
from ..syntax.nodes import FILE_BYTES, File
from ..workflow.configuration.evaluation import (
    Configuration,
    Inputs,
    collect_schemas,
    read_configuration,
)
from ..workflow.configuration.files import Buffers, find_root, read_folder
from ..workflow.configuration.policies import ENDING as POLICIES
from ..workflow.configuration.repository import FILES as REPOSITORY_FILES
from .outline import BlockOutline, TextOutline, make_outline, outline_nodes

UTF_16 = "utf-16"
"""The encoding of positions that every editor knows."""


class TextPosition(NamedTuple):
    """A place between two characters."""

    line: int
    """Counted from 0."""
    character: int
    """Units of the encoding before it in its line."""


class Span(NamedTuple):
    """A part of a text."""

    start: TextPosition
    end: TextPosition


_UNITS: Mapping[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    UTF_16: lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-32": len,
}
"""Encoding of positions -> the number of its units in a text."""
STEP = 512
"""Characters between two places whose units are counted once."""
_MARK = "\ufeff"
_END = re.compile("\r\n?|\n")


class Text:
    """The text of a file."""

    def __init__(self, text: str, encoding: str = UTF_16) -> None:
        """text: as the editor or the file has it; encoding: what positions count."""
        self.mark = text.startswith(_MARK)
        """Whether a byte order mark stands before it, which editors count and `syntax` does not."""
        self.text = text[1:] if self.mark else text
        """Without the mark. All offsets are offsets into it."""
        self._count = _UNITS[encoding]

    @cached_property
    def _starts(self) -> array[int]:
        """Offset of the first character of each line."""
        # The protocol has a third line end, a carriage return alone.
        return array("q", chain((0,), (line_end.end() for line_end in _END.finditer(self.text))))

    @cached_property
    def _counted_starts(self) -> array[int]:
        """The same for the lines that messages count, which end with a newline."""
        if "\r" not in self.text:
            return self._starts
        return array("q", chain((0,), (newline.end() for newline in re.finditer("\n", self.text))))

    @cached_property
    def _counts(self) -> array[int] | None:
        """The units before every STEP-th character; None if each character is one unit."""
        if self.text.isascii():
            return None
        steps = (self.text[at : at + STEP] for at in range(0, len(self.text), STEP))
        return array("q", accumulate(map(self._count, steps), initial=0))

    def _count_before(self, offset: int) -> int:
        """The units before an offset. A file can be one line, so no line is counted as a whole."""
        if self._counts is None:
            return offset
        step = offset // STEP
        return self._counts[step] + self._count(self.text[step * STEP : offset])

    def locate(self, offset: int) -> TextPosition:
        """The position of an offset."""
        line = bisect_right(self._starts, offset) - 1
        count = self._count_before(offset) - self._count_before(self._starts[line])
        return TextPosition(line, count + self._get_lead(line))

    def locate_span(self, start: int, end: int) -> Span:
        """The positions of text[start:end]."""
        return Span(self.locate(start), self.locate(end))

    def find_offset(self, position: TextPosition) -> int:
        """The offset of a position; the nearest one in the text if it has no such place."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[max(0, position.line)]
        line_end = _END.search(self.text, start)
        line = self.text[start : len(self.text) if line_end is None else line_end.start()]
        target = position.character - self._get_lead(position.line)
        if line.isascii():
            return start + min(max(0, target), len(line))
        first = self._count_before(start)
        low, high = start, start + len(line)
        while low < high:  # the last place with at most as many units before it
            middle = (low + high + 1) // 2
            units = self._count_before(middle) - first
            low, high = (middle, high) if units <= target else (low, middle - 1)
        return low

    def find_line(self, line: int, column: int) -> int:
        """The offset of a line and a column of code points, both counted from 1."""
        index = min(max(0, line - 1), len(self._counted_starts) - 1)
        return min(self._counted_starts[index] + max(0, column - 1), len(self.text))

    def _get_lead(self, line: int) -> int:
        return self._count(_MARK) if self.mark and line == 0 else 0


class FunctionPage(NamedTuple):
    """A function, for people."""

    usage: str
    doc: str


class Library(Struct, frozen=True):
    """What a configuration can use."""

    schemas: Schemas
    simulations: Mapping[str, ObjectSchema]
    """Provider -> what a `simulate` block of it can contain."""
    functions: Mapping[str, FunctionPage]
    providers: Mapping[str, Provider]


def load_library() -> Library:
    """Everything that is installed. A provider that cannot be loaded is left out: what is wrong
    with it is a fault of each configuration that uses it."""
    registry = Registry()
    providers, simulations = {}, {}
    for name in registry.names:
        # A broken provider costs its own completions only.
        with suppress(KafkaformError):
            providers[name] = registry.load(name)
            simulations[name] = registry.load_simulation(name).settings
    pages = {
        function.name: FunctionPage(function.usage(), function.doc)
        for group in group_functions().values()
        for function in group
    }
    for name, form in FORMS.items():
        pages[name] = FunctionPage(render_usage(name, form.params, form.variadic), form.doc)
    return Library(collect_schemas(providers), simulations, pages, providers)


CONFIGURATIONS = tuple(ending for family in FAMILIES for ending in family.configuration)
VALUES = (".kfvars.hcl", ".tfvars")
FORMATTED = (".kf.hcl", ".tf", ".tofu", *VALUES, TESTS, POLICIES)
"""The endings of files in HCL. `FLEET` and `REPOSITORY` are files in HCL, too."""
FLEET = "fleet.hcl"
REPOSITORY = REPOSITORY_FILES[0]
TEST_FOLDER = "tests"
MAX_BYTES = 2_000_000
"""The open and saved files of a configuration that is read at each request."""


Derived = TypeVar("Derived")


class Project(Struct, frozen=True):
    """What the requests of an editor are answered from."""

    configuration: Configuration
    library: Library
    texts: Mapping[str, Text]
    """Path seen from the folder -> the text of each file."""
    outlines: Mapping[str, TextOutline]
    """The same -> its outline."""
    derived: dict[Callable[[Project], Any], Any] = field(default_factory=dict)
    """Function -> what it has made of the project."""

    def derive(self, make: Callable[[Project], Derived]) -> Derived:
        """What a function makes of the project. It is called once, so that no request looks through
        all files for each name."""
        if make not in self.derived:
            self.derived[make] = make(self)
        return cast(Derived, self.derived[make])

    @property
    def folder(self) -> Path:
        """The folder of the root module."""
        return self.configuration.folder

    def list_sections(self, folder: str, kind: str) -> Sequence[BlockOutline]:
        """The top-level blocks of a type in a folder."""
        return self.derive(_group_sections).get((folder, kind), ())

    def find_called(self, folder: str, name: str) -> str | None:
        """The folder of the module that a `module` block of this name calls, seen from the root
        folder; None if it is not known."""
        return self.derive(_find_called_folders).get((folder, name))

    def list_variables(self, folder: str) -> Mapping[str, BlockOutline]:
        """The variables of a folder, by name."""
        return self.derive(_group_variables).get(folder, {})

    def find_source(self, folder: str, section: BlockOutline) -> str | None:
        """The folder that a `module` block in `folder` calls, None if it is not known."""
        source = section.find_item("source")
        if source is None or source.literal is None:
            return None
        try:
            spelling = resolve_source(source.literal.text, folder)
        except SourceFault:
            return None
        tree = self.configuration.tree
        module_source = tree.names.get(spelling, spelling)
        return module_source if module_source in tree.modules else None


def _group_sections(project: Project) -> Mapping[tuple[str, str], Sequence[BlockOutline]]:
    """Folder and type -> the top-level blocks."""
    sections: dict[tuple[str, str], list[BlockOutline]] = {}
    for file, outline in project.outlines.items():
        folder = get_folder(file)
        for section in outline.root.sections:
            sections.setdefault((folder, section.type.text), []).append(section)
    return sections


def _find_called_folders(project: Project) -> Mapping[tuple[str, str], str | None]:
    """Folder and name of a module block -> the folder that it calls; the first of a name counts."""
    called: dict[tuple[str, str], str | None] = {}
    for (folder, kind), sections in project.derive(_group_sections).items():
        for section in sections if kind == "module" else ():
            name = (folder, ".".join(label.text for label in section.labels))
            if len(section.labels) == 1 and name not in called:
                called[name] = project.find_source(folder, section)
    return called


def _group_variables(project: Project) -> Mapping[str, Mapping[str, BlockOutline]]:
    variables: dict[str, dict[str, BlockOutline]] = {}
    for (folder, kind), sections in project.derive(_group_sections).items():
        for section in sections if kind == "variable" else ():
            if section.labels:
                variables.setdefault(folder, {}).setdefault(section.labels[0].text, section)
    return variables


def get_folder(file: str) -> str:
    """The folder of the module that a file belongs to. Test files belong to the root."""
    return "" if file.endswith(TESTS) else posixpath.dirname(file)


def is_known(name: str) -> bool:
    """Whether a file of this name is one of kafkaform's."""
    return name in (FLEET, REPOSITORY) or name.endswith((*CONFIGURATIONS, *FORMATTED))


class OutlineCache(Struct):
    """The outlines of the texts that were seen last."""

    entries: dict[Path, tuple[str, TextOutline]]

    def find(self, path: Path, text: str) -> TextOutline:
        """The outline of a file with this text."""
        entry = self.entries.get(path)
        if entry is not None and entry[0] == text:
            return entry[1]
        outline = _outline_file(path.name, text)
        self.entries[path] = text, outline
        return outline


class ParseCache(Struct):
    """The files of one configuration that were parsed last, because a key changes one of them."""

    entries: dict[str, tuple[bytes, tuple[File, Diagnostics]]] = field(default_factory=dict)

    def parse(self, content: bytes, name: str) -> tuple[File, Diagnostics]:
        """A file with this content, parsed."""
        entry = self.entries.get(name)
        if entry is not None and entry[0] == content:
            return entry[1]
        parsed = parse_configuration(content, name)
        self.entries[name] = content, parsed
        return parsed


def _outline_file(name: str, text: str) -> TextOutline:
    if not name.endswith(".json"):
        return make_outline(text)
    content = text[:MAX_BYTES].encode("utf-8", "replace")
    return outline_nodes(parse_json_file(content, name)[0].body)


def read_project(
    folder: Path,
    buffers: Buffers,
    library: Library,
    cache: OutlineCache,
    encoding: str = UTF_16,
    parsed: ParseCache | None = None,
) -> Project:
    """Read a configuration. Raises KafkaformError if a file cannot be read."""
    parse_file = (parsed or ParseCache()).parse
    inputs = Inputs.read(())
    configuration = read_configuration(folder, inputs, buffers=buffers, parse_file=parse_file)
    contents = dict(configuration.tree.contents)
    for name, content in _read_beside(folder, buffers):
        contents.setdefault(name, content)
    texts = {
        name: Text(content.decode("utf-8", "replace"), encoding)
        for name, content in contents.items()
        # Nobody edits the files of a Git repository here, and they are not in the folder.
        if len(content) <= FILE_BYTES and not is_git(name)
    }
    outlines = {name: cache.find(folder / name, text.text) for name, text in texts.items()}
    return Project(configuration, library, texts, outlines)


def add_file(project: Project, file: str, text: Text, cache: OutlineCache) -> Project:
    """The project with another text of a file, or with a file that the configuration does not read,
    such as one of policies."""
    outline = cache.find(project.folder / file, text.text)
    return replace(
        project,
        texts={**project.texts, file: text},
        outlines={**project.outlines, file: outline},
        derived={},
    )


def drop_evaluations() -> None:
    """Free what evaluations have left, which refers to itself. After each one this takes
    milliseconds, and after ten a quarter of a second, in which nothing is answered."""
    gc.collect()


def _read_beside(folder: Path, buffers: Buffers) -> Iterator[tuple[str, bytes]]:
    """Test files, and value files that only `--var-file` reads."""

    def is_wanted(name: str) -> bool:
        return name.endswith((TESTS, *VALUES)) and not name.startswith(".")

    for subfolder, prefix in ((folder, ""), (folder / TEST_FOLDER, f"{TEST_FOLDER}/")):
        # Most configurations have no folder of tests, and files come and go while somebody types.
        with suppress(OSError):
            files = read_folder(find_root(folder), subfolder, is_wanted=is_wanted, buffers=buffers)
            yield from ((prefix + name, content) for name, content in files.items())
