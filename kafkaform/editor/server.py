"""The language server: binds the functions of this package to pygls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from ..core.diagnostics import Severity
from ..core.errors import KafkaformError
from ..version import VERSION
from .faults import Fault, find_faults
from .formatting import format_document
from .library import Library, load_library
from .project import OutlineCache, Project, find_owner, is_known, read_project
from .texts import UTF_16, Position, Span, Text

DELAY = 0.2
"""Seconds without a key press after which open files are checked."""
MAX_BYTES = 2_000_000
"""The open and saved files of a configuration that are read at each request. For a larger one,
requests are answered from what the last check has read."""


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
        self.shown: set[Path] = set()
        """The files whose faults the editor shows."""
        self.projects: dict[Path, Project] = {}
        """Root folder -> what was read last."""
        self.version = 0
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

    def find_owner(self, path: Path, buffers: Mapping[Path, bytes]) -> Path:
        """The root folder of a file, kept until something changes."""
        version, owner = self.owners.get(path, (-1, path.parent))
        if version != self.version:
            owner = find_owner(path, {one.parent for one in buffers}, buffers)
            self.owners[path] = self.version, owner
        return owner

    def open_project(self, path: Path) -> Project | None:
        """The configuration of a file as it is now; None if it cannot be read."""
        buffers = self.list_buffers()
        owner = self.find_owner(path, buffers)
        version, project = self.read.get(owner, (-1, None))
        if project is not None and version == self.version:
            return project
        if project is not None and _measure(project) > MAX_BYTES:
            return project
        if self.library is None:
            self.library = load_library()
        with suppress(KafkaformError, OSError):
            project = read_project(owner, buffers, self.library, self.cache, self.encoding)
            self.read[owner] = self.version, project
            return project
        return None

    # -- faults

    def note_change(self) -> None:
        """Check the open files once nobody has typed for a moment."""
        self.version += 1
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
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self.checker, _check, owners, buffers, self.encoding)
        future.add_done_callback(self._show_faults)

    def _show_faults(self, future: asyncio.Future[Mapping[Path, Sequence[Fault]]]) -> None:
        self.running = False
        found = future.result()
        for path in sorted(self.shown - set(found)):
            self._publish(path, ())
        for path, faults in found.items():
            self._publish(path, faults)
        self.shown = {path for path, faults in found.items() if faults}
        if self.again:
            self.again = False
            self.note_change()

    def _publish(self, path: Path, faults: Iterable[Fault]) -> None:
        uri = uris.from_fs_path(str(path))
        if uri is not None:
            shown = [make_diagnostic(fault) for fault in faults]
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri=uri, diagnostics=shown)
            )


def _check(
    owners: Mapping[Path, Sequence[Path]], buffers: Mapping[Path, bytes], encoding: str
) -> Mapping[Path, Sequence[Fault]]:
    found: dict[Path, Sequence[Fault]] = {}
    for owner, opened in owners.items():
        found |= find_faults(owner, opened, buffers, encoding)
    return found


def _measure(project: Project) -> int:
    return sum(len(text.text) for text in project.texts.values())


# ── words of the protocol ───────────────────────────────────────────────────────────────


def get_path(uri: str) -> Path | None:
    """The path of a file of kafkaform's, without links; None for anything else."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    if path is None or not is_known(Path(path).name):
        return None
    return Path(path).resolve()


def make_uri(path: Path) -> str:
    """The URI of a file."""
    return uris.from_fs_path(str(path)) or path.as_uri()


def make_position(position: Position) -> types.Position:
    return types.Position(position.line, position.character)


def make_range(span: Span) -> types.Range:
    return types.Range(make_position(span.start), make_position(span.end))


def make_diagnostic(fault: Fault) -> types.Diagnostic:
    return types.Diagnostic(
        range=make_range(fault.span),
        message=fault.message,
        severity=_SEVERITIES[fault.severity],
        source="kafkaform",
    )


_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
}


# ── the server ──────────────────────────────────────────────────────────────────────────


def make_server() -> EditorServer:
    """A server with all features, which reads nothing yet."""
    server = EditorServer()
    for feature in (
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.TEXT_DOCUMENT_DID_CLOSE,
        types.TEXT_DOCUMENT_DID_SAVE,
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
    ):
        server.feature(feature)(_note_change)
    server.feature(types.TEXT_DOCUMENT_FORMATTING)(_format)
    return server


def _note_change(server: EditorServer, _: Any) -> None:
    server.note_change()


def _format(
    server: EditorServer, params: types.DocumentFormattingParams
) -> list[types.TextEdit] | None:
    path = get_path(params.text_document.uri)
    if path is None:
        return None
    text = Text(
        server.workspace.get_text_document(params.text_document.uri).source, server.encoding
    )
    edit = format_document(path.name, text)
    return None if edit is None else [types.TextEdit(make_range(edit.span), edit.text)]


def run_server(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Serve one editor until it ends the connection."""
    make_server().start_io(incoming, outgoing)
