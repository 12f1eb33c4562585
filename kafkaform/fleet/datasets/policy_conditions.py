"""Parse the condition of a policy rule: a small part of SQL, never passed to Spark as text.

So no condition can reach files, Java classes or other tables, and none can fail at run time: text
becomes a number (38 digits, 6 of them decimals) where it meets one, and what cannot be computed is
NULL, which is no finding. A quote inside a text is doubled; a backslash is an ordinary character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NoReturn

from msgspec import Struct

from ...core.diagnostics import suggest

MOST_CHARACTERS, MOST_DEPTH, MOST_DIGITS = 4_000, 40, 30
COLUMNS = ("kind", "key", "owner", "cluster", "env", "region")
"""Columns that a condition can name."""
ATTRS = "attrs"
"""The map of an object's attributes."""
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_SAME = {"!=": "<>", "==": "="}
"""Other spellings of operators."""
_LITERALS, _CASTING = ("true", "false", "null"), ("cast", "try_cast")
_WORDS = frozenset(
    ("and", "or", "not", "is", "in", "between", "like", "rlike", "as", *_LITERALS, *_CASTING)
)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><=>|<>|!=|<=|>=|==|[=<>+\-*/%(),\[\]])|(?P<end>$))",
    # Java's `\d` and `\w` are ASCII as well; a name in other letters can be no column.
    re.ASCII,
)
_OTHERWISE = re.compile(
    r"\\[0NU]|\{(?!\d+(,\d*)?\})|\[[^\]]*(\[|&&|--|\|\||~~)|\(\?(P|\(|#|[a-zA-Z]*[aL])"
)
"""Parts of patterns that Python accepts and Java does not, or reads differently."""


class TermKind(StrEnum):
    """The type of a term. NULL fits everywhere."""

    NUMBER = "a number"
    TEXT = "text"
    BOOL = "true or false"
    MAP = "the map attrs"
    NULL = "null"


class Term(Struct, frozen=True):
    """A node of the tree."""

    op: str
    """The operation, or what kind of leaf it is."""
    kind: TermKind
    args: tuple[Term, ...] = ()
    value: Any = None
    """Of a literal, a column or an attribute."""
    depth: int = 1
    """Of the tree below it. Spark's planner is recursive, so a deep tree overflows its stack."""


class ConditionFunction(Struct, frozen=True):
    """A function that conditions can call."""

    gives: TermKind
    """The type of the result."""
    takes: tuple[TermKind, ...]
    """The types of the arguments."""
    more: bool = False
    """The last argument may be repeated."""


FUNCTIONS: Mapping[str, ConditionFunction] = {
    "abs": ConditionFunction(TermKind.NUMBER, (TermKind.NUMBER,)),
    "coalesce": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,), more=True),
    "concat": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,), more=True),
    "contains": ConditionFunction(TermKind.BOOL, (TermKind.TEXT, TermKind.TEXT)),
    "endswith": ConditionFunction(TermKind.BOOL, (TermKind.TEXT, TermKind.TEXT)),
    "length": ConditionFunction(TermKind.NUMBER, (TermKind.TEXT,)),
    "lower": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,)),
    "map_contains_key": ConditionFunction(TermKind.BOOL, (TermKind.MAP, TermKind.TEXT)),
    "replace": ConditionFunction(TermKind.TEXT, (TermKind.TEXT, TermKind.TEXT, TermKind.TEXT)),
    "size": ConditionFunction(TermKind.NUMBER, (TermKind.MAP,)),
    "startswith": ConditionFunction(TermKind.BOOL, (TermKind.TEXT, TermKind.TEXT)),
    "trim": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,)),
    "upper": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,)),
}
"""Name -> function."""
CASTS: Mapping[str, TermKind] = {
    "bigint": TermKind.NUMBER,
    "boolean": TermKind.BOOL,
    "decimal": TermKind.NUMBER,
    "double": TermKind.NUMBER,
    "int": TermKind.NUMBER,
    "string": TermKind.TEXT,
}
"""Type of SQL that CAST can name -> the type of its result."""


class ConditionFault(ValueError):
    """A condition cannot be parsed.

    message: what is wrong, and at which character (from 1); advice: may be empty.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class _Token(Struct, frozen=True):
    """One token of a condition."""

    kind: str
    """number, text, name, word, sign or end."""
    text: str
    at: int
    """Its first character, counted from 1."""


def parse_condition(condition: str) -> Term:
    """Parse a condition. Raises ConditionFault."""
    if len(condition) > MOST_CHARACTERS:
        raise ConditionFault(f"the condition has more than {MOST_CHARACTERS} characters")
    parser = _ConditionParser(list(_split_tokens(condition)))
    term = parser.parse_or()
    if parser.token.kind != "end":
        parser.fail(f"expected AND, OR or the end, not {parser.token.text},")
    return parser.as_kind(term, TermKind.BOOL)


def find_pattern_fault(pattern: str) -> str:
    """Return what is wrong with a regular expression that Python and Java must read alike, or
    ''."""
    odd = _OTHERWISE.search(re.sub(r"\\[^0NU]", "", pattern))
    if odd:
        return f"has {odd[0]}, which Java reads differently,"
    try:
        re.compile(pattern)
    except re.error as error:
        return f"cannot be read ({error})"
    return ""


def _split_tokens(condition: str) -> Iterator[_Token]:
    at = 0
    while True:
        match = _TOKEN.match(condition, at)
        if match is None:
            remainder = condition[at:].lstrip()
            at = len(condition) - len(remainder) + 1
            fault = (
                "the quote is not closed" if remainder[0] == "'" else f"unexpected {remainder[0]}"
            )
            raise ConditionFault(f"{fault} at character {at}")
        kind = match.lastgroup or ""
        text, start = match[kind], match.start(kind) + 1
        if kind == "name" and text.lower() in _WORDS:
            kind, text = "word", text.lower()
        yield _Token(kind, text, start)
        if kind == "end":
            return
        at = match.end()


class _ConditionParser:
    """A recursive-descent parser; each method reads one rule of the grammar, the loosest first."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.open = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    @property
    def before(self) -> str:
        return f"before character {self.token.at}"

    def fail(self, message: str, advice: str = "") -> NoReturn:
        raise ConditionFault(f"{message} at character {self.token.at}", advice)

    def take(self, *texts: str) -> str:
        """Return the next token if it is one of these words or signs, and move on; else ''."""
        token = self.token
        if token.kind not in ("word", "sign") or token.text not in texts:
            return ""
        self.at += 1
        return token.text

    def require(self, text: str) -> None:
        if not self.take(text):
            self.fail(f"{text.upper()} is missing")

    def parse_or(self) -> Term:
        # Checked while parsing: Python's own recursion limit would end in a traceback.
        self.open += 1
        if self.open > MOST_DEPTH:
            self.fail("the condition is nested too deeply")
        term = self.parse_joined("or", lambda: self.parse_joined("and", self.parse_not))
        self.open -= 1
        return term

    def parse_joined(self, word: str, parse_operand: Callable[[], Term]) -> Term:
        operands = [parse_operand()]
        while self.take(word):
            operands.append(parse_operand())
        if len(operands) == 1:
            return operands[0]
        return self.term(
            word, TermKind.BOOL, *(self.as_kind(operand, TermKind.BOOL) for operand in operands)
        )

    def parse_not(self) -> Term:
        inverse = False
        while self.take("not"):
            # A loop, because `NOT NOT NOT …` of 4,000 characters would recurse a thousand deep.
            inverse = not inverse
        return self.negate_if(inverse, self.parse_predicate())

    def negate_if(self, inverse: bool, term: Term) -> Term:
        return (
            self.term("not", TermKind.BOOL, self.as_kind(term, TermKind.BOOL)) if inverse else term
        )

    def parse_predicate(self) -> Term:
        operand = self.parse_sum()
        if self.token.text in (*COMPARISONS, *_SAME) and self.token.kind == "sign":
            sign = self.take(*COMPARISONS, *_SAME)
            return self.compare(_SAME.get(sign, sign), operand, self.parse_sum())
        if self.take("is"):
            inverse = bool(self.take("not"))
            self.require("null")
            return self.negate_if(inverse, self.term("null", TermKind.BOOL, operand))
        inverse = bool(self.take("not"))
        word = self.take("in", "between", "like", "rlike")
        if word:
            return self.negate_if(inverse, _TAILS[word](self, operand))
        if inverse:
            self.fail("expected IN, BETWEEN, LIKE or RLIKE after NOT")
        return operand

    def parse_in(self, operand: Term) -> Term:
        self.require("(")
        terms = [self.compare("=", operand, self.parse_sum())]
        while self.take(","):
            terms.append(self.compare("=", operand, self.parse_sum()))
        self.require(")")
        return self.term("or", TermKind.BOOL, *terms)

    def parse_between(self, operand: Term) -> Term:
        low = self.compare(">=", operand, self.parse_sum())
        self.require("and")
        return self.term("and", TermKind.BOOL, low, self.compare("<=", operand, self.parse_sum()))

    def parse_like(self, operand: Term) -> Term:
        pattern = "".join(
            # LIKE becomes a regular expression: Spark's LIKE treats backslashes as escapes, this
            # language does not.
            {"%": ".*", "_": "."}.get(c) or re.escape(c)
            for c in self.parse_pattern()
        )
        return self.make_match(operand, rf"(?s)\A{pattern}\z")

    def parse_rlike(self, operand: Term) -> Term:
        pattern = self.parse_pattern()
        fault = find_pattern_fault(pattern)
        if fault:
            self.fail(f"the pattern {pattern} {fault}")
        return self.make_match(operand, pattern)

    def parse_pattern(self) -> str:
        if self.token.kind != "text":
            self.fail("expected a pattern in single quotes")
        return str(self.parse_primary().value)

    def make_match(self, operand: Term, pattern: str) -> Term:
        text = self.as_kind(operand, TermKind.TEXT)
        return self.term("rlike", TermKind.BOOL, text, value=pattern)

    def compare(self, sign: str, left_operand: Term, right_operand: Term) -> Term:
        # A number on either side makes it a comparison of numbers: as texts, '10' < '9' is true.
        kinds = {left_operand.kind, right_operand.kind} - {TermKind.NULL}
        kind = next((k for k in (TermKind.NUMBER, TermKind.BOOL) if k in kinds), TermKind.TEXT)
        return self.term(
            sign, TermKind.BOOL, self.as_read(left_operand, kind), self.as_read(right_operand, kind)
        )

    def parse_sum(self) -> Term:
        return self.parse_chain(
            ("+", "-"), lambda: self.parse_chain(("*", "/", "%"), self.parse_signed)
        )

    def parse_chain(self, signs: tuple[str, ...], parse_operand: Callable[[], Term]) -> Term:
        term = parse_operand()
        while sign := self.take(*signs):
            terms = (
                self.as_kind(term, TermKind.NUMBER),
                self.as_kind(parse_operand(), TermKind.NUMBER),
            )
            term = self.term(sign, TermKind.NUMBER, *terms)
        return term

    def parse_signed(self) -> Term:
        if not self.take("-"):
            return self.parse_primary()
        zero = self.term("number", TermKind.NUMBER, value="0")
        return self.term(
            "-", TermKind.NUMBER, zero, self.as_kind(self.parse_primary(), TermKind.NUMBER)
        )

    def parse_primary(self) -> Term:
        token = self.token
        if self.take("("):
            inner = self.parse_or()
            self.require(")")
            return inner
        if word := self.take(*_LITERALS, *_CASTING):
            return self.parse_word(word)
        if token.kind not in ("number", "text", "name"):
            self.fail(f"expected a value, not {token.text or 'the end'},")
        self.at += 1
        if token.kind == "number" and len(token.text) > MOST_DIGITS:
            raise ConditionFault(f"a number has at most {MOST_DIGITS} digits")
        if token.kind == "number":
            return self.term("number", TermKind.NUMBER, value=token.text)
        if token.kind == "text":
            return self.term("text", TermKind.TEXT, value=token.text[1:-1].replace("''", "'"))
        return self.parse_named(token.text)

    def parse_word(self, word: str) -> Term:
        if word == "null":
            return self.term("nothing", TermKind.NULL)
        if word in ("true", "false"):
            return self.term("bool", TermKind.BOOL, value=word == "true")
        self.require("(")
        term = self.parse_or()
        self.require("as")
        name = self.token.text.lower()
        if name not in CASTS:
            self.fail(f"{name} is not one of the types {', '.join(CASTS)}")
        self.at += 1
        self.require(")")
        if term.kind is TermKind.MAP:
            raise ConditionFault(f"expected a value, not {term.kind}, {self.before}")
        return self.term("cast", CASTS[name], term, value=name)

    def parse_named(self, name: str) -> Term:
        if self.take("("):
            return self.parse_call(name.lower())
        if name != ATTRS and name in COLUMNS:
            return self.term("column", TermKind.TEXT, value=name)
        if name != ATTRS:
            self.at -= 1
            columns = (*COLUMNS, ATTRS)
            advice = suggest(name, columns) or f"There are {', '.join(columns)}."
            self.fail(f"there is no column {name}", advice)
        if not self.take("["):
            return self.term("attrs", TermKind.MAP)
        if self.token.kind != "text":
            self.fail(
                "expected the name of an attribute in single quotes, as in attrs['partitions'],"
            )
        key = self.parse_primary().value
        self.require("]")
        return self.term("attr", TermKind.TEXT, value=key)

    def parse_call(self, name: str) -> Term:
        function = FUNCTIONS.get(name)
        if function is None:
            self.at -= 2
            advice = suggest(name, FUNCTIONS) or f"There are {', '.join(FUNCTIONS)}."
            self.fail(f"there is no function {name}", advice)
        args = [] if self.take(")") else [self.parse_or()]
        while args and not self.take(")"):
            self.require(",")
            args.append(self.parse_or())
        takes = function.takes
        if function.more:
            takes += takes[-1:] * (len(args) - len(takes))
        if len(args) != len(takes):
            raise ConditionFault(
                f"{name} takes {len(takes)} values, not {len(args)}, {self.before}"
            )
        terms = (self.as_kind(arg, kind) for arg, kind in zip(args, takes, strict=True))
        return self.term(name, function.gives, *terms)

    def as_kind(self, term: Term, kind: TermKind) -> Term:
        """Return the term as this type: text becomes a number, nothing else is converted. Text is
        no condition, so that a forgotten comparison is noticed."""
        if term.kind in (kind, TermKind.NULL):
            return term
        if kind is TermKind.NUMBER:
            return self.as_read(term, kind)
        raise ConditionFault(f"expected {kind}, not {term.kind}, {self.before}")

    def as_read(self, term: Term, kind: TermKind) -> Term:
        """Return the term as this type; text is cast if necessary."""
        if term.kind is TermKind.TEXT and kind in _READS:
            return self.term("cast", kind, term, value=_READS[kind])
        if term.kind not in (kind, TermKind.NULL):
            raise ConditionFault(f"expected {kind}, not {term.kind}, {self.before}")
        return term

    def term(self, op: str, kind: TermKind, *args: Term, value: Any = None) -> Term:
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth > 2 * MOST_DEPTH:
            self.fail("the condition is nested too deeply")
        return Term(op, kind, args, value, depth)


_READS = {TermKind.NUMBER: "decimal", TermKind.BOOL: "boolean"}
"""Type that text is read as -> the cast that does it."""
_TAILS: Mapping[str, Callable[[_ConditionParser, Term], Term]] = {
    "in": _ConditionParser.parse_in,
    "between": _ConditionParser.parse_between,
    "like": _ConditionParser.parse_like,
    "rlike": _ConditionParser.parse_rlike,
}
