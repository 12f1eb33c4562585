"""The language of a rule's `where`: a small part of SQL, read here and never passed on as text.

So no condition can reach files, classes or other tables, and none can fail while it runs: text
becomes a number (38 digits, 6 of them behind the point) where it meets one, and what cannot be
computed is NULL, which is no finding. A quote in a text is written twice; a backslash is itself.
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
ATTRS = "attrs"


class Kind(StrEnum):
    """What a term is; NULL may stand for any."""

    NUMBER = "a number"
    TEXT = "text"
    BOOL = "true or false"
    MAP = "the map attrs"
    NULL = "null"


class Term(Struct, frozen=True):
    """One node: `op` with its arguments. value: of a literal, a column or an attribute."""

    op: str
    kind: Kind
    args: tuple[Term, ...] = ()
    value: Any = None
    depth: int = 1


class Function(Struct, frozen=True):
    """takes: kinds of the arguments; more: the last may come again and again."""

    gives: Kind
    takes: tuple[Kind, ...]
    more: bool = False


FUNCTIONS: Mapping[str, Function] = {
    "abs": Function(Kind.NUMBER, (Kind.NUMBER,)),
    "coalesce": Function(Kind.TEXT, (Kind.TEXT,), more=True),
    "concat": Function(Kind.TEXT, (Kind.TEXT,), more=True),
    "contains": Function(Kind.BOOL, (Kind.TEXT, Kind.TEXT)),
    "endswith": Function(Kind.BOOL, (Kind.TEXT, Kind.TEXT)),
    "length": Function(Kind.NUMBER, (Kind.TEXT,)),
    "lower": Function(Kind.TEXT, (Kind.TEXT,)),
    "map_contains_key": Function(Kind.BOOL, (Kind.MAP, Kind.TEXT)),
    "replace": Function(Kind.TEXT, (Kind.TEXT, Kind.TEXT, Kind.TEXT)),
    "size": Function(Kind.NUMBER, (Kind.MAP,)),
    "startswith": Function(Kind.BOOL, (Kind.TEXT, Kind.TEXT)),
    "trim": Function(Kind.TEXT, (Kind.TEXT,)),
    "upper": Function(Kind.TEXT, (Kind.TEXT,)),
}
CASTS: Mapping[str, Kind] = {
    "bigint": Kind.NUMBER,
    "boolean": Kind.BOOL,
    "decimal": Kind.NUMBER,
    "double": Kind.NUMBER,
    "int": Kind.NUMBER,
    "string": Kind.TEXT,
}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_SAME = {"!=": "<>", "==": "="}
_LITERALS, _CASTING = ("true", "false", "null"), ("cast", "try_cast")
_WORDS = frozenset(
    ("and", "or", "not", "is", "in", "between", "like", "rlike", "as", *_LITERALS, *_CASTING)
)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><=>|<>|!=|<=|>=|==|[=<>+\-*/%(),\[\]])|(?P<end>$))",
    re.ASCII,
)


_OTHERWISE = re.compile(
    r"\\[0NU]|\{(?!\d+(,\d*)?\})|\[[^\]]*(\[|&&|--|\|\||~~)|\(\?(P|\(|#|[a-zA-Z]*[aL])"
)
"""In a pattern: what Python reads and Java does not, or not in the same way."""


class ConditionFault(ValueError):
    """A condition cannot be read. message: what and at which character, from 1; advice: or ''."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class _Token(Struct, frozen=True):
    """kind: number, text, name, word, sign or end; at: character, from 1."""

    kind: str
    text: str
    at: int


def parse(where: str) -> Term:
    """The meaning of a condition. Raises ConditionFault."""
    if len(where) > MOST_CHARACTERS:
        raise ConditionFault(f"the condition has more than {MOST_CHARACTERS} characters")
    parser = _Parser(list(_tokens(where)))
    term = parser.either()
    if parser.token.kind != "end":
        parser.fail(f"AND, OR or the end must stand, not {parser.token.text},")
    return parser.as_kind(term, Kind.BOOL)


def pattern_fault(pattern: str) -> str:
    """What is wrong with a regular expression that Python and Java are to read alike, or ''."""
    odd = _OTHERWISE.search(re.sub(r"\\[^0NU]", "", pattern))
    if odd:
        return f"has {odd[0]}, which Java does not read as others do,"
    try:
        re.compile(pattern)
    except re.error as error:
        return f"cannot be read ({error})"
    return ""


def _tokens(where: str) -> Iterator[_Token]:
    at = 0
    while True:
        match = _TOKEN.match(where, at)
        if match is None:
            rest = where[at:].lstrip()
            at = len(where) - len(rest) + 1
            what = "the quote is not closed" if rest[0] == "'" else f"{rest[0]} means nothing"
            raise ConditionFault(f"{what} at character {at}")
        kind = match.lastgroup or ""
        text, start = match[kind], match.start(kind) + 1
        if kind == "name" and text.lower() in _WORDS:
            kind, text = "word", text.lower()
        yield _Token(kind, text, start)
        if kind == "end":
            return
        at = match.end()


class _Parser:
    """Recursive descent; each method reads one rule of the grammar, the loosest first."""

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

    def took(self, *texts: str) -> str:
        """The next token if it is one of these words or signs, else ''."""
        token = self.token
        if token.kind not in ("word", "sign") or token.text not in texts:
            return ""
        self.at += 1
        return token.text

    def need(self, text: str) -> None:
        if not self.took(text):
            self.fail(f"{text.upper()} is missing")

    def either(self) -> Term:
        self.open += 1
        if self.open > MOST_DEPTH:
            self.fail("the condition is nested too deeply")
        term = self.joined("or", lambda: self.joined("and", self.negation))
        self.open -= 1
        return term

    def joined(self, word: str, part: Callable[[], Term]) -> Term:
        parts = [part()]
        while self.took(word):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        return self.term(word, Kind.BOOL, *(self.as_kind(each, Kind.BOOL) for each in parts))

    def negation(self) -> Term:
        inverse = False
        while self.took("not"):
            inverse = not inverse
        return self.unless(inverse, self.predicate())

    def unless(self, inverse: bool, term: Term) -> Term:
        return self.term("not", Kind.BOOL, self.as_kind(term, Kind.BOOL)) if inverse else term

    def predicate(self) -> Term:
        left = self.sum()
        if self.token.text in (*COMPARISONS, *_SAME) and self.token.kind == "sign":
            sign = self.took(*COMPARISONS, *_SAME)
            return self.compared(_SAME.get(sign, sign), left, self.sum())
        if self.took("is"):
            inverse = bool(self.took("not"))
            self.need("null")
            return self.unless(inverse, self.term("null", Kind.BOOL, left))
        inverse = bool(self.took("not"))
        word = self.took("in", "between", "like", "rlike")
        if word:
            return self.unless(inverse, _TAILS[word](self, left))
        if inverse:
            self.fail("after NOT must stand IN, BETWEEN, LIKE or RLIKE")
        return left

    def among(self, left: Term) -> Term:
        self.need("(")
        terms = [self.compared("=", left, self.sum())]
        while self.took(","):
            terms.append(self.compared("=", left, self.sum()))
        self.need(")")
        return self.term("or", Kind.BOOL, *terms)

    def between(self, left: Term) -> Term:
        low = self.compared(">=", left, self.sum())
        self.need("and")
        return self.term("and", Kind.BOOL, low, self.compared("<=", left, self.sum()))

    def like(self, left: Term) -> Term:
        pattern = "".join({"%": ".*", "_": "."}.get(c) or re.escape(c) for c in self.pattern())
        return self.matching(left, rf"(?s)\A{pattern}(?!.)")

    def rlike(self, left: Term) -> Term:
        pattern = self.pattern()
        fault = pattern_fault(pattern)
        if fault:
            self.fail(f"the pattern {pattern} {fault}")
        return self.matching(left, pattern)

    def pattern(self) -> str:
        if self.token.kind != "text":
            self.fail("a pattern is a text in quotes: none stands")
        return str(self.primary().value)

    def matching(self, left: Term, pattern: str) -> Term:
        text = self.as_kind(left, Kind.TEXT)
        return self.term("rlike", Kind.BOOL, text, value=pattern)

    def compared(self, sign: str, left: Term, right: Term) -> Term:
        kinds = {left.kind, right.kind} - {Kind.NULL}
        kind = next((k for k in (Kind.NUMBER, Kind.BOOL) if k in kinds), Kind.TEXT)
        return self.term(sign, Kind.BOOL, self.as_read(left, kind), self.as_read(right, kind))

    def sum(self) -> Term:
        return self.computed(("+", "-"), lambda: self.computed(("*", "/", "%"), self.signed))

    def computed(self, signs: tuple[str, ...], part: Callable[[], Term]) -> Term:
        left = part()
        while sign := self.took(*signs):
            terms = (self.as_kind(left, Kind.NUMBER), self.as_kind(part(), Kind.NUMBER))
            left = self.term(sign, Kind.NUMBER, *terms)
        return left

    def signed(self) -> Term:
        if not self.took("-"):
            return self.primary()
        zero = self.term("number", Kind.NUMBER, value="0")
        return self.term("-", Kind.NUMBER, zero, self.as_kind(self.primary(), Kind.NUMBER))

    def primary(self) -> Term:
        token = self.token
        if self.took("("):
            inner = self.either()
            self.need(")")
            return inner
        if word := self.took(*_LITERALS, *_CASTING):
            return self.word(word)
        if token.kind not in ("number", "text", "name"):
            self.fail(f"a value must stand, not {token.text or 'the end'},")
        self.at += 1
        if token.kind == "number" and len(token.text) > MOST_DIGITS:
            raise ConditionFault(f"a number has at most {MOST_DIGITS} digits")
        if token.kind == "number":
            return self.term("number", Kind.NUMBER, value=token.text)
        if token.kind == "text":
            return self.term("text", Kind.TEXT, value=token.text[1:-1].replace("''", "'"))
        return self.named(token.text)

    def word(self, word: str) -> Term:
        if word == "null":
            return self.term("nothing", Kind.NULL)
        if word in ("true", "false"):
            return self.term("bool", Kind.BOOL, value=word == "true")
        self.need("(")
        term = self.either()
        self.need("as")
        name = self.token.text.lower()
        if name not in CASTS:
            self.fail(f"{name} is no type of {', '.join(CASTS)}")
        self.at += 1
        self.need(")")
        if term.kind is Kind.MAP:
            raise ConditionFault(f"{term.kind} stands where a value is needed {self.before}")
        return self.term("cast", CASTS[name], term, value=name)

    def named(self, name: str) -> Term:
        if self.took("("):
            return self.call(name.lower())
        if name != ATTRS and name in COLUMNS:
            return self.term("column", Kind.TEXT, value=name)
        if name != ATTRS:
            self.at -= 1
            known = (*COLUMNS, ATTRS)
            advice = suggest(name, known) or f"There are {', '.join(known)}."
            self.fail(f"there is no column {name}", advice)
        if not self.took("["):
            return self.term("attrs", Kind.MAP)
        if self.token.kind != "text":
            self.fail("attrs['partitions'] has a text in quotes: none stands")
        key = self.primary().value
        self.need("]")
        return self.term("attr", Kind.TEXT, value=key)

    def call(self, name: str) -> Term:
        function = FUNCTIONS.get(name)
        if function is None:
            self.at -= 2
            advice = suggest(name, FUNCTIONS) or f"There are {', '.join(FUNCTIONS)}."
            self.fail(f"there is no function {name}", advice)
        args = [] if self.took(")") else [self.either()]
        while args and not self.took(")"):
            self.need(",")
            args.append(self.either())
        takes = function.takes
        if function.more:
            takes += takes[-1:] * (len(args) - len(takes))
        if len(args) != len(takes):
            raise ConditionFault(
                f"{name} takes {len(takes)} values, not {len(args)}, {self.before}"
            )
        terms = (self.as_kind(arg, kind) for arg, kind in zip(args, takes, strict=True))
        return self.term(name, function.gives, *terms)

    def as_kind(self, term: Term, kind: Kind) -> Term:
        """The term as this kind: text becomes a number, nothing else changes. Text is no condition
        by itself, so that a forgotten comparison is seen."""
        if term.kind in (kind, Kind.NULL):
            return term
        if kind is Kind.NUMBER:
            return self.as_read(term, kind)
        raise ConditionFault(f"{term.kind} stands where {kind} is needed {self.before}")

    def as_read(self, term: Term, kind: Kind) -> Term:
        """The term as this kind, text read as that if need be."""
        if term.kind is Kind.TEXT and kind in _READS:
            return self.term("cast", kind, term, value=_READS[kind])
        if term.kind not in (kind, Kind.NULL):
            raise ConditionFault(f"{term.kind} stands where {kind} is needed {self.before}")
        return term

    def term(self, op: str, kind: Kind, *args: Term, value: Any = None) -> Term:
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth > 2 * MOST_DEPTH:
            self.fail("the condition is nested too deeply")
        return Term(op, kind, args, value, depth)


_READS = {Kind.NUMBER: "decimal", Kind.BOOL: "boolean"}
"""What text becomes where another kind is wanted -> the type that reads it."""
_TAILS: Mapping[str, Callable[[_Parser, Term], Term]] = {
    "in": _Parser.among,
    "between": _Parser.between,
    "like": _Parser.like,
    "rlike": _Parser.rlike,
}
