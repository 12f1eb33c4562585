"""Requests about many files: the work of each grows with the files, and not with their square."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from kafkaform.editor import completion
from kafkaform.editor.completion import complete
from kafkaform.editor.project import Text
from kafkaform.editor.protocol import get_path, make_uri
from kafkaform.editor.reader import OpenFiles, OpenFilesSnapshot, ProjectReader
from kafkaform.editor.server import FEATURES, EditorRequest, recall_nothing
from kafkaform.workflow.configuration.files import Buffers

from ...kit.large_configuration import REST, write_topics

SIZE = 24
NAME = "main.kf.hcl"
END = """
output "end" {
  value = [kafka_topic.t1.name, var.prefix, module.m1.y]
}
"""
CURSORS: Mapping[str, str] = {
    "the resources of a type": "kafka_topic.|t1",
    "the names of a module": "module.|m1",
    "a value": "value = |[kafka",
    "a resource": "kafka_topic.t1|.name",
    "a variable": "var.prefix|",
    "an output of a module": "module.m1.y|",
}
MORE: Mapping[str, Mapping[str, Any]] = {
    types.TEXT_DOCUMENT_REFERENCES: {"context": types.ReferenceContext(True)},
    types.TEXT_DOCUMENT_RENAME: {"new_name": "renamed"},
    types.TEXT_DOCUMENT_FORMATTING: {"options": types.FormattingOptions(2, True)},
}


class _Params:
    """The parameters of any request."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def count_lines(work: Callable[[], object]) -> int:
    """How many lines of Python run; a loop in one line counts each time."""
    lines = 0

    def trace(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def open_all(folder: Path, names: list[str]) -> OpenFilesSnapshot:
    """All files are open, under names that lead through a link."""
    folder.parent.joinpath("link").symlink_to(folder)
    buffers, uris = Buffers(), {}
    for name in names:
        uri = make_uri(folder.parent / "link" / name)
        path = get_path(uri)
        assert path == folder / name
        buffers[path], uris[path] = path.read_bytes(), uri
    return OpenFilesSnapshot(OpenFiles(buffers), uris, 1, "utf-16")


def make_folder(folder: Path, files: int) -> tuple[ProjectReader, OpenFilesSnapshot]:
    folder.mkdir(parents=True)
    names = write_topics(folder, files, 1, REST)
    with (folder / NAME).open("a", encoding="utf-8") as file:
        file.write(END)
    return ProjectReader(), open_all(folder, [NAME, *names])


def count_request(folder: Path, files: int, name: str, cursor: str) -> int:
    """The lines that answer a request; the configuration was read before."""
    reader, snapshot = make_folder(folder, files)
    path = folder / NAME
    text = Text(path.read_text("utf-8"))
    assert reader.open_project(path, snapshot) is not None
    uri = snapshot.find_uri(path)
    request = EditorRequest(
        reader, snapshot, path, uri, text, types.ClientCapabilities(), recall_nothing
    )
    place = text.locate(text.text.index(cursor.replace("|", "")) + cursor.index("|"))
    params = _Params(
        text_document=types.TextDocumentIdentifier(uri),
        position=types.Position(place.line, place.character),
        **MORE.get(name, {}),
    )
    return count_lines(lambda: FEATURES[name].work(request, params))


@pytest.mark.parametrize(
    ("name", "cursor"),
    [
        (name, cursor)
        for name in FEATURES
        for cursor in CURSORS
        if cursor != "a value" or "ename" not in name
    ],
)
def test_the_work_of_a_request_is_linear(tmp_path: Path, name: str, cursor: str) -> None:
    """For twice as many files, modules, variables and `moved` blocks, at most twice the lines."""
    cursor = CURSORS[cursor]
    small = count_request(tmp_path / "a" / "small", SIZE, name, cursor)
    large = count_request(tmp_path / "b" / "large", 2 * SIZE, name, cursor)
    assert large <= 2.1 * small + 100


def test_the_work_of_reading_and_checking_is_linear(tmp_path: Path) -> None:
    """Also of finding out to which configuration each open file belongs."""
    counts = []
    for number, files in enumerate((SIZE, 2 * SIZE)):
        reader, snapshot = make_folder(tmp_path / str(number) / "folder", files)
        counts.append(count_lines(partial(reader.check, snapshot)))
    assert counts[1] <= 2.1 * counts[0]


def test_no_name_is_rendered_before_somebody_looks_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the editor can ask for the page of the chosen name; others get every page at once."""
    reader, snapshot = make_folder(tmp_path / "folder", SIZE)
    project = reader.open_project(tmp_path / "folder" / NAME, snapshot)
    assert project is not None
    rendered: list[str] = []
    render = completion.render_symbol
    monkeypatch.setattr(
        completion,
        "render_symbol",
        lambda project, symbol: rendered.append(symbol.name) or render(project, symbol),
    )
    offset = project.texts[NAME].text.index("kafka_topic.t1.name") + len("kafka_topic.")
    lazy = complete(project, NAME, offset, snippets=True, pages=False)
    assert (len(lazy.offers), rendered) == (SIZE, [])
    assert {offer.doc for offer in lazy.offers} == {""}
    eager = complete(project, NAME, offset, snippets=True)
    assert len(rendered) == SIZE
    assert all("A topic with its partitions" in offer.doc for offer in eager.offers)


def test_a_line_is_not_counted_from_its_start_for_each_place() -> None:
    """A file in JSON can be one line."""
    counts = []
    for length in (2_000, 4_000):
        text, parts = Text("ü = 1 " * length), list[int]()
        text._count = lambda part: parts.append(len(part)) or len(part)  # noqa: B023
        characters = [text.locate(at).character for at in range(0, len(text.text), 6)]
        assert characters == list(range(0, len(text.text), 6))
        counts.append(sum(parts))
    assert counts[1] <= 2.1 * counts[0]


def test_each_folder_is_read_once_for_all_open_files(tmp_path: Path) -> None:
    """A module belongs to the first of the configurations that call it."""
    counts = []
    for files in (SIZE, 2 * SIZE):
        root = tmp_path / str(files)
        (root / ".git").mkdir(parents=True)
        above = "".join(f'variable "v{number}" {{\n}}\n' for number in range(files))
        (root / "main.kf.hcl").write_text(above, "utf-8")
        buffers = Buffers({root / "shared" / "main.kf.hcl": b""})
        for number in range(files):
            folder = root / f"stack{number:02}"
            folder.mkdir()
            call = b'module "m" {\n  source = "../shared"\n}\n'
            buffers[folder / "main.kf.hcl"] = call
        opened = OpenFiles(buffers)
        counts.append(count_lines(partial(list, map(opened.find_owner, buffers))))
        assert opened.find_owner(root / "shared" / "main.kf.hcl") == root / "stack00"
        assert opened.find_owner(root / "stack01" / "main.kf.hcl") == root / "stack01"
    assert counts[1] <= 2.1 * counts[0]
