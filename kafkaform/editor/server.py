"""The language server: binds the functions of this package to pygls."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from ..core.errors import KafkaformError, UsageError
from ..version import VERSION
from .completion import complete
from .faults import FileFault, find_faults
from .formatting import format_document
from .hover import explain
from .library import Library, load_library
from .project import OutlineCache, Project, add_file, find_owner, is_large, read_project
from .protocol import (
    get_path,
    make_completions,
    make_diagnostic,
    make_location,
    make_range,
    make_symbol,
    make_uri,
    make_workspace_edit,
)
from .rename import CannotRename, find_renamed, rename
from .symbols import find_declarations, find_module_folder, find_use, find_uses, list_headings
from .texts import UTF_16, Text, TextPosition

DELAY = 0.2
"""Seconds without a key press after which open files are checked."""


MAX_HEADER_BYTES, MAX_MESSAGE_BYTES = 4096, 64 << 20
"""The longest header line and message of an editor."""
_LENGTH = re.compile(rb"Content-Length:\s*(\d+)", re.IGNORECASE)


class EditorServer(LanguageServer):
    """The state of a server."""

    def __init__(self) -> None:
        super().__init__("kafkaform", VERSION)
        self.library: Library | None = None
        self.cache = OutlineCache({})
        # One check at a time: two of them would only share the processor.
        self.checker = ThreadPoolExecutor(1, "check")
        self.waiting: asyncio.TimerHandle | None = None
        self.running = False
        self.again = False
        self.shown: set[str] = set()
        """The URIs of the files whose faults the editor shows."""
        self.projects: dict[Path, Project] = {}
        """Root folder -> what was read last."""
        self.changes = 0
        """Counts changes of open and saved files."""
        self.owners: dict[Path, tuple[int, Path]] = {}
        self.read: dict[Path, tuple[int, Project]] = {}

    @property
    def encoding(self) -> str:
        """What positions count."""
        return str(getattr(found := self.workspace.position_encoding, "value", found) or UTF_16)

    def list_buffers(self) -> dict[Path, bytes]:
        """The texts of the open files of kafkaform, by path."""
        found = {}
        for uri, document in self.workspace.text_documents.items():
            path = get_path(uri)
            if path is not None:
                found[path] = document.source.encode("utf-8", "surrogatepass")
        return found

    def find_uri(self, path: Path) -> str:
        """The URI of a file: an editor may know it by another path, which leads through links."""
        known = self.workspace.text_documents
        return next((uri for uri in known if get_path(uri) == path), make_uri(path))

    def find_owner(self, path: Path, buffers: Mapping[Path, bytes]) -> Path:
        """The root folder of a file, kept until something changes."""
        seen, owner = self.owners.get(path, (-1, path.parent))
        if seen != self.changes:
            owner = find_owner(path, {one.parent for one in buffers}, buffers)
            self.owners[path] = self.changes, owner
        return owner

    def open_project(self, path: Path) -> Project | None:
        """The configuration of a file as it is now; None if it cannot be read."""
        buffers = self.list_buffers()
        owner = self.find_owner(path, buffers)
        seen, project = self.read.get(owner, (-1, None))
        # A large configuration is read by the checks alone, so that no request waits for it.
        if seen == self.changes or is_large(owner, buffers):
            return project
        if self.library is None:
            self.library = load_library()
        with suppress(KafkaformError, OSError):
            project = read_project(owner, buffers, self.library, self.cache, self.encoding)
            self.read[owner] = self.changes, project
            return project
        return None

    # -- faults

    def note_change(self) -> None:
        """Check the open files once nobody has typed for a moment."""
        self.changes += 1
        if self.waiting is not None:
            self.waiting.cancel()
        loop = asyncio.get_running_loop()
        self.waiting = loop.call_later(DELAY, self._start_check)

    def _start_check(self) -> None:
        self.waiting = None
        if self.running:
            self.again = True
            return
        self.running = True
        buffers = self.list_buffers()
        owners: dict[Path, list[Path]] = {}
        for path in sorted(buffers):
            owners.setdefault(self.find_owner(path, buffers), []).append(path)
        self.library = self.library or load_library()
        work = partial(_check, owners, buffers, self.library, self.cache, self.encoding)
        future = asyncio.get_running_loop().run_in_executor(self.checker, work)
        future.add_done_callback(self._show_faults)

    def _show_faults(self, future: asyncio.Future[_Checked]) -> None:
        self.running = False
        found, projects = future.result()
        self.read |= {owner: (-1, project) for owner, project in projects.items()}
        published = {self.find_uri(path): faults for path, faults in found.items()}
        # A file that was closed may have had another name than the saved one.
        for uri in sorted(self.shown - set(published)):
            self._publish(uri, ())
        for uri, faults in published.items():
            self._publish(uri, faults)
        self.shown = {uri for uri, faults in published.items() if faults}
        if self.again:
            self.again = False
            self.note_change()

    def _publish(self, uri: str, faults: Iterable[FileFault]) -> None:
        shown = [make_diagnostic(fault) for fault in faults]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=shown)
        )


class _Checked(NamedTuple):
    """What a check has found."""

    faults: Mapping[Path, Sequence[FileFault]]
    projects: Mapping[Path, Project]
    """The large configurations, which requests do not read themselves."""


def _check(
    owners: Mapping[Path, Sequence[Path]],
    buffers: Mapping[Path, bytes],
    library: Library,
    cache: OutlineCache,
    encoding: str,
) -> _Checked:
    found: dict[Path, Sequence[FileFault]] = {}
    projects: dict[Path, Project] = {}
    for owner, opened in owners.items():
        found |= find_faults(owner, opened, buffers, encoding)
        if is_large(owner, buffers):
            with suppress(KafkaformError, OSError):
                projects[owner] = read_project(owner, buffers, library, cache, encoding)
    return _Checked(found, projects)


# ── the server ──────────────────────────────────────────────────────────────────────────


def make_server() -> EditorServer:
    """A server with all features, which reads nothing yet."""
    server = EditorServer()
    for event in (
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.TEXT_DOCUMENT_DID_CLOSE,
        types.TEXT_DOCUMENT_DID_SAVE,
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
    ):
        server.feature(event)(_note_change)
    triggers = types.CompletionOptions(trigger_characters=[".", '"'])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)(_complete)
    server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))(_rename)
    for feature, answer in _FEATURES.items():
        server.feature(feature)(answer)
    return server


def _note_change(server: EditorServer, _: Any) -> None:
    server.note_change()


class _Cursor(NamedTuple):
    """A position in a file of a configuration."""

    project: Project
    file: str
    offset: int

    @property
    def text(self) -> Text:
        return self.project.texts[self.file]


def _find_cursor(
    server: EditorServer, uri: str, position: types.Position | None = None
) -> _Cursor | None:
    """Where a request is about, None if it is about nothing of ours."""
    path = get_path(uri)
    project = None if path is None else server.open_project(path)
    if path is None or project is None or not path.is_relative_to(project.folder):
        return None
    file = path.relative_to(project.folder).as_posix()
    text = Text(server.workspace.get_text_document(uri).source, server.encoding)
    # What a check has read can be older than the text, and some files no configuration reads.
    if file not in project.texts or project.texts[file].text != text.text:
        project = add_file(project, file, text)
    place = TextPosition(position.line, position.character) if position else TextPosition(0, 0)
    return _Cursor(project, file, text.find_offset(place))


def _format(
    server: EditorServer, params: types.DocumentFormattingParams
) -> list[types.TextEdit] | None:
    path = get_path(params.text_document.uri)
    if path is None:
        return None
    source = server.workspace.get_text_document(params.text_document.uri).source
    edit = format_document(path.name, Text(source, server.encoding))
    return None if edit is None else [types.TextEdit(make_range(edit.span), edit.text)]


def _complete(
    server: EditorServer, params: types.CompletionParams
) -> list[types.CompletionItem] | None:
    cursor = _find_cursor(server, params.text_document.uri, params.position)
    if cursor is None:
        return None
    snippets = bool(
        get_capability(
            server.client_capabilities, "text_document.completion.completion_item.snippet_support"
        )
    )
    return make_completions(cursor.text, complete(*cursor, snippets=snippets))


def _hover(server: EditorServer, params: types.HoverParams) -> types.Hover | None:
    cursor = _find_cursor(server, params.text_document.uri, params.position)
    found = None if cursor is None else explain(*cursor)
    if cursor is None or found is None:
        return None
    span = cursor.text.locate_span(found.word.start, found.word.end)
    page = types.MarkupContent(types.MarkupKind.Markdown, found.page)
    return types.Hover(page, make_range(span))


def _define(server: EditorServer, params: types.DefinitionParams) -> list[types.Location] | None:
    cursor = _find_cursor(server, params.text_document.uri, params.position)
    if cursor is None:
        return None
    folder = find_module_folder(*cursor)
    if folder is not None:
        start = types.Range(types.Position(0, 0), types.Position(0, 0))
        return [types.Location(server.find_uri(cursor.project.folder / folder), start)]
    use = find_use(*cursor)
    found = () if use is None else find_declarations(cursor.project, use.symbol)
    return [make_location(cursor.project, one, server.find_uri) for one in found]


def _refer(server: EditorServer, params: types.ReferenceParams) -> list[types.Location] | None:
    cursor = _find_cursor(server, params.text_document.uri, params.position)
    use = None if cursor is None else find_use(*cursor)
    if cursor is None or use is None:
        return None
    wanted = params.context.include_declaration
    found = (one for one in find_uses(cursor.project, use.symbol) if wanted or not one.declares)
    return [make_location(cursor.project, one, server.find_uri) for one in found]


def _refuse(fault: CannotRename) -> JsonRpcException:
    return JsonRpcException(str(fault), types.LSPErrorCodes.RequestFailed)


def _prepare_rename(
    server: EditorServer, params: types.PrepareRenameParams
) -> types.PrepareRenamePlaceholder | None:
    cursor = _find_cursor(server, params.text_document.uri, params.position)
    if cursor is None:
        return None
    try:
        use = find_renamed(*cursor)
    except CannotRename as fault:
        raise _refuse(fault) from None
    span = cursor.text.locate_span(use.word.start, use.word.end)
    return types.PrepareRenamePlaceholder(make_range(span), use.symbol.last)


def _rename(server: EditorServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
    cursor = _find_cursor(server, params.text_document.uri, params.position)
    if cursor is None:
        return None
    try:
        changes = rename(*cursor, params.new_name, server.list_buffers())
    except CannotRename as fault:
        raise _refuse(fault) from None
    support = "workspace.workspace_edit.change_annotation_support"
    annotated = get_capability(server.client_capabilities, support) is not None
    return make_workspace_edit(cursor.project, changes, server.find_uri, annotated=annotated)


def _list_symbols(
    server: EditorServer, params: types.DocumentSymbolParams
) -> list[types.DocumentSymbol] | None:
    cursor = _find_cursor(server, params.text_document.uri)
    if cursor is None:
        return None
    headings = list_headings(cursor.project.outlines[cursor.file])
    return [make_symbol(cursor.text, heading) for heading in headings]


_FEATURES: Mapping[str, Callable[[EditorServer, Any], Any]] = {
    types.TEXT_DOCUMENT_FORMATTING: _format,
    types.TEXT_DOCUMENT_HOVER: _hover,
    types.TEXT_DOCUMENT_DEFINITION: _define,
    types.TEXT_DOCUMENT_REFERENCES: _refer,
    types.TEXT_DOCUMENT_PREPARE_RENAME: _prepare_rename,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: _list_symbols,
}
"""Request -> what answers it, without options."""


class _Incoming:
    """The stream of an editor, of which the library reads whatever length a header announces."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        """A line of a header. Raises UsageError for one that no editor writes."""
        line = self._stream.readline(MAX_HEADER_BYTES + 1)
        length = _LENGTH.match(line)
        if len(line) > MAX_HEADER_BYTES or (length and _is_too_long(length[1])):
            raise UsageError(
                f"the editor announces a message of more than {MAX_MESSAGE_BYTES:,} bytes, or "
                "writes a header that is not one of the Language Server Protocol",
                "Connect an editor to `kafkaform lsp`, or report this to its extension.",
            )
        return line

    def read(self, size: int) -> bytes:
        """The body of a message."""
        return self._stream.read(size)


def _is_too_long(digits: bytes) -> bool:
    digits = digits.lstrip(b"0")
    return len(digits) > len(str(MAX_MESSAGE_BYTES)) or int(digits or b"0") > MAX_MESSAGE_BYTES


def run_server(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Serve one editor until it ends the connection."""
    # The library logs each request that is refused as an exception, with a traceback.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    make_server().start_io(_Incoming(incoming), outgoing)  # type: ignore[arg-type]
