"""Parse text into nodes, and find as many errors as possible in one pass.

Each top-level item is parsed on its own, so an error in one item hides no error in another.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, TypeAlias

from ..core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from . import grammar, limits, templates
from .faults import SyntaxFault, find_hidden
from .nodes import Attribute, Block, Body, Expression, File, Lit, Template
from .scan import scan
from .source import Source
from .stamps import Stamp, Stencil, StencilShape, stamp_block
from .stamps import make_shape as shape_of
from .tokens import TRIVIA, Frame, Scan, Token

_KnownSteps: TypeAlias = dict[tuple[str, ...], list[grammar.ParseStep]]
"""Types of the tokens of an item -> how the grammar reads them. Generated files repeat few shapes.
The steps are kept when the same types come a second time, because most items come only once."""


def parse(text: str | bytes, file: str) -> tuple[File, Diagnostics]:
    """Parse a configuration file; after errors the body contains the items that could be parsed.

    text: bytes must be UTF-8; a byte order mark is skipped. file: the name in diagnostics.
    """
    source, refused = make_source(text, file)
    if refused:
        return File(source, 0, 0, Body(source, 0, 0, {}, ())), refused
    with pause_collector():
        scanned = scan(source)
        items, faults = _parse_items(source, scanned)
        if scanned.stamps and not faults:
            items.extend(_expand_stamps(source, items, scanned.stamps, faults))
            items.sort(key=attrgetter("start"))
        # A file with faults is parsed again without the short cuts, so that its messages and their
        # order do not depend on which blocks were skipped and which tokens are hidden.
        if (scanned.stamps or scanned.flat) and faults:
            items, faults = _parse_items(source, scan(source, end=len(source.text)))
        read = File(source, 0, len(source.text), _make_unique_body(source, items, faults))
    return read, _sort_faults(faults) if faults else find_hidden(source)


def _parse_items(source: Source, scanned: Scan) -> tuple[list[Attribute | Block], list[Diagnostic]]:
    faults = list(scanned.faults)
    items: list[Attribute | Block] = []
    known_steps: _KnownSteps = {}
    failed, mistakes, start = False, len(faults), 0
    for index, end in enumerate(scanned.item_ends):
        tokens, start = _drop_trivia(scanned.tokens[start:end]), end
        if not tokens or index in scanned.broken:
            continue
        children, problems = _reduce_tokens("body", source, tokens, known_steps)
        items.extend(children or ())
        # After an item that failed, one that fails at once is most likely the rest of it.
        if not (failed and _is_at(problems, tokens[0])):
            faults.extend(problems)
        failed = bool(problems)
        mistakes += len(problems)
        if mistakes >= limits.DIAGNOSTICS:
            break
    return items, faults


def _expand_stamps(
    source: Source,
    items: Sequence[Attribute | Block],
    stamps: Sequence[Stamp],
    faults: list[Diagnostic],
) -> Iterator[Block]:
    """The blocks that were skipped. They are parsed after all if their shape turns out to
    differ in more than constants."""
    blocks = {item.start: item for item in items if isinstance(item, Block)}
    shapes: dict[Stencil, StencilShape | None] = {}
    for stamp in stamps:
        stencil, start, end, _ = stamp
        if stencil not in shapes:
            shapes[stencil] = shape_of(stencil, blocks[stencil.first], _parse_part)
        stamped = shapes[stencil]
        if stamped is not None:
            yield stamp_block(source, stamp, stamped)
            continue
        nodes, problems = _parse_part_with_faults(source, start, end)
        yield from nodes
        faults.extend(problems)


def _parse_part(source: Source, start: int, end: int) -> Block:
    return _parse_part_with_faults(source, start, end)[0][0]


def _parse_part_with_faults(
    source: Source, start: int, end: int
) -> tuple[list[Block], Diagnostics]:
    tokens = _drop_trivia(scan(source, Frame.BODY, start, end).tokens)
    children, problems = _reduce_tokens("body", source, tokens, {})
    return list(children or ()), problems


def parse_expression(text: str, file: str, line: int = 1) -> tuple[Expression | None, Diagnostics]:
    """Parse one expression, in which newlines can stand anywhere; None after errors.

    line: the number of its first line, for diagnostics.
    """
    source, refused = make_source(text, file, line)
    return (None, refused) if refused else parse_expression_source(source)


def parse_expression_source(source: Source) -> tuple[Expression | None, Diagnostics]:
    """Parse the expression that is the whole text of a source; None after errors."""
    scanned = scan(source, Frame.EXPRESSION)
    if scanned.faults:
        return None, _sort_faults(scanned.faults)
    node, faults = _reduce_tokens("expression_only", source, _drop_trivia(scanned.tokens), {})
    return (None if faults else node), faults


def parse_template(
    text: str, file: str, line: int = 1
) -> tuple[Lit | Template | None, Diagnostics]:
    """A text with `${}` and `%{}` but without quotes; None after errors."""
    source, refused = make_source(text, file, line)
    return (None, refused) if refused else parse_template_source(source)


def parse_template_source(source: Source) -> tuple[Lit | Template | None, Diagnostics]:
    """Parse the template that is the whole text of a source; None after errors."""
    scanned = scan(source, Frame.BARE)
    if scanned.faults:
        return None, _sort_faults(scanned.faults)
    children, faults = _reduce_tokens("template", source, _drop_trivia(scanned.tokens), {})
    if faults:
        return None, faults
    try:
        node = templates.make_bare(templates.TemplateSpan(source, 0, len(source.text)), children)
        grammar.check_depth(node)
    except SyntaxFault as error:
        return None, error.diagnostics
    return node, ()


def make_source(
    text: str | bytes, file: str, line: int = 1, kind: type[Source] = Source
) -> tuple[Source, Diagnostics]:
    """The text as a Source, and an error if it is too large or not UTF-8.

    kind: the class of the source. The refused text is not in it.
    """
    size = len(text) if isinstance(text, bytes) or text.isascii() else len(_encode_text(text))
    if size > limits.FILE_BYTES:
        summary = "File too large"
        detail = f"It has {size:,} bytes. The limit is {limits.FILE_BYTES:,} bytes."
        return kind(file, ""), _make_refusal(file, 1, summary, detail, "Split the file.")
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            bad_line = error.object.count(b"\n", 0, error.start) + 1
            detail = f"The bytes from offset {error.start} on are not a character of UTF-8."
            advice = "Save the file in UTF-8."
            return kind(file, ""), _make_refusal(file, bad_line, "Not UTF-8", detail, advice)
    # Python decodes bytes of the command line and the environment that are not UTF-8 to halves of
    # surrogate pairs (PEP 383). No file could contain them.
    elif not text.isascii() and (half := _HALVES.search(text)):
        bad_line = text.count("\n", 0, half.start()) + line
        detail = "It contains a byte, or half of a surrogate pair, that is not a character."
        return kind(file, ""), _make_refusal(file, bad_line, "Not UTF-8", detail, "")
    if text.startswith(_MARK):
        return kind(file, text[1:], len(_encode_text(_MARK)), line), ()
    return kind(file, text, 0, line), ()


_MARK = "\ufeff"
_HALVES = re.compile("[\ud800-\udfff]")


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _make_refusal(file: str, line: int, summary: str, detail: str, advice: str) -> Diagnostics:
    location = Range(file, line, 1, line, 1)
    return (Diagnostic(Severity.ERROR, summary, detail, location, advice=advice),)


@contextmanager
def pause_collector() -> Iterator[None]:
    """Turn the garbage collector off for a while."""
    # Nodes form no cycles, so there is nothing to collect. Passes over the growing heap make
    # parsing of large files three times slower.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _drop_trivia(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.type not in TRIVIA]


def _reduce_tokens(
    start: str, source: Source, tokens: Sequence[Token], known_steps: _KnownSteps
) -> tuple[Any, Diagnostics]:
    """The node that the grammar makes of the tokens, or None and the errors."""
    types = tuple([token.type for token in tokens])
    steps = known_steps.get(types)
    try:
        if steps is None:
            node = grammar.build_node(tokens, grammar.derive_steps(start, types))
            known_steps[types] = []
            return node, ()
        if not steps:
            steps.extend(grammar.derive_steps(start, types))
        return grammar.build_node(tokens, steps), ()
    except grammar.Unexpected as error:
        from .faults import explain_error  # noqa: PLC0415  # only a fault needs it

        return None, (explain_error(source, tokens, error.index, error.expected),)
    except SyntaxFault as error:
        return None, error.diagnostics


def _is_at(problems: Diagnostics, token: Token) -> bool:
    """Whether an item failed at its first token."""
    ranges = [item.range for item in problems]
    return ranges == [token.source.range(token.start, token.end)]


def _make_unique_body(
    source: Source, items: Sequence[Attribute | Block], faults: list[Diagnostic]
) -> Body:
    """The body of the file. If a name is set twice, the first one is kept and the others are
    faults."""
    unique: dict[str, Attribute] = {}
    attributes = (item for item in items if isinstance(item, Attribute))
    duplicates = [item for item in attributes if unique.setdefault(item.name, item) is not item]
    room = max(0, limits.DIAGNOSTICS - len(faults))
    faults.extend(
        grammar.make_redefinition_fault(unique[item.name], item) for item in duplicates[:room]
    )
    blocks = tuple(item for item in items if isinstance(item, Block))
    return Body(source, 0, len(source.text), unique, blocks)


def _sort_faults(faults: Sequence[Diagnostic]) -> Diagnostics:
    def place(item: Diagnostic) -> tuple[int, int]:
        return (item.range.line, item.range.column) if item.range else (0, 0)

    return tuple(sorted(faults, key=place))[: limits.DIAGNOSTICS]
