"""Cut a text into tokens, without loss and in linear time.

A stack of frames says what the text means at each offset: code inside braces, where newlines count;
code inside parentheses, brackets or `${ }`, where they do not; or the literal text of a string or
heredoc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice

from msgspec import Struct, field

from ..core.diagnostics import Diagnostic
from . import faults
from .faults import Complaint, is_repeated, make_fault
from .nodes import DIAGNOSTICS, EXCERPT_CHARACTERS, NESTING, TOKENS, Source
from .stamps import Stamper
from .terms import find_constants_end
from .tokens import (
    BARE_TEXT,
    CLOSER_OF,
    CLOSERS,
    CODE,
    CONFLICT,
    FOR,
    HEREDOC_STOP,
    KEYWORDS,
    MISWRITTEN_HEREDOC,
    NEXT_ITEM,
    NOTHING,
    OPENERS,
    OPERATORS,
    QUOTED_TEXT,
    Frame,
    OpenFrame,
    Scan,
    Token,
)


def scan(source: Source, root: Frame = Frame.BODY, start: int = 0, end: int | None = None) -> Scan:
    """The tokens of a text, or of the part from `start` to `end`.

    root: BODY for a file, EXPRESSION for one expression, BARE for a template. Blocks that repeat
    others are skipped (see `stamps`), and in a large file a flat object is one token, but not in a
    part of a text.
    """
    stamper = Stamper(source.text)
    if root is not Frame.BODY or end is not None:
        stamper.patience = 0
    at, until = stamper.pass_over(start), len(source.text) if end is None else end
    flat = stamper.patience > 0 and until > _LARGE
    scanner = _Scanner(source, root, stamper, until, at, [OpenFrame(root, 0)], flat)
    scanner.run()
    ends, broken = scanner.item_ends, frozenset(scanner.broken)
    return Scan(scanner.tokens, ends, broken, scanner.faults, stamper.stamps, scanner.packed > 0)


_LARGE = 20_000
"""Characters of a file that is worth the time to compile the pattern of flat objects."""

_NEWLINES_COUNT = frozenset({Frame.BODY, Frame.OBJECT})
_LEADING_ONLY = frozenset({"for", "else", "endif", "endfor"})
_LEADS = frozenset({"LSQB", "LBRACE", "DIRECTIVE_START", "STRIP_MARKER"})
_FOR_FRAMES = frozenset({Frame.BRACKET, Frame.FOR_OBJECT, Frame.DIRECTIVE})
_LITERAL = frozenset({Frame.QUOTED, Frame.HEREDOC, Frame.BARE})
_TEMPLATE_FRAMES = frozenset({Frame.INTERPOLATION, Frame.DIRECTIVE})
_ONE_LINE = _TEMPLATE_FRAMES | {Frame.QUOTED, Frame.PAREN, Frame.BRACKET}
"""Frames that end together with an unclosed string if they began on its line."""

_token: Callable[[tuple[str, int, int, Source]], Token] = partial(tuple.__new__, Token)
"""Twice as fast as a call of Token, and a text has hundreds of thousands of tokens."""


class _Scanner(Struct, eq=False):
    """The state of a scan."""

    source: Source
    root: Frame
    stamper: Stamper
    until: int
    """The offset to stop at."""
    at: int
    """The offset to go on from."""
    frames: list[OpenFrame]
    """What is open, the innermost last."""
    flat: bool
    """Whether a flat object becomes one token."""
    packed: int = 0
    """How many tokens the flat objects consist of, at most."""
    last: str = ""
    """The type of the last token that is not trivia."""
    mistakes: int = 0
    """How many errors there were, also those that are not reported."""
    tokens: list[Token] = field(default_factory=list)
    item_ends: list[int] = field(default_factory=list)
    """For each top-level item, the index behind its last token."""
    broken: set[int] = field(default_factory=set)
    """Indexes of items with an error."""
    faults: list[Diagnostic] = field(default_factory=list)

    def run(self) -> None:
        while self.at < self.until:
            if len(self.tokens) + self.packed > TOKENS:
                self._stop(self.at, faults.TOO_COMPLEX)
                self.item_ends.clear()  # what is refused is not parsed
            if self.mistakes > DIAGNOSTICS or self.at >= self.until:
                return
            _STEPS[self.frames[-1].frame](self)
        self._finish()

    # -- code

    def scan_code(self) -> None:
        """Scan code up to a string with parts, a heredoc or the end of `${ }`."""
        # The hot loop: all but punctuation with a meaning becomes a token at once, without a call.
        text, source, tokens = self.source.text, self.source, self.tokens
        room = TOKENS + 1 - len(tokens) - self.packed
        for match in islice(CODE.finditer(text, self.at, self.until), room):
            kind = match.lastgroup
            assert kind is not None
            start, self.at = match.span(kind)
            if kind == "mark":
                kind = OPERATORS[text[start : self.at]]
            elif kind == "NAME":
                word = text[start : self.at]
                if word in KEYWORDS:
                    kind = self._choose_type(word)
                elif not (word.isascii() or word.replace("-", "_").isidentifier()):
                    self._split_bad_name(start, word)
                    return
            elif kind == "EQ":
                self.frames[-1].in_value = True
            elif kind in _CODE_STEPS:
                end = self.at
                _CODE_STEPS[kind](self, start, end)
                if self.at != end or self.frames[-1].frame in _LITERAL or kind == "bad":
                    return
                continue
            elif kind == "end":  # only blanks were left
                return
            tokens.append(_token((kind, start, self.at, source)))
            self.last = kind

    def _choose_type(self, word: str) -> str:
        """The type of a word that can be a keyword."""
        # HCL has no reserved words: `x.for`, `if = 1` and `{ endif = 1 }` are names.
        plain = self.last == "DOT" or (word in _LEADING_ONLY and not self._is_leading(word))
        return "NAME" if plain else KEYWORDS[word]

    def _is_leading(self, word: str) -> bool:
        """Whether the word stands first in brackets of a kind in which it is a keyword."""
        frame = self.frames[-1].frame
        if self.last not in _LEADS:
            return False
        return frame in _FOR_FRAMES if word == "for" else frame is Frame.DIRECTIVE

    def _split_bad_name(self, start: int, text: str) -> None:
        """Keep the valid part of a name, and report its first invalid character."""
        good = 0
        while ("a" * bool(good) + text[good]).replace("-", "_").isidentifier():
            good += 1
        if good:
            self._emit("NAME", start, start + good)
        self._report_fault(start + good, start + good + 1, faults.make_unexpected(text[good]))

    def newline(self, start: int, end: int) -> None:
        top = self.frames[-1]
        # A newline that does not count is still a token: the formatter needs every line.
        if top.frame not in _NEWLINES_COUNT or self.last in ("", "NL_OR_COMMENT"):
            after_comment = bool(self.tokens) and self.tokens[-1].type == "COMMENT"
            self.tokens.append(_token(("BREAK", start, end, self.source)))
            if after_comment and len(self.frames) == 1:
                self.at = self.stamper.pass_over(end)
            return
        self._emit("NL_OR_COMMENT", start, end)
        top.in_value = False
        if len(self.frames) == 1:
            self.item_ends.append(len(self.tokens))
            self.stamper.note_item(start)
            self.at = self.stamper.pass_over(end)

    def comment(self, start: int, end: int) -> None:
        self.tokens.append(_token(("COMMENT", start, end, self.source)))

    def quote(self, start: int, end: int) -> None:
        self._emit("DBLQUOTE", start, end)
        self._push(OpenFrame(Frame.QUOTED, start))

    def heredoc(self, start: int, end: int) -> None:
        self._emit("HEREDOC_TEMPLATE", start, end)
        marker = self.source.text[start:end].lstrip("<-").rstrip("\r\n")
        if len(marker) > EXCERPT_CHARACTERS:
            self._stop(start, faults.LONG_MARKER)
            return
        self._push(OpenFrame(Frame.HEREDOC, start, marker))

    def open(self, start: int, end: int) -> None:
        mark = self.source.text[start]
        type_, frame = OPENERS[mark]
        # A brace is a block, an object or an object made by a for. They differ in whether
        # newlines count, so the scanner has to know before the parser sees them.
        if mark == "{":
            top = self.frames[-1]
            if top.frame is Frame.BODY and not top.in_value:
                frame = Frame.BODY
            elif self.flat and self._pack_object(start):
                return
            elif self._is_for_ahead(end):
                frame = Frame.FOR_OBJECT
        self._emit(type_, start, end)
        self._push(OpenFrame(frame, start))

    def _pack_object(self, start: int) -> bool:
        """Make an object of constants one token. Returns whether there is one."""
        end = find_constants_end(self.source.text, start, len(self.frames))
        if end is None:
            return False
        packed, self.at = self.source.text[start:end], end
        # An item has a key, a sign, a value and a comma or newline; more newlines can follow.
        self.packed += 4 * packed.count("=") + packed.count("\n") + packed.count("}")
        self._emit("FLAT_OBJECT", start, self.at)
        return True

    def _is_for_ahead(self, at: int) -> bool:
        while match := NOTHING.match(self.source.text, at):
            at = match.end()
        return FOR.match(self.source.text, at) is not None

    def close(self, start: int, end: int) -> None:
        mark = self.source.text[start]
        top = self.frames[-1]
        if len(self.frames) > 1 and CLOSER_OF[top.frame] == mark:
            self.frames.pop()
            self._emit(CLOSERS[mark], start, end)
            return
        if len(self.frames) == 1:
            complaint = faults.make_nothing_open(mark)
        else:
            line = self.source.range(top.start, top.start).line
            complaint = faults.make_mismatch(mark, top.frame, self._get_opener(top), line)
        self._report_bracket_fault(start, end, complaint)
        self._resume()

    def strip(self, start: int, end: int) -> None:
        if self.frames[-1].frame in _TEMPLATE_FRAMES:
            self._emit("STRIP_MARKER", start, end)
        else:
            self.bad(start, end)

    def bad(self, start: int, end: int) -> None:
        """Report a character at which no token begins."""
        text = self.source.text
        if text.startswith("/*", start):
            self._stop(start, faults.UNCLOSED_COMMENT)
        elif CONFLICT.match(text, start):
            self._stop(start, faults.CONFLICT)
        elif text.startswith("<<", start):
            self._report_fault(start, start + 2, faults.BAD_HEREDOC)
            self._skip_heredoc(start)
        else:
            self._report_fault(start, end, faults.make_unexpected(text[start]))

    def _skip_heredoc(self, start: int) -> None:
        """Go on behind a heredoc whose first line is wrong."""
        # Otherwise each line of its text would be reported as an error of its own.
        self.at = start + 2
        opener = MISWRITTEN_HEREDOC.match(self.source.text, start)
        if opener and len(opener.group(1)) <= EXCERPT_CHARACTERS:
            last_line = rf"\n[ \t]*+{re.escape(opener.group(1))}[ \t\r]*+(?=\n)"
            marker = re.compile(last_line).search(self.source.text, opener.end())
            self.at = marker.end() if marker else opener.end()

    # -- literal text

    def scan_quoted(self) -> None:
        self._emit_literal(self._find_text_end(QUOTED_TEXT))
        mark = self.source.text[self.at : self.at + 1]
        if mark == '"':
            self._emit("DBLQUOTE", self.at, self.at + 1)
            self.at += 1
            self.frames.pop()
        elif mark in ("$", "%"):
            self._open_template_part()
        else:
            self._end_unclosed_string(self.frames[-1].start)

    def _end_unclosed_string(self, start: int) -> None:
        """Report the string, and close what its line has left open, so that the next line is
        read as if nothing had happened."""
        self._report_fault(start, self.at, faults.UNCLOSED_STRING)
        self.at = self._find_line_end(self.at)
        line_start = self.source.text.rfind("\n", 0, start) + 1
        while self.frames[-1].start >= line_start and self.frames[-1].frame in _ONE_LINE:
            self.frames.pop()

    def scan_bare(self) -> None:
        self._emit_literal(self._find_text_end(BARE_TEXT))
        if self.at < len(self.source.text):
            self._open_template_part()

    def _find_text_end(self, text: re.Pattern[str]) -> int:
        end = self.at
        while match := text.match(self.source.text, end):
            end = match.end()
        return end

    def scan_heredoc_text(self) -> None:
        opened = self.frames[-1]
        for stop in HEREDOC_STOP.finditer(self.source.text, self.at):
            # `$${` and `%%{` stand for themselves, and so does a line with another word.
            if stop.group() in ("$${", "%%{") or stop.group(1) not in (None, opened.marker):
                continue
            self._emit_literal(stop.start())
            if not stop.group(1):
                self._open_template_part()
                return
            self._emit("HEREDOC_END", stop.start(), stop.end())
            self.at = stop.end()
            self.frames.pop()
            return
        self._stop(opened.start, faults.make_unclosed_heredoc(opened.marker))

    def _emit_literal(self, end: int) -> None:
        if end > self.at:
            self._emit("STRING_CHARS", self.at, end)
            self.at = end

    def _open_template_part(self) -> None:
        start = self.at
        directive = self.source.text[start] == "%"
        self._emit("DIRECTIVE_START" if directive else "INTERP_START", start, start + 2)
        self.at = start + 2
        if self.source.text.startswith("~", self.at):
            self._emit("STRIP_MARKER", self.at, self.at + 1)
            self.at += 1
        self._push(OpenFrame(Frame.DIRECTIVE if directive else Frame.INTERPOLATION, start))

    # -- shared

    def _emit(self, type_: str, start: int, end: int) -> None:
        self.tokens.append(_token((type_, start, end, self.source)))
        self.last = type_

    def _push(self, opened: OpenFrame) -> None:
        self.frames.append(opened)
        if len(self.frames) > NESTING + 1:
            self._stop(opened.start, faults.make_too_deep(NESTING))

    def _get_opener(self, opened: OpenFrame) -> str:
        width = 2 if opened.frame in _TEMPLATE_FRAMES else 1
        return self.source.text[opened.start : opened.start + width]

    def _find_line_end(self, start: int) -> int:
        end = self.source.text.find("\n", start)
        return len(self.source.text) if end < 0 else end

    def _report_fault(self, start: int, end: int, complaint: Complaint) -> None:
        """Report an error, unless this line or the line before had the same one."""
        self.broken.add(len(self.item_ends))
        self.mistakes += 1
        fault = make_fault(self.source, start, end, *complaint)
        earlier = self.faults[-1] if self.faults else None
        if not (earlier and is_repeated(earlier, fault)):
            self.faults.append(fault)

    def _report_bracket_fault(self, start: int, end: int, complaint: Complaint) -> None:
        """Report a bracket error, unless an earlier error in the item may have hidden the other
        bracket."""
        if len(self.item_ends) not in self.broken:
            self._report_fault(start, end, complaint)

    def _stop(self, start: int, complaint: Complaint) -> None:
        """Report an error after which the rest of the text cannot be understood."""
        self._report_fault(start, self._find_line_end(start), complaint)
        self.at = len(self.source.text)
        del self.frames[1:]

    def _resume(self) -> None:
        """Go on at the next line that begins in the first column, as top-level items do."""
        item = NEXT_ITEM.search(self.source.text, self.at)
        self.at = item.end() if item else len(self.source.text)
        del self.frames[1:]
        self.frames[0].in_value = False
        self.last = ""
        self.item_ends.append(len(self.tokens))

    def _finish(self) -> None:
        """Report what the text leaves open, and end the last item."""
        top = self.frames[-1]
        if top.frame is Frame.QUOTED or top.frame is Frame.HEREDOC:
            _STEPS[top.frame](self)  # reports it
        elif len(self.frames) > 1:
            opener = self._get_opener(top)
            after = self._find_line_end(top.start)
            complaint = faults.make_unclosed(self.source, top.frame, opener, after)
            self._report_bracket_fault(top.start, top.start + len(opener), complaint)
        # A last line without a newline is complete, too: the grammar gets the newline it needs.
        if self.root is Frame.BODY and self.last not in ("", "NL_OR_COMMENT"):
            self._emit("NL_OR_COMMENT", self.at, self.at)
            self.item_ends.append(len(self.tokens))


_STEPS: Mapping[Frame, Callable[[_Scanner], None]] = {
    **dict.fromkeys(Frame, _Scanner.scan_code),
    Frame.QUOTED: _Scanner.scan_quoted,
    Frame.HEREDOC: _Scanner.scan_heredoc_text,
    Frame.BARE: _Scanner.scan_bare,
}
_CODE_STEPS: Mapping[str, Callable[[_Scanner, int, int], None]] = {
    name: getattr(_Scanner, name)
    for name in CODE.groupindex
    if name.islower() and name not in ("mark", "end")
}
