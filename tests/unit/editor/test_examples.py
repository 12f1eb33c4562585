"""Every example, whole and cut off anywhere: no feature fails, and no name is lost."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.editor.completion import complete
from kafkaform.editor.faults import find_faults
from kafkaform.editor.hover import explain
from kafkaform.editor.outline import make_outline
from kafkaform.editor.project import (
    Library,
    OutlineCache,
    Project,
    Text,
    is_known,
    load_library,
    read_project,
)
from kafkaform.editor.reader import OpenFiles
from kafkaform.editor.symbols import (
    Kind,
    find_declarations,
    find_use,
    format_document,
    list_headings,
    list_uses,
)
from kafkaform.workflow.configuration.files import Buffers

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FOLDERS = sorted({path.parent for path in EXAMPLES.rglob("*.kf.hcl")})
OTHER = {EXAMPLES / "provider/demo"}
"""Its provider is a package of its own, which is not installed."""
each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda one: str(one.relative_to(EXAMPLES)))


@cache
def get_library() -> Library:
    return load_library()


def read_buffers(folder: Path) -> Buffers:
    paths = (path for path in folder.iterdir() if is_known(path.name))
    return Buffers({path: path.read_bytes() for path in paths})


def open_project(folder: Path, buffers: Buffers) -> Project:
    owner = OpenFiles(buffers).find_owner(next(iter(buffers)))
    return read_project(owner, buffers, get_library(), OutlineCache({}))


@each
def test_an_example_has_no_faults(folder: Path) -> None:
    """As a part of the configuration that calls it, and in the standard format."""
    buffers = read_buffers(folder)
    owner = OpenFiles(buffers).find_owner(next(iter(buffers)))
    found = find_faults(owner, list(buffers), buffers)
    errors = [one for faults in found.values() for one in faults if one.severity is Severity.ERROR]
    assert errors == [] or folder in OTHER
    for path, content in buffers.items():
        assert format_document(path.name, Text(content.decode())) is None, path


@each
def test_each_name_of_an_example_is_declared(folder: Path) -> None:
    """So definitions and renames reach every use."""
    project = open_project(folder, read_buffers(folder))
    uses = list(list_uses(project))
    assert uses
    for use in uses:
        if not use.historic and use.symbol.kind is not Kind.PROVIDER:
            assert find_declarations(project, use.symbol), use
        assert find_use(project, use.file, use.word.start) is not None


@each
def test_a_text_can_end_anywhere(folder: Path) -> None:
    """Whatever is typed so far, everything answers, and the blocks before the cut are found."""
    buffers = read_buffers(folder)
    path = max(buffers, key=lambda one: len(buffers[one]))
    text = buffers[path].decode()
    whole = [one.name for one in list_headings(make_outline(text))]
    for cut in range(1, len(text), max(1, len(text) // 40)):
        project = open_project(folder, Buffers({**buffers, path: text[:cut].encode()}))
        file = path.relative_to(project.folder).as_posix()
        complete(project, file, cut, snippets=True)
        explain(project, file, max(0, cut - 2))
        find_use(project, file, max(0, cut - 2))
        found = [one.name for one in list_headings(project.outlines[file])]
        assert found[:-1] == whole[: max(0, len(found) - 1)]
