"""Read tokens by the tables of the grammar, an LALR(1) parser in two steps.

The tables are data, compiled ahead of time from hcl2's grammar and our corrections to it by
`python -m tests.unit.syntax.compile` (docs/decisions/001). So no command has to build a grammar,
and no command reads a cached one, which an attacker could have replaced.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from .builder import RULES
from .tokens import Token

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
