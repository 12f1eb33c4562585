"""The regular expressions of the scanner. Each takes linear time: runs of one class are
possessive, alternatives start differently, so nothing is tried twice.

Groups are not possessive: Python before 3.11.5 matches those wrongly (CPython gh-106052).
"""

from __future__ import annotations

import re

_NAME = r"(?:[^\W\d]|[^\x00-\x7f])(?:[\w-]|[^\x00-\x7f])*"
_COMMENT = r"(?:\#|//)[^\n]*+|/\*(?:[^*]++|\*(?!/))*\*/"

CODE = re.compile(
    rf"""(?:[ \t]|\r(?=\n))* (?:
      (?P<name>{_NAME})
    | (?P<newline>\n)
    | (?P<plain>"[^"\\$%\r\n]*+")
    | (?P<quote>")
    | (?P<number>[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)
    | (?P<comment>{_COMMENT})
    | (?P<heredoc><<-?{_NAME}\r?\n)
    | (?P<splat>\[[ \t]*+\*[ \t]*+\])
    | (?P<open>[\[({{])
    | (?P<close>[\])}}])
    | (?P<operator>/(?!\*)|==|!=|<=|>=|<(?!<)|&&|\|\||=>|\.\.\.|\.[ \t]*+\*|::|[-+*%>!?=:,.])
    | (?P<strip>~(?=\}}))
    | (?P<end>\Z)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
"""One token of code after blanks. Names take in every character beyond ASCII; the scanner
judges them."""

QUOTED_TEXT = re.compile(r'(?:[^"\\$%\r\n]++|\\[^\r\n]|\$\$\{|%%\{|\$(?!\{)|%(?!\{))*')
BARE_TEXT = re.compile(r"(?:[^$%]++|\$\$\{|%%\{|\$(?!\{)|%(?!\{))*")
FOR_AHEAD = re.compile(rf"(?:[ \t\r\n]|{_COMMENT})*for(?![\w-])")
NEXT_ITEM = re.compile(r"\n(?=[^\W\d])")
UNINDENTED_ITEM = re.compile(
    r'^[^\W\d][\w-]*+(?:(?:[ \t]++"[^"\n]*+")*[ \t]*+\{[ \t]*+\r?$|[ \t]*+=[ \t])', re.MULTILINE
)
MISWRITTEN_HEREDOC = re.compile(r"<<-?[ \t]*+[\"']?([\w-]++)[^\n]*+")


def heredoc_stop(marker: str) -> re.Pattern[str]:
    """The line that ends a heredoc (group 1 is the marker), or something that begins with `${`
    or `%{`, doubled or not."""
    return re.compile(
        rf"^[^\S\n]*+({re.escape(marker)})[^\S\n]*+(?=\n)|\$\$\{{|%%\{{|\$\{{|%\{{", re.MULTILINE
    )
