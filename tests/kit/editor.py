"""An editor: the client of pygls, in front of a `kafkaform lsp` of its own over its streams."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

SECONDS = 120.0
"""The longest wait for an answer."""

Answer = TypeVar("Answer")


class Editor:
    """An editor with a folder. It types into files and asks about them.

    A text given to `open`, `at` or `type` can have the cursor in it, as `|`.
    """

    words: Sequence[str] = ("-m", "kafkaform", "lsp")
    """What Python runs."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        capabilities: types.ClientCapabilities | None = None,
        *flags: str,
    ) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("tests", "1")
        self.faults: dict[str, list[types.Diagnostic]] = {}
        self.arrived = asyncio.Event()
        self.texts: dict[str, str] = {}
        self.version = 0
        self.shown: list[str] = []
        """What the server tells the user."""

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def arrive(params: types.PublishDiagnosticsParams) -> None:
            self.faults[params.uri] = list(params.diagnostics)
            self.arrived.set()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def show(params: types.ShowMessageParams) -> None:
            self.shown.append(params.message)

        env = {**os.environ, **(environment or {})}
        words = (*self.words, *flags)
        self.do(self.client.start_io(sys.executable, *words, cwd=folder, env=env))
        self.initialized = self.do(
            self.client.initialize_async(
                types.InitializeParams(
                    capabilities=capabilities or types.ClientCapabilities(),
                    root_uri=folder.as_uri(),
                )
            )
        )
        self.client.initialized(types.InitializedParams())

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """What the work yields, within the time limit."""
        return self.loop.run_until_complete(asyncio.wait_for(work, SECONDS))

    def enter(self, folder: Path) -> None:
        """Work in another folder, with no file open."""
        for name in self.texts:
            identifier = types.TextDocumentIdentifier(self.uri(name))
            self.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
        self.folder, self.texts = folder, {}
        self.faults.clear()
        self.shown.clear()

    def close(self) -> None:
        """Ask the server to end, and wait until it has."""
        self.do(self.client.shutdown_async(None))
        self.client.exit(None)
        self.errors = self.do(self.client._server.stderr.read()).decode()
        self.do(self.client._server.wait())
        self.code = self.client._server.returncode
        self.do(self.client.stop())
        self.loop.close()

    # -- files

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def write(self, name: str, text: str) -> None:
        """Save a file without opening it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def open(self, name: str, text: str) -> types.Position:
        """Open a file with a text that is not saved. The place of the cursor in it."""
        text, cursor = cut_cursor(text)
        self.texts[name] = text
        document = types.TextDocumentItem(self.uri(name), "kafkaform", 0, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return cursor

    def type(self, name: str, text: str) -> types.Position:
        """Replace the text of an open file."""
        text, cursor = cut_cursor(text)
        self.texts[name] = text
        self.version += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri(name)),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return cursor

    def put(self, name: str, text: str) -> types.Position:
        """Open the file, or replace its text if it is open."""
        return self.type(name, text) if name in self.texts else self.open(name, text)

    # -- questions

    def wait_for_faults(
        self, name: str, wanted: Callable[[Sequence[types.Diagnostic]], bool]
    ) -> list[types.Diagnostic]:
        """The faults of a file, once they are as wanted."""

        async def wait() -> list[types.Diagnostic]:
            uri = self.uri(name)
            while uri not in self.faults or not wanted(self.faults[uri]):
                self.arrived.clear()
                await self.arrived.wait()
            return self.faults[uri]

        return self.do(wait())

    def place(self, name: str, cursor: types.Position) -> dict[str, Any]:
        identifier = types.TextDocumentIdentifier(self.uri(name))
        return {"text_document": identifier, "position": cursor}

    def format(self, name: str) -> str:
        """The text after formatting."""
        params = types.DocumentFormattingParams(
            types.TextDocumentIdentifier(self.uri(name)), types.FormattingOptions(2, True)
        )
        edits = self.do(self.client.text_document_formatting_async(params))
        return edit_text(self.texts[name], edits or [])

    def complete(self, name: str, text: str) -> dict[str, types.CompletionItem]:
        """Name -> what is offered at the cursor."""
        cursor = self.put(name, text)
        params = types.CompletionParams(**self.place(name, cursor))
        found = self.do(self.client.text_document_completion_async(params))
        items = found.items if isinstance(found, types.CompletionList) else found or []
        return {item.label: item for item in items}

    def choose(self, name: str, text: str, label: str) -> str:
        """The text after a completion was chosen."""
        edit = self.complete(name, text)[label].text_edit
        assert isinstance(edit, types.TextEdit)
        return edit_text(self.texts[name], [edit])

    def hover(self, name: str, text: str) -> str:
        """What is shown for the word at the cursor."""
        cursor = self.put(name, text)
        params = types.HoverParams(**self.place(name, cursor))
        found = self.do(self.client.text_document_hover_async(params))
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    def define(self, name: str, text: str) -> list[str]:
        """Where the word at the cursor is declared, as FILE:LINE:TEXT, counted from 1."""
        cursor = self.put(name, text)
        params = types.DefinitionParams(**self.place(name, cursor))
        found = self.do(self.client.text_document_definition_async(params))
        return [self.show(item) for item in found or []]

    def refer(self, name: str, text: str, declaration: bool = True) -> list[str]:
        """The uses of what stands at the cursor, likewise."""
        cursor = self.put(name, text)
        context = types.ReferenceContext(declaration)
        params = types.ReferenceParams(**self.place(name, cursor), context=context)
        found = self.do(self.client.text_document_references_async(params))
        return [self.show(item) for item in found or []]

    def rename(self, name: str, text: str, new: str) -> types.WorkspaceEdit | None:
        cursor = self.put(name, text)
        params = types.RenameParams(**self.place(name, cursor), new_name=new)
        return self.do(self.client.text_document_rename_async(params))

    def apply(self, edit: types.WorkspaceEdit | None) -> dict[str, str]:
        """File -> its text after an edit of several files."""
        assert edit is not None
        changes: dict[str, list[Any]] = dict(edit.changes or {})
        for one in edit.document_changes or []:
            assert isinstance(one, types.TextDocumentEdit)
            changes[one.text_document.uri] = list(one.edits)
        names = {self.uri(n): n for n in (*self.texts, *self._list_saved())}
        return {
            names[uri]: edit_text(self._read(names[uri]), edits) for uri, edits in changes.items()
        }

    def symbols(self, name: str) -> list[types.DocumentSymbol]:
        params = types.DocumentSymbolParams(types.TextDocumentIdentifier(self.uri(name)))
        found = self.do(self.client.text_document_document_symbol_async(params))
        return [one for one in found or [] if isinstance(one, types.DocumentSymbol)]

    def show(self, place: Any) -> str:
        name = next(n for n in (*self.texts, *self._list_saved()) if self.uri(n) == place.uri)
        text = self._read(name)
        start, end = (find_offset(text, p) for p in (place.range.start, place.range.end))
        return f"{name}:{place.range.start.line + 1}:{text[start:end]}"

    def _read(self, name: str) -> str:
        return self.texts.get(name) or (self.folder / name).read_bytes().decode()

    def _list_saved(self) -> list[str]:
        return [str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if p.is_file()]


def cut_cursor(text: str) -> tuple[str, types.Position]:
    """The text without `|`, and where that was; the end of the text if there is none."""
    before, bar, after = text.partition("|")
    lines = before.split("\n")
    character = len(lines[-1].encode("utf-16-le")) // 2
    return before + after if bar else text, types.Position(len(lines) - 1, character)


def find_offset(text: str, position: types.Position) -> int:
    """The offset of a position in units of UTF-16."""
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: position.line])
    if position.line >= len(lines):
        return len(text)
    line = lines[position.line].encode("utf-16-le")[: position.character * 2]
    return start + len(line.decode("utf-16-le"))


def edit_text(text: str, edits: Sequence[Any]) -> str:
    """The text after these edits, none of which overlap."""
    offsets = [
        (find_offset(text, e.range.start), find_offset(text, e.range.end), e.new_text)
        for e in edits
    ]
    for start, end, new in sorted(offsets, reverse=True):
        text = text[:start] + new + text[end:]
    return text
