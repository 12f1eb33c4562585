"""Parse text into nodes, and find as many errors as possible in one pass.

Each top-level item is parsed on its own, so an error in one item hides no error in another.

Tokens are read by the tables of the grammar, an LALR(1) parser in two steps, which builds a node
for each rule. The tables are data, compiled ahead of time from hcl2's grammar and our corrections
to it by `python -m tests.unit.syntax.compile` (docs/decisions/001). So no command has to build a
grammar, and no command reads a cached one, which an attacker could have replaced. `RULES` names the
function that builds the node of each rule; see `terms` for the arguments.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ..core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from . import nodes, templates, terms
from .faults import SyntaxFault, find_hidden, make_fault
from .nodes import (
    DIAGNOSTICS,
    FILE_BYTES,
    NESTING,
    Attribute,
    Block,
    Body,
    Expression,
    File,
    Lit,
    Source,
    Template,
)
from .scan import scan
from .stamps import Stamp, Stencil, StencilShape, stamp_block
from .stamps import make_shape as shape_of
from .templates import Directive, Hole
from .terms import Children, get_span, is_token
from .tokens import TRIVIA, Frame, Scan, Token

# -- structure


def make_body(source: Source, start: int, end: int, items: Iterable[Any]) -> nodes.Body:
    """Make a body of attributes and blocks. Raises SyntaxFault if a name is set twice."""
    attributes: dict[str, nodes.Attribute] = {}
    blocks: list[nodes.Block] = []
    faults: list[Diagnostic] = []
    # Go's parser refuses a second attribute of one name. python-hcl2 takes the last one, so that
    # a line far below could undo a setting without anyone seeing it in a review.
    for item in items:
        if isinstance(item, nodes.Block):
            blocks.append(item)
        elif attributes.setdefault(item.name, item) is item:
            continue
        elif len(faults) < DIAGNOSTICS:
            faults.append(make_redefinition_fault(attributes[item.name], item))
    if faults:
        raise SyntaxFault(*faults)
    return nodes.Body(source, start, end, attributes, tuple(blocks))


def make_redefinition_fault(first: nodes.Attribute, second: nodes.Attribute) -> Diagnostic:
    """The error for an attribute whose name is set twice in one body."""
    return make_fault(
        second.source,
        second.start,
        second.start + len(second.name),
        f'"{second.name}" is set twice',
        f"It was first set at {first.name_range}.",
        "Keep one of the two.",
    )


def _take_items(children: Children) -> tuple[Any, ...]:
    return tuple(children[::2])


def _make_attribute(children: Children) -> nodes.Attribute:
    name, _, value = children
    check_depth(value)
    return nodes.Attribute(name.source, name.start, value.end, name.text, value)


def _make_block(children: Children) -> nodes.Block:
    # Three forms: the items of several lines (a tuple, with a newline before it), one attribute
    # on the line of the block, or nothing between the braces. What stands before the opening
    # brace is the type and the labels.
    inside = children[-2]
    if type(inside) is tuple:
        brace, items = -4, inside
    elif isinstance(inside, nodes.Attribute):
        brace, items = -3, (inside,)
    else:
        brace, items = -2, ()
    source, start, end = get_span(children)
    return nodes.Block(
        source,
        start,
        end,
        children[0].text,
        tuple([_make_label(label) for label in children[1:brace]]),
        make_body(source, children[brace].start, end, items),
    )


def _make_label(child: Token | nodes.Lit | nodes.Template) -> nodes.Label:
    if isinstance(child, nodes.Lit):
        return nodes.Label(child.source, child.start, child.end, str(child.value))
    if isinstance(child, Token):
        return nodes.Label(child.source, child.start, child.end, child.text)
    summary = "A label cannot be a template"
    detail = "Labels are fixed names; they are read before any value is known."
    advice = "To write the characters ${ or %{ themselves, double the first one: $${ or %%{."
    raise SyntaxFault(make_fault(child.source, child.start, child.end, summary, detail, advice))


# -- for


class _Intro(NamedTuple):
    """`for key, value in collection :`."""

    key: str | None
    value: str
    collection: Expression


def _make_for_intro(children: Children) -> _Intro:
    # for NAME , NAME in EXPRESSION : — the names are every second part, from behind `for`.
    names = [name.text for name in children[1:-3:2]]
    return _Intro(names[0] if len(names) == 2 else None, names[-1], children[-2])


def _make_for_tuple(children: Children) -> nodes.ForTuple:
    _, intro, result, *condition, _ = children
    return nodes.ForTuple(
        *get_span(children),
        intro.key,
        intro.value,
        intro.collection,
        result,
        condition[0] if condition else None,
    )


def _make_for_object(children: Children) -> nodes.ForObject:
    _, intro, key, _, value, *options, _ = children
    group = bool(options) and is_token(options[0], "ELLIPSIS")
    condition = options[group] if len(options) > group else None
    return nodes.ForObject(
        *get_span(children), intro.key, intro.value, intro.collection, key, value, condition, group
    )


def _take_for_condition(children: Children) -> Expression:
    return children[1]  # type: ignore[no-any-return]  # parts are untyped


# -- templates


def _make_hole(children: Children) -> Hole:
    inner, trim = _split_strip_markers(children)
    return Hole(children[0].start, children[-1].end, trim, inner[0])


def _make_directive(children: Children) -> Directive:
    (word, *operands), trim = _split_strip_markers(children)
    start, end = children[0].start, children[-1].end
    if not operands:
        return Directive(start, end, trim, word.text)
    names = tuple(operand.text for operand in operands[:-2] if operand.type != "COMMA")
    return Directive(start, end, trim, word.text, operands[-1], names)


def _split_strip_markers(children: Children) -> tuple[Children, tuple[bool, bool]]:
    # Inside the braces, the first and the last part can be a `~`.
    trims_left = is_token(children[1], "STRIP_MARKER")
    trims_right = is_token(children[-2], "STRIP_MARKER")
    return children[1 + trims_left : -1 - trims_right], (trims_left, trims_right)


# -- depth


def _check_expression(children: Children) -> Expression:
    check_depth(children[0])
    return children[0]  # type: ignore[no-any-return]  # parts are untyped


def check_depth(root: Expression) -> None:
    """Raise SyntaxFault if the expression is nested too deeply to be evaluated.

    The left side of a chain of operators counts as one level, however long the chain is.
    """
    # A level takes a character at least, so most expressions need no look.
    if root.end - root.start <= NESTING:
        return
    # With a list instead of recursion, which would fail for exactly the texts that are refused.
    waiting: list[tuple[Expression, int]] = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > NESTING:
            raise terms.make_too_deep_fault(node)
        below: tuple[Expression, ...]
        if isinstance(node, nodes.Binary):
            head, chain = nodes.split_operands(node)
            below = (head, *(link.right for link in chain))
        else:
            below = nodes.list_children(node)
        deeper = depth + 1
        room = NESTING - deeper
        waiting.extend([(child, deeper) for child in below if child.end - child.start > room])


RULES: Mapping[str, Callable[[Children], Any]] = {
    "template": tuple,
    "expression_only": _check_expression,
    "body": _take_items,
    "attribute": _make_attribute,
    "block": _make_block,
    "int_lit": terms.make_number,
    "float_lit": terms.make_number,
    "plain_string": templates.make_plain,
    "quoted_string": terms.make_quoted_string,
    "heredoc_template": terms.make_heredoc,
    "interpolation": _make_hole,
    "template_if_start": _make_directive,
    "template_else": _make_directive,
    "template_endif": _make_directive,
    "template_for_start": _make_directive,
    "template_endfor": _make_directive,
    "conditional": terms.make_conditional,
    "operation": terms.make_operation,
    "unary_op": terms.make_unary,
    "parentheses": terms.make_parentheses,
    "root": terms.make_root,
    "constant": terms.make_constant,
    "tuple": terms.make_tuple,
    "object": terms.make_object,
    "object_elem": terms.make_object_item,
    "flat_object": terms.make_constant_object,
    "function_call": terms.make_call,
    "arguments": terms.make_arguments,
    "index": terms.make_index,
    "legacy_index": terms.make_legacy_index,
    "get_attr": terms.make_attr,
    "attr_splat": terms.make_attr_splat,
    "full_splat": terms.make_full_splat,
    "for_tuple_expr": _make_for_tuple,
    "for_object_expr": _make_for_object,
    "for_intro": _make_for_intro,
    "for_cond": _take_for_condition,
}
"""Name of a rule -> the function that builds its node. The names are those of the corrected
grammar in `tests/unit/syntax/compile.py`."""


END = "$END"
"""The type that stands for the end of the text."""

Make: TypeAlias = Callable[[Sequence[Any]], Any]
"""Builds the node of a rule from its parts."""


_REFUSED = -sys.maxsize
"""The action for a token that cannot follow; less than every rule's ~number."""


class Unexpected(Exception):
    """tokens[index] has a type that cannot follow; an index past the last token stands for the
    end. expected: the types that could follow."""

    def __init__(self, index: int, expected: frozenset[str]) -> None:
        super().__init__()
        self.index = index
        self.expected = expected


ParseStep: TypeAlias = tuple[int, int, Make]
"""One use of a rule: how many tokens have been read by then, how many parts the rule takes, and
what builds its node."""


class _GrammarRule(NamedTuple):
    """A rule of the grammar, as the parser needs it."""

    name: str
    """The symbol that the rule stands for."""
    length: int
    """How many symbols it consists of."""
    make: Make | None
    """None for a rule whose parts become parts of the rule around it."""


class _Tables(NamedTuple):
    """The content of tables.json."""

    states: list[Mapping[str, int]]
    """For each state: symbol -> the next state, or ~i to use rules[i] first."""
    rules: list[_GrammarRule]
    starts: Mapping[str, int]
    """Name of a start symbol -> its first state."""


@cache
def _load_tables() -> _Tables:
    tables = json.loads(Path(__file__).with_name("tables.json").read_bytes())
    rules = [
        _GrammarRule(name, length, make and RULES[make]) for name, length, make in tables["rules"]
    ]
    return _Tables(tables["states"], rules, tables["starts"])


def derive_steps(start: str, types: Sequence[str]) -> Iterator[ParseStep]:
    """The rules that make one `start` of tokens of these types, in the order of their use.

    The texts of the tokens do not matter, so `parse` keeps the steps and uses them again for the
    next item of the same types. Raises Unexpected.
    """
    table, rules, starts = _load_tables()
    # `widths` has an entry for each symbol on the stack of states: how many parts it stands for.
    # A rule without a builder hands all of its parts on.
    states = [starts[start]]
    widths: list[int] = []
    for index, type_ in enumerate((*types, END)):
        while (action := table[states[-1]].get(type_, _REFUSED)) < 0:
            if action == _REFUSED:
                names = table[states[-1]]  # terminals are in capitals, rules are not
                raise Unexpected(index, frozenset(name for name in names if name.isupper()))
            name, length, make = rules[~action]
            if length == 1 and make is None:  # the common step up a chain of rules
                states[-1] = table[states[-2]][name]
                continue
            cut = len(states) - length
            width = sum(widths[cut - 1 :])
            del states[cut:], widths[cut - 1 :]
            states.append(table[states[-1]][name])
            widths.append(width if make is None else 1)
            if make is not None:
                yield index, width, make
        states.append(action)
        widths.append(1)


def build_node(tokens: Sequence[Token], steps: Iterable[ParseStep]) -> Any:
    """Build the node of these tokens. steps: what `derive_steps` made of their types. Raises
    SyntaxFault."""
    stack: list[Any] = []
    position = 0
    for read, width, make in steps:
        if read > position:
            stack += tokens[position:read]
            position = read
        cut = len(stack) - width
        stack[cut:] = (make(stack[cut:]),)
    return stack[0]


_KnownSteps: TypeAlias = dict[tuple[str, ...], list[ParseStep]]
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
        if mistakes >= DIAGNOSTICS:
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
        check_depth(node)
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
    if size > FILE_BYTES:
        summary = "File too large"
        detail = f"It has {size:,} bytes. The limit is {FILE_BYTES:,} bytes."
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
            node = build_node(tokens, derive_steps(start, types))
            known_steps[types] = []
            return node, ()
        if not steps:
            steps.extend(derive_steps(start, types))
        return build_node(tokens, steps), ()
    except Unexpected as error:
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
    room = max(0, DIAGNOSTICS - len(faults))
    faults.extend(make_redefinition_fault(unique[item.name], item) for item in duplicates[:room])
    blocks = tuple(item for item in items if isinstance(item, Block))
    return Body(source, 0, len(source.text), unique, blocks)


def _sort_faults(faults: Sequence[Diagnostic]) -> Diagnostics:
    return tuple(sorted(faults, key=attrgetter("position")))[:DIAGNOSTICS]
