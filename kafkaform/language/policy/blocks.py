"""Read `policy` and `policy_set` blocks: their shapes, their waivers, and the faults of both.

policy "no_data_loss" {
  severity  = "error"
  when      = change.type == "kafka_topic"
  condition = !contains(change.harms, "data-loss")
  message   = "${change.key} would lose data."

  waiver {
    addresses = ["kafka_topic.scratch*"]
    reason    = "scratch data, agreed with the team"
    until     = "2027-01-31"
  }
}

The words that policies compare findings with are checked by the text alone, because a misspelt
rule would never be found: constants that `contains` looks for in a list of `change`, and constants
that a member of one of `change.findings` is compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date

from msgspec import Struct

from ...core.address import matches
from ...core.diagnostics import Diagnostic, Diagnostics, Severity, suggest
from ...core.finding import Breadth, Harm, Level
from ...syntax.nodes import (
    Attr,
    AttrSplat,
    Binary,
    Block,
    Expression,
    File,
    ForObject,
    ForTuple,
    FullSplat,
    FunctionCall,
    Lit,
    Paren,
    Root,
    Tuple,
    list_children,
    walk,
)
from ..declare.blocks import SHAPES, WAIVER, Header, find_shape_faults
from ..values.faults import make_error, suggest_near

KINDS = ("policy", "policy_set")
"""Types of the blocks that declare policies."""
_SEVERITIES = tuple(severity.value for severity in Severity)


class WaiverBlock(Struct, frozen=True):
    """Lets some objects break a policy until a date."""

    addresses: tuple[str, ...]
    """Globs of addresses."""
    reason: str
    until: date
    """The last day on which it counts, in UTC."""
    rule: str = ""
    """The only rule that it is about; empty for the policies of its block."""

    def covers(self, address: str) -> bool:
        """Whether it is about this object, whatever the day."""
        return any(matches(glob, address) for glob in self.addresses)


def select_policy_blocks(files: Iterable[File]) -> tuple[tuple[Block, ...], Diagnostics]:
    """The sound blocks of files that contain only policies, and the faults of everything else."""
    sound: list[Block] = []
    faults: list[Diagnostic] = []
    for file in files:
        for item in file.body.attributes.values():
            faults.append(make_error(item, f'"{item.name}" is outside of any block'))
        for block in file.body.blocks:
            problems = [
                make_error(
                    Header(block),
                    f'A file of policies has no "{block.type}" blocks',
                    f"The blocks are {' and '.join(KINDS)}.",
                    suggest_near(block.type, KINDS) or "Move it into the configuration.",
                )
            ]
            if block.type in KINDS:
                problems = [*find_shape_faults(block, SHAPES[block.type])]
            faults += problems
            sound += [] if problems else [block]
    return tuple(sound), tuple(faults)


def read_severity(block: Block) -> Severity | None:
    """The severity that a block chooses, None if it chooses none."""
    text = _read_text(block.get_argument("severity"))
    return None if text is None else Severity(text)


def read_waivers(block: Block) -> tuple[WaiverBlock, ...]:
    """The waivers of a block without faults."""
    return tuple(map(_read_waiver, block.list_blocks("waiver")))


def _read_waiver(block: Block) -> WaiverBlock:
    until = _read_date(block.get_argument("until"))
    assert until is not None  # it was checked
    return WaiverBlock(
        read_texts(block.get_argument("addresses")) or (),
        _read_text(block.get_argument("reason")) or "",
        until,
        _read_text(block.get_argument("rule")) or "",
    )


def find_value_faults(block: Block) -> Iterator[Diagnostic]:
    """The faults of the severity and the waivers of a block, whose shape is sound."""
    severity = block.get_argument("severity")
    text = _read_text(severity)
    if severity is not None and text not in _SEVERITIES:
        yield make_error(
            severity,
            f'A severity is "{Severity.ERROR}" or "{Severity.WARNING}", written as a plain string',
            "An error blocks the change, a warning is only shown.",
            suggest_near(text or "", _SEVERITIES),
        )
    for inner in block.list_blocks("waiver"):
        faults = [*find_shape_faults(inner, WAIVER)]
        yield from faults or _find_waiver_faults(inner)


def _find_waiver_faults(block: Block) -> Iterator[Diagnostic]:
    arguments = block.body.attributes
    addresses, reason = arguments["addresses"].value, arguments["reason"].value
    if not read_texts(addresses):
        yield make_error(
            addresses,
            "A waiver lists the addresses that it covers, as plain strings",
            advice='Write addresses = ["kafka_topic.scratch*"].',
        )
    if not (_read_text(reason) or "").strip():
        yield make_error(
            reason, "A waiver gives its reason as a plain string", advice="Write one sentence."
        )
    rule = block.get_argument("rule")
    if rule is not None and not (_read_text(rule) or "").strip():
        yield make_error(
            rule,
            "A waiver names its rule as a plain string",
            advice="`kafkaform explain rule` lists the rules.",
        )
    if _read_date(arguments["until"].value) is None:
        yield make_error(
            arguments["until"].value,
            "A waiver ends on a date",
            "It counts up to the end of that day, in UTC.",
            'Write until = "2027-01-31".',
        )


def _read_text(node: Expression | None) -> str | None:
    return node.value if isinstance(node, Lit) and isinstance(node.value, str) else None


def read_texts(node: Expression | None) -> tuple[str, ...] | None:
    """A list of plain strings; None for anything else."""
    if not isinstance(node, Tuple):
        return None
    texts = [text for text in map(_read_text, node.items) if text is not None]
    return tuple(texts) if len(texts) == len(node.items) else None


def _read_date(node: Expression | None) -> date | None:
    text = _read_text(node) or ""
    try:
        # `fromisoformat` also takes 20270131 and 2027-W04-7, which few people can read.
        return date.fromisoformat(text) if len(text) == 10 and text[4] == text[7] == "-" else None
    except ValueError:
        return None


_LISTS = {"rules": "rule", "harms": "harm"}
"""List of `change` -> the member of a finding whose words it has."""
_ROWS = {
    "findings": ("rule", "harm", "level"),
    "gains": ("breadth",),
    "losses": ("breadth",),
}
"""Rows of `change` -> their members with a fixed set of words."""
_NOUNS = {"rule": "rule", "harm": "kind of harm", "level": "level", "breadth": "breadth"}

Names = Mapping[str, Collection[str]]
"""Variable of a `for` -> the members with a fixed set of words that its values have."""


def find_unknown_words(node: Expression, rules: Collection[str]) -> Iterator[Diagnostic]:
    """A fault for each constant that is compared with findings and that none can have.

    rules: the ids of all rules.
    """
    words: Mapping[str, Collection[str]] = {
        "rule": rules,
        "harm": [harm.value for harm in Harm],
        "level": [level.value for level in Level],
        "breadth": [breadth.value for breadth in Breadth],
    }
    pending: list[tuple[Expression, Names]] = [(node, {})]
    while pending:
        current, names = pending.pop()
        for member, constant in _list_comparisons(current, names):
            if constant.value not in words[member]:
                yield _make_fault(member, constant, words[member])
        inner = names
        if isinstance(current, ForTuple | ForObject):
            inner = {**names, current.value: _ROWS.get(_find_list(current.collection), ())}
        pending.extend((child, inner) for child in reversed(list_children(current)))


def _make_fault(member: str, constant: Lit, words: Collection[str]) -> Diagnostic:
    advice = suggest(str(constant.value), words)
    if member == "rule":
        advice = advice or "`kafkaform explain rule` lists the rules."
        return make_error(constant, f'There is no rule "{constant.value}"', advice=advice)
    detail = f"It is one of {', '.join(words)}."
    return make_error(constant, f'"{constant.value}" is no {_NOUNS[member]}', detail, advice)


def _list_comparisons(node: Expression, names: Names) -> Iterator[tuple[str, Lit]]:
    """The constants that a node itself compares, each with the member that it is compared with."""
    if isinstance(node, Binary) and node.operator in ("==", "!="):
        for side, operand in ((node.left, node.right), (node.right, node.left)):
            member = _find_member(side, names)
            if member and (constant := _read_constant(operand)) is not None:
                yield member, constant
    if not isinstance(node, FunctionCall) or node.name != "contains" or len(node.args) != 2:
        return
    collection, word = node.args
    member = _find_words(collection)
    if member and (constant := _read_constant(word)) is not None:
        yield member, constant
    member = _find_member(word, names)
    for item in collection.items if member and isinstance(collection, Tuple) else ():
        if (constant := _read_constant(item)) is not None:
            yield member, constant


def _read_constant(node: Expression) -> Lit | None:
    while isinstance(node, Paren):
        node = node.inner
    return node if isinstance(node, Lit) and isinstance(node.value, str) else None


def _find_member(node: Expression, names: Names) -> str:
    """The member of a row that `NAME.member` reads; empty for anything else."""
    if not isinstance(node, Attr) or not isinstance(node.target, Root):
        return ""
    return node.name if node.name in names.get(node.target.name, ()) else ""


def _find_list(node: Expression) -> str:
    """`x` for `change.x`; empty for anything else."""
    while isinstance(node, Paren):
        node = node.inner
    if not isinstance(node, Attr) or not isinstance(node.target, Root):
        return ""
    return node.name if node.target.name == "change" else ""


def _find_words(node: Expression) -> str:
    """The member whose words a list has: of `change.rules`, or `change.findings[*].rule`."""
    if isinstance(node, FullSplat | AttrSplat):
        members = [item.name for item in walk(node.each) if isinstance(item, Attr)]
        rows = _ROWS.get(_find_list(node.target), ())
        return members[0] if len(members) == 1 and members[0] in rows else ""
    return _LISTS.get(_find_list(node), "")
