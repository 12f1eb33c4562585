"""The grammar as tables, and the loop that reads tokens by them.

The tables are data, made once from hcl2's rules and our corrections to them by `python -m
tests.unit.syntax.compile`: no grammar is built when a command starts, and no cache of one is read
that somebody else could have replaced.
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
"""The type of what follows the last token."""

Make: TypeAlias = Callable[[Sequence[Any]], Any]
"""A rule's parts to what they mean."""


_REFUSED = -sys.maxsize


class Unexpected(Exception):
    """tokens[index] (past the last one: the end) is none of the types that could follow."""

    def __init__(self, index: int, expected: frozenset[str]) -> None:
        super().__init__()
        self.index = index
        self.expected = expected


ParseStep: TypeAlias = tuple[int, int, Make]
"""One use of a rule: how many tokens are read by then, how many parts it takes, what it does."""


class _GrammarRule(NamedTuple):
    """name: what a rule makes of `length` symbols; make: None leaves the parts as they are."""

    name: str
    length: int
    make: Make | None


class _Tables(NamedTuple):
    """states: by symbol what follows it there: the next state, or ~i to use rules[i] first."""

    states: list[Mapping[str, int]]
    rules: list[_GrammarRule]
    starts: Mapping[str, int]


@cache
def _load_tables() -> _Tables:
    found = json.loads(Path(__file__).with_name("tables.json").read_bytes())
    rules = [
        _GrammarRule(name, length, make and RULES[make]) for name, length, make in found["rules"]
    ]
    return _Tables(found["states"], rules, found["starts"])


def derive_steps(start: str, types: Sequence[str]) -> Iterator[ParseStep]:
    """The uses of rules that make one `start` of tokens of these types, whatever their texts.

    Raises Unexpected.
    """
    table, rules, starts = _load_tables()
    states = [starts[start]]
    widths: list[int] = []
    for index, type_ in enumerate((*types, END)):
        while (action := table[states[-1]].get(type_, _REFUSED)) < 0:
            if action == _REFUSED:
                names = table[states[-1]]
                raise Unexpected(index, frozenset(name for name in names if name.isupper()))
            name, length, make = rules[~action]
            if length == 1 and make is None:
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
    """What the builder makes of tokens whose types were derived. Raises SyntaxFault."""
    parts: list[Any] = []
    done = 0
    for read, width, make in steps:
        if read > done:
            parts += tokens[done:read]
            done = read
        cut = len(parts) - width
        parts[cut:] = (make(parts[cut:]),)
    return parts[0]
