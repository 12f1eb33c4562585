"""Text to tokens: lossless, in linear time, with every newline judged by its surroundings.

A stack of frames says what the text means at each offset: code inside braces (newlines count),
code inside parentheses, brackets or `${ }` (they do not), or literal text of a string or heredoc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..core.diagnostics import Diagnostic
from . import complaints, limits, patterns
from .complaints import Complaint
from .faults import fault
from .source import Source
from .tokens import CLOSER_OF, CLOSERS, KEYWORDS, OPENERS, OPERATORS, Frame, Scan, Token


def scan(source: Source, root: Frame = Frame.BODY) -> Scan:
    """root: BODY for a file, EXPRESSION for one expression, BARE for a template."""
    scanner = _Scanner(source, root)
    scanner.run()
    return Scan(scanner.tokens, scanner.item_ends, frozenset(scanner.broken), scanner.faults)


_NEWLINES_COUNT = frozenset({Frame.BODY, Frame.OBJECT})
_LEADING_ONLY = frozenset({"for", "else", "endif", "endfor"})
_LEADS = frozenset({"LSQB", "LBRACE", "DIRECTIVE_START", "STRIP_MARKER"})
_FOR_FRAMES = frozenset({Frame.BRACKET, Frame.FOR_OBJECT, Frame.DIRECTIVE})
_TEMPLATE_FRAMES = frozenset({Frame.INTERPOLATION, Frame.DIRECTIVE})
_ONE_LINE = _TEMPLATE_FRAMES | {Frame.QUOTED, Frame.PAREN, Frame.BRACKET}
"""What an unclosed string takes along when it began on the same line."""


@dataclass(slots=True)
class _Open:
    """in_value: within a body, `=` was seen on this line, so that `{` opens an object;
    stop and marker: for heredocs."""

    frame: Frame
    start: int
    in_value: bool = False
    stop: re.Pattern[str] | None = None
    marker: str = ""


@dataclass(slots=True)
class _Scanner:
    """at: the offset to go on from; last: type of the last token that is not trivia."""

    source: Source
    root: Frame
    at: int = 0
    last: str = ""
    mistakes: int = 0
    tokens: list[Token] = field(default_factory=list)
    item_ends: list[int] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)
    faults: list[Diagnostic] = field(default_factory=list)
    frames: list[_Open] = field(default_factory=list)

    def run(self) -> None:
        self.frames = [_Open(self.root, 0)]
        size = len(self.source.text)
        while self.at < size:
            if len(self.tokens) > limits.TOKENS:
                self._stop(self.at, complaints.TOO_COMPLEX)
            if self.mistakes > limits.DIAGNOSTICS or self.at >= size:
                return
            _STEPS[self.frames[-1].frame](self)
        self._finish()

    # -- code

    def code(self) -> None:
        found = patterns.CODE.match(self.source.text, self.at)
        assert found is not None and found.lastgroup is not None
        kind = found.lastgroup
        self.at = found.end()
        _CODE_STEPS[kind](self, found.start(kind), self.at)

    def name(self, start: int, end: int) -> None:
        text = self.source.text[start:end]
        if not text.isascii() and not text.replace("-", "_").isidentifier():
            self._bad_name(start, text)
            return
        type_ = KEYWORDS.get(text, "NAME")
        if type_ != "NAME" and (
            self.last == "DOT" or (text in _LEADING_ONLY and not self._leads(text))
        ):
            type_ = "NAME"
        self._emit(type_, start, end)

    def _leads(self, word: str) -> bool:
        """Whether a keyword that only counts first in its brackets stands first here."""
        frame = self.frames[-1].frame
        if self.last not in _LEADS:
            return False
        return frame in _FOR_FRAMES if word == "for" else frame is Frame.DIRECTIVE

    def _bad_name(self, start: int, text: str) -> None:
        """Keep the good part of a name, complain about its first bad character."""
        good = 0
        while ("a" * bool(good) + text[good]).replace("-", "_").isidentifier():
            good += 1
        if good:
            self._emit("NAME", start, start + good)
        complaint = complaints.unexpected(text[good])
        self._fault(start + good, start + good + 1, complaint)

    def number(self, start: int, end: int) -> None:
        whole = self.source.text[start:end].isdigit()
        self._emit("INT_LITERAL" if whole else "FLOAT_LITERAL", start, end)

    def newline(self, start: int, end: int) -> None:
        top = self.frames[-1]
        if top.frame not in _NEWLINES_COUNT or self.last in ("", "NL_OR_COMMENT"):
            self.tokens.append(Token("BREAK", start, end, self.source))
            return
        self._emit("NL_OR_COMMENT", start, end)
        top.in_value = False
        if len(self.frames) == 1:
            self.item_ends.append(len(self.tokens))

    def comment(self, start: int, end: int) -> None:
        self.tokens.append(Token("COMMENT", start, end, self.source))

    def plain(self, start: int, end: int) -> None:
        self._emit("PLAIN_STRING", start, end)

    def quote(self, start: int, end: int) -> None:
        self._emit("DBLQUOTE", start, end)
        self._push(_Open(Frame.QUOTED, start))

    def heredoc(self, start: int, end: int) -> None:
        self._emit("HEREDOC_TEMPLATE", start, end)
        marker = self.source.text[start:end].lstrip("<-").rstrip("\r\n")
        if len(marker) > limits.EXCERPT_CHARACTERS:
            self._stop(start, complaints.LONG_MARKER)
            return
        stop = patterns.heredoc_stop(marker)
        self._push(_Open(Frame.HEREDOC, start, stop=stop, marker=marker))

    def open(self, start: int, end: int) -> None:
        mark = self.source.text[start]
        type_, frame = OPENERS[mark]
        if mark == "{":
            top = self.frames[-1]
            if top.frame is Frame.BODY and not top.in_value:
                frame = Frame.BODY
            elif patterns.FOR_AHEAD.match(self.source.text, end):
                frame = Frame.FOR_OBJECT
        self._emit(type_, start, end)
        self._push(_Open(frame, start))

    def close(self, start: int, end: int) -> None:
        mark = self.source.text[start]
        top = self.frames[-1]
        if len(self.frames) > 1 and CLOSER_OF[top.frame] == mark:
            self.frames.pop()
            self._emit(CLOSERS[mark], start, end)
            return
        if len(self.frames) == 1:
            complaint = complaints.nothing_open(mark)
        else:
            line = self.source.range(top.start, top.start).line
            complaint = complaints.mismatch(mark, top.frame, self._opener(top), line)
        self._bracket_fault(start, end, complaint)
        self._resume()

    def splat(self, start: int, end: int) -> None:
        self._emit("FULL_SPLAT_START", start, end)

    def operator(self, start: int, end: int) -> None:
        text = self.source.text[start:end]
        if text == "=":
            self.frames[-1].in_value = True
        self._emit(OPERATORS.get(text, "ATTR_SPLAT"), start, end)

    def strip(self, start: int, end: int) -> None:
        if self.frames[-1].frame in _TEMPLATE_FRAMES:
            self._emit("STRIP_MARKER", start, end)
        else:
            self.bad(start, end)

    def end(self, start: int, end: int) -> None:
        """Only blanks were left."""

    def bad(self, start: int, end: int) -> None:
        text = self.source.text
        if text.startswith("/*", start):
            self._stop(start, complaints.UNCLOSED_COMMENT)
        elif text.startswith("<<", start):
            self._fault(start, start + 2, complaints.BAD_HEREDOC)
            self._skip_heredoc(start)
        else:
            self._fault(start, end, complaints.unexpected(text[start]))

    def _skip_heredoc(self, start: int) -> None:
        """Go on after the text of a heredoc whose first line is wrong, if its end is there."""
        self.at = start + 2
        opener = patterns.MISWRITTEN_HEREDOC.match(self.source.text, start)
        if opener and len(opener.group(1)) <= limits.EXCERPT_CHARACTERS:
            last_line = rf"\n[ \t]*+{re.escape(opener.group(1))}[ \t\r]*+(?=\n)"
            found = re.compile(last_line).search(self.source.text, opener.end())
            self.at = found.end() if found else opener.end()

    # -- literal text

    def quoted(self) -> None:
        found = patterns.QUOTED_TEXT.match(self.source.text, self.at)
        assert found is not None
        self._literal(found.end())
        mark = self.source.text[self.at : self.at + 1]
        if mark == '"':
            self._emit("DBLQUOTE", self.at, self.at + 1)
            self.at += 1
            self.frames.pop()
        elif mark in ("$", "%"):
            self._template_opener()
        else:
            self._unclosed_string(self.frames[-1].start)

    def _unclosed_string(self, start: int) -> None:
        self._fault(start, self.at, complaints.UNCLOSED_STRING)
        self.at = self._line_end(self.at)
        line_start = self.source.text.rfind("\n", 0, start) + 1
        while self.frames[-1].start >= line_start and self.frames[-1].frame in _ONE_LINE:
            self.frames.pop()

    def bare(self) -> None:
        found = patterns.BARE_TEXT.match(self.source.text, self.at)
        assert found is not None
        self._literal(found.end())
        if self.at < len(self.source.text):
            self._template_opener()

    def heredoc_text(self) -> None:
        opened = self.frames[-1]
        assert opened.stop is not None
        found = opened.stop.search(self.source.text, self.at)
        while found and found.group() in ("$${", "%%{"):
            found = opened.stop.search(self.source.text, found.end())
        if found is None:
            self._stop(opened.start, complaints.unclosed_heredoc(opened.marker))
            return
        self._literal(found.start())
        if not found.group(1):
            self._template_opener()
            return
        self._emit("HEREDOC_END", found.start(), found.end())
        self.at = found.end()
        self.frames.pop()

    def _literal(self, end: int) -> None:
        if end > self.at:
            self._emit("STRING_CHARS", self.at, end)
            self.at = end

    def _template_opener(self) -> None:
        start = self.at
        directive = self.source.text[start] == "%"
        self._emit("DIRECTIVE_START" if directive else "INTERP_START", start, start + 2)
        self.at = start + 2
        if self.source.text.startswith("~", self.at):
            self._emit("STRIP_MARKER", self.at, self.at + 1)
            self.at += 1
        self._push(_Open(Frame.DIRECTIVE if directive else Frame.INTERPOLATION, start))

    # -- shared

    def _emit(self, type_: str, start: int, end: int) -> None:
        self.tokens.append(Token(type_, start, end, self.source))
        self.last = type_

    def _push(self, opened: _Open) -> None:
        self.frames.append(opened)
        if len(self.frames) > limits.NESTING + 1:
            self._stop(opened.start, complaints.too_deep(limits.NESTING))

    def _opener(self, opened: _Open) -> str:
        width = 2 if opened.frame in _TEMPLATE_FRAMES else 1
        return self.source.text[opened.start : opened.start + width]

    def _line_end(self, start: int) -> int:
        end = self.source.text.find("\n", start)
        return len(self.source.text) if end < 0 else end

    def _fault(self, start: int, end: int, complaint: Complaint) -> None:
        """Reported unless the line before or this one already had the same error."""
        self.broken.add(len(self.item_ends))
        self.mistakes += 1
        found = fault(self.source, start, end, *complaint)
        earlier = self.faults[-1] if self.faults else None
        if not (earlier and _repeats(earlier, found)):
            self.faults.append(found)

    def _bracket_fault(self, start: int, end: int, complaint: Complaint) -> None:
        """Reported unless an earlier error in the item may have hidden the other bracket."""
        if len(self.item_ends) not in self.broken:
            self._fault(start, end, complaint)

    def _stop(self, start: int, complaint: Complaint) -> None:
        """An error after which nothing that follows can be told apart."""
        self._fault(start, self._line_end(start), complaint)
        self.at = len(self.source.text)
        del self.frames[1:]

    def _resume(self) -> None:
        """Go on at the next line that begins in the first column, as items do."""
        found = patterns.NEXT_ITEM.search(self.source.text, self.at)
        self.at = found.end() if found else len(self.source.text)
        del self.frames[1:]
        self.frames[0].in_value = False
        self.last = ""
        self.item_ends.append(len(self.tokens))

    def _finish(self) -> None:
        top = self.frames[-1]
        if top.frame is Frame.QUOTED or top.frame is Frame.HEREDOC:
            _STEPS[top.frame](self)
        elif len(self.frames) > 1:
            opener = self._opener(top)
            after = self._line_end(top.start)
            complaint = complaints.unclosed(self.source, top.frame, opener, after)
            self._bracket_fault(top.start, top.start + len(opener), complaint)
        if self.root is Frame.BODY and self.last not in ("", "NL_OR_COMMENT"):
            self._emit("NL_OR_COMMENT", self.at, self.at)
            self.item_ends.append(len(self.tokens))


def _repeats(earlier: Diagnostic, later: Diagnostic) -> bool:
    near = earlier.range and later.range and later.range.line <= earlier.range.line + 1
    return bool(near) and earlier.summary == later.summary


_STEPS: Mapping[Frame, Callable[[_Scanner], None]] = {
    **dict.fromkeys(Frame, _Scanner.code),
    Frame.QUOTED: _Scanner.quoted,
    Frame.HEREDOC: _Scanner.heredoc_text,
    Frame.BARE: _Scanner.bare,
}
_CODE_STEPS: Mapping[str, Callable[[_Scanner, int, int], None]] = {
    name: getattr(_Scanner, name) for name in patterns.CODE.groupindex
}
