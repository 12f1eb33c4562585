"""The language server: binds the functions of this package to pygls.

The event loop only reads messages and sends answers. The work is done by threads, one for each
`Lane`, with what was open when the request came. So a request that takes long holds up those of its
own lane only, and one that was cancelled before its turn is never begun.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from lsprotocol import types
from msgspec import Struct
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from ..core.errors import UsageError
from ..core.text import inline
from ..version import VERSION
from ..workflow.configuration.files import Buffers
from .completion import complete
from .faults import FileFault
from .hover import explain, render_symbol
from .project import UTF_16, Project, Text, TextPosition, add_file
from .protocol import (
    get_path,
    make_completions,
    make_diagnostic,
    make_location,
    make_page,
    make_range,
    make_symbol,
    make_workspace_edit,
    read_symbol,
)
from .reader import OpenFiles, OpenFilesSnapshot, ProjectReader
from .symbols import (
    CannotRename,
    Kind,
    Symbol,
    find_declarations,
    find_module_folder,
    find_renamed,
    find_use,
    find_uses,
    format_document,
    list_headings,
    rename,
)

SWITCH = 0.001
"""Seconds after which a thread that computes lets another one answer."""
DELAY = 0.2
"""Seconds without a key press after which open files are checked."""
MAX_HEADER_BYTES, MAX_MESSAGE_BYTES = 4096, 64 << 20
"""The longest header line and message of an editor."""
_LENGTH = re.compile(rb"Content-Length:\s*(\d+)", re.IGNORECASE)


class Lane(StrEnum):
    """Requests that wait for each other."""

    TEXT = "text"
    """Those about one text, which need no configuration."""
    NAMES = "names"
    """Those that look something up in a configuration."""
    RENAME = "rename"
    """A rename is tried out, which evaluates everything."""
    CHECK = "check"
    """Two checks would only share the processor."""
    LOOK = "look"
    """Looks at live systems, one after the other."""


Recall = Callable[[Path, str], Sequence[str]]
"""Folder and address -> its last changes, one line for each, the newest first."""


Look = Callable[[Path, str], Sequence[str]]
"""Folder and address -> who uses the objects of this block now, as lines. It connects."""


def recall_nothing(folder: Path, address: str) -> Sequence[str]:
    """For servers that know no log."""
    return ()


class OpenFile(NamedTuple):
    """A file of kafkaform's that is open."""

    path: Path
    source: str
    content: bytes


class EditorServer(LanguageServer):
    """The state of a server."""

    def __init__(self, recall: Recall, look: Look | None) -> None:
        super().__init__("kafkaform", VERSION)
        self.recall, self.look = recall, look
        self.reader = ProjectReader()
        self.lanes = {lane: ThreadPoolExecutor(1, lane) for lane in Lane}
        self.waiting: asyncio.TimerHandle | None = None
        self.running = False
        self.again = False
        self.shown: set[str] = set()
        """The URIs of the files whose faults the editor shows."""
        self.changes = 0
        """Counts changes of open and saved files."""
        self.opened: dict[str, OpenFile] = {}
        """The open files of the last snapshot, by URI."""
        self.snapshot: OpenFilesSnapshot | None = None

    @property
    def encoding(self) -> str:
        """What positions count."""
        return str(
            getattr(encoding := self.workspace.position_encoding, "value", encoding) or UTF_16
        )

    def take_snapshot(self) -> OpenFilesSnapshot:
        """What is open now. Only files that have changed are looked at again."""
        if self.snapshot is not None and self.snapshot.changes == self.changes:
            return self.snapshot
        opened: dict[str, OpenFile] = {}
        for uri, document in self.workspace.text_documents.items():
            file, source = self.opened.get(uri), document.source
            path = get_path(uri) if file is None else file.path
            if file is not None and file.source is source:
                opened[uri] = file
            elif path is not None:
                opened[uri] = OpenFile(path, source, source.encode("utf-8", "surrogatepass"))
        self.opened = opened
        buffers = Buffers({file.path: file.content for file in opened.values()})
        files = OpenFiles(buffers, self.reader.find_parsed)
        # The first of several names of a file counts.
        uris = {file.path: uri for uri, file in reversed(opened.items())}
        self.snapshot = OpenFilesSnapshot(files, uris, self.changes, self.encoding)
        return self.snapshot

    async def answer(self, feature: EditorFeature, uri: str, params: Any) -> Any:
        """The answer to a request about a file, None if the file is none of ours."""
        path = get_path(uri)
        if path is None:
            return None
        # Everything that a later message could change is read before the first await.
        text = Text(self.workspace.get_text_document(uri).source, self.encoding)
        request = EditorRequest(
            self.reader,
            self.take_snapshot(),
            path,
            uri,
            text,
            self.client_capabilities,
            self.recall,
        )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.lanes[feature.lane], feature.work, request, params)

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
        snapshot = self.take_snapshot()
        loop = asyncio.get_running_loop()
        check = loop.run_in_executor(self.lanes[Lane.CHECK], self.reader.check, snapshot)
        check.add_done_callback(self._show_faults)

    def _show_faults(self, future: asyncio.Future[Mapping[Path, Sequence[FileFault]]]) -> None:
        self.running = False
        if future.cancelled():  # the connection has ended
            return
        snapshot = self.take_snapshot()
        published = {snapshot.find_uri(path): faults for path, faults in future.result().items()}
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
        diagnostics = [make_diagnostic(fault) for fault in faults]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics)
        )


class EditorRequest(Struct, frozen=True):
    """A request about a file, with what was open when it came."""

    reader: ProjectReader
    snapshot: OpenFilesSnapshot
    path: Path
    uri: str
    text: Text
    capabilities: types.ClientCapabilities
    recall: Recall

    def find_cursor(self, position: types.Position) -> Cursor | None:
        """Where the request is about, None if the file belongs to no configuration."""
        project = self.reader.open_project(self.path, self.snapshot)
        if project is None or not self.path.is_relative_to(project.folder):
            return None
        file = self.path.relative_to(project.folder).as_posix()
        # What a check has read can be older than the text, and some files no configuration reads.
        if file not in project.texts or project.texts[file].text != self.text.text:
            project = add_file(project, file, self.text, self.reader.outlines)
        text_position = TextPosition(position.line, position.character)
        return Cursor(project, file, self.text.find_offset(text_position))


class Cursor(NamedTuple):
    """A position in a file of a configuration."""

    project: Project
    file: str
    offset: int


class EditorFeature(NamedTuple):
    """How requests of a kind are answered."""

    lane: Lane
    work: Callable[[EditorRequest, Any], Any]
    options: Any = None


# ── the server ──────────────────────────────────────────────────────────────────────────


def make_server(recall: Recall = recall_nothing, look: Look | None = None) -> EditorServer:
    """A server with all features, which reads nothing yet. recall: what a log says; look: what a
    hover asks a live system, None if it asks nobody."""
    server = EditorServer(recall, look)
    for event in (
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.TEXT_DOCUMENT_DID_CLOSE,
        types.TEXT_DOCUMENT_DID_SAVE,
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
    ):
        server.feature(event)(_note_change)
    for name, feature in FEATURES.items():
        server.feature(name, feature.options)(_bind_feature(feature))
    server.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
    server.feature(types.COMPLETION_ITEM_RESOLVE)(_resolve)
    return server


def _note_change(server: EditorServer, _: Any) -> None:
    server.note_change()


def _bind_feature(feature: EditorFeature) -> Callable[[EditorServer, Any], Awaitable[Any]]:
    async def handle_request(server: EditorServer, params: Any) -> Any:
        return await server.answer(feature, params.text_document.uri, params)

    return handle_request


async def _resolve(server: EditorServer, item: types.CompletionItem) -> types.CompletionItem:
    """An offer with its documentation."""
    offered = read_symbol(item)
    if offered is not None:
        uri, symbol = offered
        page = await server.answer(EditorFeature(Lane.NAMES, _render_page), uri, symbol)
        item.documentation = None if page is None else make_page(page)
    return item


def _render_page(request: EditorRequest, symbol: Symbol) -> str | None:
    project = request.reader.open_project(request.path, request.snapshot)
    return None if project is None else render_symbol(project, symbol)


def _format(
    request: EditorRequest, params: types.DocumentFormattingParams
) -> list[types.TextEdit] | None:
    edit = format_document(request.path.name, request.text)
    return None if edit is None else [types.TextEdit(make_range(edit.span), edit.text)]


def _complete(
    request: EditorRequest, params: types.CompletionParams
) -> list[types.CompletionItem] | None:
    cursor = request.find_cursor(params.position)
    if cursor is None:
        return None
    support = "text_document.completion.completion_item"
    snippets = get_capability(request.capabilities, f"{support}.snippet_support")
    lazy = get_capability(request.capabilities, f"{support}.resolve_support.properties") or ()
    pages = "documentation" not in lazy
    completion = complete(*cursor, snippets=bool(snippets), pages=pages)
    return make_completions(request.text, completion, request.uri)


class Block(NamedTuple):
    """The resource block under a cursor."""

    folder: Path
    """Of the root module."""
    address: str


class WordPage(NamedTuple):
    """What there is to say about a word without asking a system."""

    text: str
    """Markdown."""
    range: types.Range
    block: Block | None
    """What the word is, if it is a resource of the root module."""


async def _hover(server: EditorServer, params: types.HoverParams) -> types.Hover | None:
    feature = EditorFeature(Lane.NAMES, _explain_word)
    page: WordPage | None = await server.answer(feature, params.text_document.uri, params)
    if page is None:
        return None
    text = page.text
    if server.look is not None and page.block is not None:
        # In a lane of its own: nothing else waits for a system.
        loop = asyncio.get_running_loop()
        lines = await loop.run_in_executor(server.lanes[Lane.LOOK], server.look, *page.block)
        if lines:
            # In a block of code, which no line can end, no name is Markdown.
            code = "\n".join(inline(line).replace("`", "'") for line in lines)
            text = f"{text}\n\n```text\n{code}\n```"
    return types.Hover(make_page(text), page.range)


def _explain_word(request: EditorRequest, params: types.HoverParams) -> WordPage | None:
    cursor = request.find_cursor(params.position)
    explanation = None if cursor is None else explain(*cursor)
    if cursor is None or explanation is None:
        return None
    span, block = request.text.locate_span(explanation.word.start, explanation.word.end), None
    use = find_use(*cursor)
    # Only the root module's addresses are those of the log.
    if use is not None and use.symbol.kind is Kind.RESOURCE and not use.symbol.folder:
        block = Block(cursor.project.folder, use.symbol.name)
    text = "\n\n".join((explanation.page, *_recall_changes(request, block)))
    return WordPage(text, make_range(span), block)


def _recall_changes(request: EditorRequest, block: Block | None) -> Iterator[str]:
    """The last changes of the resource under the cursor, as a list in Markdown."""
    lines = () if block is None else request.recall(*block)
    if lines:
        # As code, in which no name of the outside world is Markdown.
        items = (f"- `{inline(line).replace('`', chr(39))}`" for line in lines)
        yield "\n".join(("Last changes:", "", *items))


def _define(request: EditorRequest, params: types.DefinitionParams) -> list[types.Location] | None:
    cursor = request.find_cursor(params.position)
    if cursor is None:
        return None
    find_uri = request.snapshot.find_uri
    folder = find_module_folder(*cursor)
    if folder is not None:
        start = types.Range(types.Position(0, 0), types.Position(0, 0))
        return [types.Location(find_uri(cursor.project.folder / folder), start)]
    use = find_use(*cursor)
    declarations = () if use is None else find_declarations(cursor.project, use.symbol)
    return [make_location(cursor.project, declaration, find_uri) for declaration in declarations]


def _refer(request: EditorRequest, params: types.ReferenceParams) -> list[types.Location] | None:
    cursor = request.find_cursor(params.position)
    use = None if cursor is None else find_use(*cursor)
    if cursor is None or use is None:
        return None
    uses, declared = find_uses(cursor.project, use.symbol), params.context.include_declaration
    shown_uses = (name_use for name_use in uses if declared or not name_use.declares)
    return [
        make_location(cursor.project, name_use, request.snapshot.find_uri)
        for name_use in shown_uses
    ]


def _refuse(fault: CannotRename) -> JsonRpcException:
    return JsonRpcException(str(fault), types.LSPErrorCodes.RequestFailed)


def _prepare_rename(
    request: EditorRequest, params: types.PrepareRenameParams
) -> types.PrepareRenamePlaceholder | None:
    cursor = request.find_cursor(params.position)
    if cursor is None:
        return None
    try:
        use = find_renamed(*cursor)
    except CannotRename as fault:
        raise _refuse(fault) from None
    span = request.text.locate_span(use.word.start, use.word.end)
    return types.PrepareRenamePlaceholder(make_range(span), use.symbol.last)


def _rename(request: EditorRequest, params: types.RenameParams) -> types.WorkspaceEdit | None:
    cursor = request.find_cursor(params.position)
    if cursor is None:
        return None
    parsed = request.reader.find_parsed(cursor.project.folder)
    try:
        changes = rename(*cursor, params.new_name, request.snapshot.files.buffers, parsed)
    except CannotRename as fault:
        raise _refuse(fault) from None
    support = "workspace.workspace_edit.change_annotation_support"
    annotated = get_capability(request.capabilities, support) is not None
    find_uri = request.snapshot.find_uri
    return make_workspace_edit(cursor.project, changes, find_uri, annotated=annotated)


def _list_symbols(
    request: EditorRequest, params: types.DocumentSymbolParams
) -> list[types.DocumentSymbol]:
    outline = request.reader.outlines.find(request.path, request.text.text)
    return [make_symbol(request.text, heading) for heading in list_headings(outline)]


FEATURES: Mapping[str, EditorFeature] = {
    types.TEXT_DOCUMENT_FORMATTING: EditorFeature(Lane.TEXT, _format),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: EditorFeature(Lane.TEXT, _list_symbols),
    types.TEXT_DOCUMENT_COMPLETION: EditorFeature(
        Lane.NAMES,
        _complete,
        types.CompletionOptions(trigger_characters=[".", '"'], resolve_provider=True),
    ),
    types.TEXT_DOCUMENT_DEFINITION: EditorFeature(Lane.NAMES, _define),
    types.TEXT_DOCUMENT_REFERENCES: EditorFeature(Lane.NAMES, _refer),
    types.TEXT_DOCUMENT_PREPARE_RENAME: EditorFeature(Lane.NAMES, _prepare_rename),
    types.TEXT_DOCUMENT_RENAME: EditorFeature(
        Lane.RENAME, _rename, types.RenameOptions(prepare_provider=True)
    ),
}
"""Request -> what answers it."""


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


def run_server(
    incoming: BinaryIO,
    outgoing: BinaryIO,
    recall: Recall = recall_nothing,
    look: Look | None = None,
) -> None:
    """Serve one editor until it ends the connection. recall, look: see `make_server`."""
    # The library logs each request that is refused as an exception, with a traceback.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    sys.setswitchinterval(SWITCH)
    server = make_server(recall, look)
    try:
        server.start_io(_Incoming(incoming), outgoing)  # type: ignore[arg-type]
    finally:
        for lane in server.lanes.values():
            lane.shutdown(wait=False, cancel_futures=True)
