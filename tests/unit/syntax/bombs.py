"""Texts made to exhaust a parser, and what each of them costs: `python -m tests.unit.syntax.bombs`
answers names, one a line.

Most are a megabyte: what takes quadratic time or memory per character fails at that size too.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping

from kafkaform.syntax import nodes
from kafkaform.syntax.parse import parse

M = 1024 * 1024
ADDRESS_SPACE = 1024 * M
FULL = nodes.FILE_BYTES


def fill(unit: str, head: str = "", tail: str = "", size: int = M) -> str:
    """`head unit unit … tail`, of about that many characters."""
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def numbered(line: str, count: int) -> str:
    """The line with 0, 1, 2, … for each {}."""
    return "".join(line.replace("{}", str(number)) for number in range(count))


REFUSED: Mapping[str, tuple[Callable[[], str | bytes], str]] = {
    # nesting
    "brackets": (lambda: fill("[", "a = "), "Nested too deeply"),
    "one bracket too many": (lambda: "a = " + "[" * 101 + "]" * 101 + "\n", "Nested too deeply"),
    "braces": (lambda: fill("{", "a = "), "Nested too deeply"),
    "blocks": (lambda: fill("a {\n"), "Nested too deeply"),
    "strings in strings": (lambda: fill('"${', "a = "), "Nested too deeply"),
    "heredocs in heredocs": (lambda: fill("${<<F\n", "a = <<E\n"), "Nested too deeply"),
    "unary operators": (lambda: fill("!", "a = ", "x\n", 20_000), "Nested too deeply"),
    "conditionals": (lambda: fill("x ? y : ", "a = ", "z\n", 40_000), "Nested too deeply"),
    "long reference": (lambda: fill(".y", "a = x", "\n", 20_000), "Nested too deeply"),
    "splats": (lambda: fill("[*]", "a = x", "\n", 30_000), "Nested too deeply"),
    "comments before for": (lambda: fill("{#\n", "a = "), "Nested too deeply"),
    "directives": (lambda: fill("%{if x}", 'a = "', '"\n', 35_000), "Misplaced %{ if }"),
    # what is never closed
    "open heredoc": (lambda: fill("x\n", "a = <<E\n"), "Unclosed heredoc"),
    "open heredoc, blank lines": (lambda: fill("\n", "a = <<E\n"), "Unclosed heredoc"),
    "open heredoc, blanks": (lambda: fill(" " * 50 + "\n", "a = <<E\n"), "Unclosed heredoc"),
    "open heredoc, near ends": (lambda: fill("  E x\n", "a = <<E\n"), "Unclosed heredoc"),
    "open heredoc, words": (lambda: fill("EE\n", "a = <<E\n"), "Unclosed heredoc"),
    "heredoc starts": (lambda: numbered("a = <<E{}\n", 80_000), "Unclosed heredoc"),
    "wrong heredoc starts": (lambda: numbered("a = << E{}\n", 80_000), "Invalid heredoc start"),
    "heredoc marker": (lambda: fill("E", "a = <<", "\n"), "Heredoc marker too long"),
    "open comment": (lambda: fill("*", "/*", size=FULL), "Unclosed comment"),
    "open comments": (lambda: fill("/* "), "Unclosed comment"),
    "open strings": (lambda: fill('a = "x\n'), "Unclosed string"),
    "open string, backslashes": (lambda: fill("\\\\", 'a = "'), "Unclosed string"),
    "open string, dollars": (lambda: fill("$", 'a = "'), "Unclosed string"),
    "open block": (lambda: fill("a {\n}\n", tail="b {\n", size=200_000), 'Unclosed "{"'),
    "closing braces": (lambda: fill("}\n"), 'Unexpected "}"'),
    "mismatches": (lambda: fill("a = [)\n"), 'Expected "]" before ")"'),
    # sizes
    "file": (lambda: fill("#", size=FULL + 1), "File too large"),
    "file of wide letters": (lambda: "é" * (FULL // 2 + 1), "File too large"),
    "tokens": (lambda: fill("-", size=FULL), "File too complex"),
    "comments": (lambda: fill("/**/", size=4 * M + 100), "File too complex"),
    "empty lines": (lambda: fill("\n", size=2 * M), "File too complex"),
    "interpolations": (lambda: fill("${a}", 'a = "', '"\n', 2 * M), "File too complex"),
    "string": (lambda: fill("x", 'a = "', '"\n', FULL), "String too long"),
    "string of escapes": (lambda: fill("\\n", 'a = "', '"\n', 3 * M), "String too long"),
    "heredoc": (lambda: fill("0123456789\n", "a = <<E\n", "E\n", 2 * M), "String too long"),
    "heredoc of one line": (lambda: fill(" ", "a = <<-E\n", "\nE\n", FULL), "String too long"),
    "number": (lambda: fill("9", "a = ", "\n"), "Number too long"),
    "fraction": (lambda: fill("9", "a = 1.", "\n"), "Number too long"),
    "exponent": (lambda: "a = 1e999999999\n", "Number too long"),
    "exponent's exponent": (lambda: "a = 1e" + "9" * 900 + "\n", "Number too long"),
    "list": (lambda: "a = [" + "1," * 100_001 + "]\n", "Collection too large"),
    "object": (lambda: "a = {\n" + "b = 1\n" * 100_001 + "}\n", "Collection too large"),
    "arguments": (lambda: "a = f(" + "1," * 100_001 + ")\n", "Collection too large"),
    # mistakes without end
    "repeated attributes": (lambda: fill("a = 1\n", size=300_000), '"a" is set twice'),
    "repeated in a block": (lambda: fill("a = 1\n", "b {\n", "}\n", 300_000), '"a" is set twice'),
    "bad escapes": (lambda: fill("\\q", 'a = "', '"\n'), "Invalid escape sequence"),
    "no values": (lambda: fill("a = = 1\n", size=300_000), "Expected a value"),
    "no names": (lambda: fill('"${a}"\n', size=200_000), "Expected a name without quotes"),
    "an error at the end": (
        lambda: fill("1,", "a = [", " 2 3]\n", 150_000),
        'Expected a comma or "]"',
    ),
    # characters
    "emoji": (lambda: fill("😀", size=M // 4), "Unexpected character"),
    "NUL bytes": (lambda: fill("\0"), "Unexpected character U+0000"),
    "escape sequences": (lambda: fill("\x1b[2J"), "Unexpected character U+001B"),
    "bare carriage returns": (lambda: fill("\r", size=FULL), "A carriage return alone"),
    "carriage return in a string": (lambda: 'a = "b\rc"\n', "Unclosed string"),
    "tildes": (lambda: fill("~"), "A ~ is allowed only"),
    "zero width in a name": (lambda: "par\u200btitions = 1\n", "Unexpected character U+200B"),
    "direction in code": (lambda: "a = \u202e1\n", "Unexpected character U+202E"),
    "byte order marks": (lambda: fill("\ufeff", size=M // 4), "A byte order mark is allowed only"),
    "half characters": (lambda: b"a = 1\nb = \xff\n", "Not UTF-8"),
    "half a surrogate pair": (lambda: b'a = "\xed\xa0\x80"\n', "Not UTF-8"),
    "UTF-16": (lambda: "a = 1\n".encode("utf-16"), "Not UTF-8"),
}
"""Name -> text, and words of its first error."""

WARNED: Mapping[str, str] = {
    "direction in a comment": fill("# \u202e} \u2066x\n"),
    "direction in a string": 'a = "\u202eniamod"\n',
    "zero width in a string": 'a = "or\u200bders"\n',
    "NUL in a string": fill("\0", 'a = "', '"\n'),
    "escape sequence in a heredoc": "a = <<E\n\x1b[31m\nE\n",
    "byte order mark in a string": 'a = "\ufeffb"\n',
}
"""Texts that mean something else than they show; they are read, with a warning."""

ACCEPTED: Mapping[str, Callable[[], str]] = {
    "deepest brackets": lambda: "a = " + "[" * 100 + "]" * 100 + "\n",
    "deepest parentheses": lambda: "a = " + "(" * 100 + "1" + ")" * 100 + "\n",
    "longest string": lambda: 'a = "' + "x" * nodes.STRING_CHARACTERS + '"\n',
    "blank lines in a heredoc": lambda: fill("\n", "a = <<E\n", "x\nE\n", 300_000),
    "indented lines": lambda: "a = <<-E\n" + "".join(" " * n + "x\n" for n in range(1400)) + "E\n",
    "heredocs": lambda: numbered("a{} = <<E{}\nx\nE{}\n", 15_000),
    "comment": lambda: fill("#", tail="\n", size=FULL),
    "block comments": lambda: fill("/* * */"),
    "blanks": lambda: fill(" ", size=FULL),
    "dollars": lambda: fill("$", 'a = "', '"\n', M // 2),
    "escapes": lambda: fill("\\n", 'a = "', '"\n', M // 2),
    "large exponent": lambda: "a = 1e400\n",
    "joined emoji and letters": lambda: 'a = "👩\u200d👧 می\u200cخواهم"\n',
    "sum": lambda: fill("1 + ", "a = ", "1\n", 200_000),
    "list of lists": lambda: fill("[" * 90 + "]" * 90 + ",", "a = [", "]\n", 150_000),
    "objects": lambda: "a = [" + ("{\n" + "b = 1\n" * 20_000 + "},") * 2 + "]\n",
    "templates": lambda: fill("x${a}", 'a = "', '"\n', 150_000),
    "flush heredoc": lambda: fill("  ${a}\n", "a = <<-E\n", "E\n", 200_000),
    "labels": lambda: fill('"x" ', "a ", "{}\n", 500_000),
    "repeated blocks": lambda: fill('resource "a" "b" {\n  c = 1\n}\n'),
    "pairs of blocks": lambda: "".join(
        f'resource "a" "b{n}" {{ # {"1 " * 4000}x{n // 2}\n}}\n' for n in range(375)
    ),
    "attributes": lambda: numbered("a{} = b.c[0] ? 1 : 2\n", 10_000),
}
"""Large, but within the limits; hundreds of thousands of tokens, where there are many."""


def text_of(name: str) -> str | bytes:
    if name in REFUSED:
        return REFUSED[name][0]()
    return WARNED[name] if name in WARNED else ACCEPTED[name]()


def measure(name: str) -> None:
    """Print what parsing the text takes and says: seconds, megabytes, summary, line, severities."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    text = text_of(name)
    begun = time.process_time()
    _, faults = parse(text, "bomb.hcl")
    seconds = time.process_time() - begun
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    first = faults[0] if faults else None
    place = first.range if first else None
    said = [first and first.summary, place and place.line, [fault.severity for fault in faults]]
    print(json.dumps([seconds, megabytes, *said]), flush=True)


def main() -> None:
    """For each name on a line of the input a line of output, from a process of its own."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            measure(line.strip())
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            print("crashed", flush=True)


if __name__ == "__main__":
    main()
