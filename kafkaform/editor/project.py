"""A configuration with its modules, tests and value files, as the open buffers have them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..core.errors import KafkaformError
from ..language.declare.folder import FAMILIES
from ..language.declare.json_bodies import parse_json_file
from ..language.declare.module_sources import SourceFault, is_git, resolve_source
from ..language.suites import ENDING as TESTS
from ..syntax.limits import FILE_BYTES
from ..workflow.configuration.evaluation import Configuration, Inputs, read_configuration
from ..workflow.configuration.files import Buffers, find_root, read_folder
from ..workflow.configuration.policies import ENDING as POLICIES
from .json_outline import outline_nodes
from .library import Library
from .outline import BlockOutline, TextOutline, make_outline
from .texts import UTF_16, Text

CONFIGURATIONS = tuple(ending for family in FAMILIES for ending in family.configuration)
VALUES = (".kfvars.hcl", ".tfvars")
FORMATTED = (".kf.hcl", ".tf", ".tofu", *VALUES, TESTS, POLICIES)
"""The endings of files in HCL, and `FLEET` beside them."""
FLEET = "fleet.hcl"
TEST_FOLDER = "tests"
MAX_BYTES = 2_000_000
"""The open and saved files of a configuration that is read at each request."""
LEVELS = 5
"""How many folders above a file outside of any repository are looked at."""


class Project(Struct, frozen=True):
    """What the requests of an editor are answered from."""

    configuration: Configuration
    library: Library
    texts: Mapping[str, Text]
    """Path seen from the folder -> the text of each file."""
    outlines: Mapping[str, TextOutline]
    """The same -> its outline."""

    @property
    def folder(self) -> Path:
        """The folder of the root module."""
        return self.configuration.folder

    def list_sections(self, folder: str, kind: str) -> Iterator[tuple[str, BlockOutline]]:
        """The top-level blocks of a type in a folder, each with its file."""
        for file, outline in self.outlines.items():
            if get_folder(file) == folder:
                yield from ((file, one) for one in outline.root.sections if one.type.text == kind)

    def find_called(self, folder: str, name: str) -> str | None:
        """The folder of the module that a `module` block of this name calls, seen from the root
        folder; None if it is not known."""
        for _, section in self.list_sections(folder, "module"):
            if [label.text for label in section.labels] == [name]:
                return self.find_source(folder, section)
        return None

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
        found = tree.names.get(spelling, spelling)
        return found if found in tree.modules else None


def get_folder(file: str) -> str:
    """The folder of the module that a file belongs to. Test files belong to the root."""
    return "" if file.endswith(TESTS) else posixpath.dirname(file)


def is_known(name: str) -> bool:
    """Whether a file of this name is one of kafkaform's."""
    return name == FLEET or name.endswith((*CONFIGURATIONS, *FORMATTED))


class OutlineCache(Struct):
    """The outlines of the texts that were seen last."""

    known: dict[Path, tuple[str, TextOutline]]

    def find(self, path: Path, text: str) -> TextOutline:
        """The outline of a file with this text."""
        kept = self.known.get(path)
        if kept is not None and kept[0] == text:
            return kept[1]
        outline = _outline_file(path.name, text)
        self.known[path] = text, outline
        return outline


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
) -> Project:
    """Read a configuration. Raises KafkaformError if a file cannot be read."""
    configuration = read_configuration(folder, Inputs.read(()), buffers=buffers)
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


def add_file(project: Project, file: str, text: Text) -> Project:
    """The project with another text of a file, or with a file that the configuration does not read,
    such as one of policies."""
    outline = _outline_file(file, text.text)
    return replace(
        project,
        texts={**project.texts, file: text},
        outlines={**project.outlines, file: outline},
    )


def is_large(folder: Path, buffers: Buffers) -> bool:
    """Whether reading a configuration takes longer than a key press can wait."""
    size = sum(len(text) for path, text in buffers.items() if path.is_relative_to(folder))
    with suppress(OSError), os.scandir(folder) as entries:
        size += sum(one.stat().st_size for one in entries if is_known(one.name))
    return size > MAX_BYTES


def _read_beside(folder: Path, buffers: Buffers) -> Iterator[tuple[str, bytes]]:
    """Test files, and value files that only `--var-file` reads."""

    def is_wanted(name: str) -> bool:
        return name.endswith((TESTS, *VALUES)) and not name.startswith(".")

    for where, prefix in ((folder, ""), (folder / TEST_FOLDER, f"{TEST_FOLDER}/")):
        with suppress(OSError):
            found = read_folder(find_root(folder), where, is_wanted=is_wanted, buffers=buffers)
            yield from ((prefix + name, content) for name, content in found.items())


# ── which configuration a file belongs to ───────────────────────────────────────────────


def find_owner(path: Path, open_folders: Iterable[Path], buffers: Buffers) -> Path:
    """The folder of the root module that a file belongs to.

    A folder that another one calls as a module is checked as a part of that one. Its callers are
    looked for in the folders above it, up to the root, and in those of other open files.
    """
    folder = path.parent
    if path.name.endswith(TESTS) and folder.name == TEST_FOLDER:
        folder = folder.parent
    root, above = find_root(folder), list(folder.parents)
    # Without a repository, the folder that calls this one is the root of both.
    above = above[:LEVELS] if root == folder else [p for p in above if p.is_relative_to(root)]
    for candidate in (*above, *sorted(open_folders)):
        if candidate != folder and _calls(candidate, folder, buffers):
            return candidate
    return folder


def _calls(candidate: Path, folder: Path, buffers: Buffers) -> bool:
    """Whether a configuration has the folder as a module."""
    own = {path.name for path in buffers if path.parent == candidate}
    try:
        names = {entry.name for entry in os.scandir(candidate)} | own
        if not any(name.endswith(CONFIGURATIONS) for name in names) or is_large(candidate, buffers):
            return False
        tree = read_configuration(candidate, Inputs.read(()), buffers=buffers).tree
        return Path(os.path.relpath(folder, candidate)).as_posix() in tree.modules
    except (OSError, KafkaformError):
        return False
