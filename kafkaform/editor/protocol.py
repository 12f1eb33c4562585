"""The answers of this package in the words of the Language Server Protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris

from ..core.diagnostics import Severity
from .completion import Candidate, Completion
from .faults import FileFault
from .outline import BlockOutline
from .project import Project, Span, Text, TextPosition, is_known
from .symbols import LABEL, Heading, Kind, NameUse, Symbol, TextChange

MOVED = "moved"
"""The id of the annotation of a `moved` block."""


FindUri = Callable[[Path], str]
"""The URI of a file, as the editor spells it if the file is open."""


def get_path(uri: str) -> Path | None:
    """The path of a file of kafkaform's, without links; None for anything else."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    if path is None or not is_known(Path(path).name):
        return None
    return Path(path).resolve()


def make_uri(path: Path) -> str:
    """The URI of a file."""
    return uris.from_fs_path(str(path)) or path.as_uri()


def make_position(position: TextPosition) -> types.Position:
    return types.Position(position.line, position.character)


def make_range(span: Span) -> types.Range:
    return types.Range(make_position(span.start), make_position(span.end))


def make_diagnostic(fault: FileFault) -> types.Diagnostic:
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


def make_completions(text: Text, completion: Completion, uri: str) -> list[types.CompletionItem]:
    """All offers, required arguments first. uri: the file that they are for."""
    span = make_range(text.locate_span(completion.start, completion.end))
    return [_make_completion(offer, span, uri) for offer in completion.offers]


def make_page(text: str) -> types.MarkupContent:
    return types.MarkupContent(types.MarkupKind.Markdown, text)


def _make_completion(offer: Candidate, span: types.Range, uri: str) -> types.CompletionItem:
    symbol = offer.symbol
    form = types.InsertTextFormat.Snippet if offer.snippet else types.InsertTextFormat.PlainText
    return types.CompletionItem(
        label=offer.name,
        kind=_KINDS[offer.kind],
        detail="required" if offer.required else None,
        documentation=make_page(offer.doc) if offer.doc else None,
        text_edit=types.TextEdit(span, offer.text or offer.name),
        insert_text_format=form,
        filter_text=offer.name.strip('"'),
        sort_text=f"{0 if offer.required else 1}{_ORDER[offer.kind]}{offer.name}",
        data=None if symbol is None else [uri, symbol.folder, symbol.kind, symbol.name],
    )


def read_symbol(item: types.CompletionItem) -> tuple[str, Symbol] | None:
    """The file that an offer was made for, and the name that it stands for; None for an offer that
    has all of its documentation."""
    data = item.data
    if not isinstance(data, Sequence) or len(data) != 4:
        return None
    uri, folder, kind, name = map(str, data)
    kinds = {str(symbol_kind): symbol_kind for symbol_kind in Kind}
    return (uri, Symbol(folder, kinds[kind], name)) if kind in kinds else None


_KINDS = {
    "block": types.CompletionItemKind.Class,
    "argument": types.CompletionItemKind.Property,
    "key": types.CompletionItemKind.Property,
    "type": types.CompletionItemKind.Struct,
    "value": types.CompletionItemKind.EnumMember,
    "function": types.CompletionItemKind.Function,
    "keyword": types.CompletionItemKind.Keyword,
    "name": types.CompletionItemKind.Variable,
}
_ORDER: Mapping[str, int] = {
    name: n
    for n, name in enumerate(
        ("value", "argument", "key", "name", "block", "keyword", "type", "function")
    )
}


def make_location(project: Project, use: NameUse, find_uri: FindUri) -> types.Location:
    text = project.texts[use.file]
    span = text.locate_span(use.word.start, use.word.end)
    return types.Location(find_uri(project.folder / use.file), make_range(span))


def make_symbol(text: Text, heading: Heading) -> types.DocumentSymbol:
    """A block in the outline of a file."""
    section = heading.section
    start = section.start if isinstance(section, BlockOutline) else section.name.start
    end = min(section.end, len(text.text))
    end = max(end, heading.word.end)
    return types.DocumentSymbol(
        name=heading.name,
        detail=heading.detail or None,
        kind=_SYMBOLS.get(heading.detail, types.SymbolKind.Field),
        range=make_range(text.locate_span(start, end)),
        selection_range=make_range(text.locate_span(heading.word.start, heading.word.end)),
        children=[make_symbol(text, inner) for inner in heading.inner],
    )


_SYMBOLS = {
    "resource": types.SymbolKind.Object,
    "data": types.SymbolKind.Struct,
    "module": types.SymbolKind.Module,
    "provider": types.SymbolKind.Interface,
    "variable": types.SymbolKind.Variable,
    "output": types.SymbolKind.Property,
    "run": types.SymbolKind.Method,
    "locals": types.SymbolKind.Namespace,
    "": types.SymbolKind.Variable,
}


def make_workspace_edit(
    project: Project, changes: Iterable[TextChange], find_uri: FindUri, *, annotated: bool
) -> types.WorkspaceEdit:
    """The edits of several files. annotated: whether the editor can ask about single ones."""
    edits: dict[str, list[Any]] = {}
    for change in changes:
        text = project.texts[change.file]
        span = make_range(text.locate_span(change.start, change.end))
        uri = find_uri(project.folder / change.file)
        if change.moved and annotated:
            edits.setdefault(uri, []).append(types.AnnotatedTextEdit(MOVED, span, change.text))
            continue
        edits.setdefault(uri, []).append(types.TextEdit(span, change.text))
    if not annotated:
        return types.WorkspaceEdit(changes=edits)
    documents = [
        types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri), list(file_edits))
        for uri, file_edits in edits.items()
    ]
    annotation = types.ChangeAnnotation(LABEL, needs_confirmation=False)
    return types.WorkspaceEdit(
        document_changes=list(documents), change_annotations={MOVED: annotation}
    )
