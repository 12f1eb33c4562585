"""The regular expressions of the scanner. Each takes linear time: runs of one class are
possessive, alternatives start differently, so nothing is tried twice.

Groups are not possessive, since Python before 3.11.5 matches those wrongly (CPython gh-106052);
so they repeat a bounded number of times, since each repetition is kept in case of a way back.
"""

from __future__ import annotations

import re

# Said by what is no name: a class that reaches to U+10FFFF takes 5 ms to compile, for each use.
_NAME = r"[^\x00-@\[-^`{-\x7f][^\x00-,./:-@\[-^`{-\x7f]*+"
_COMMENT = r"(?:\#|//)[^\n]*+|/\*.*?\*/"

CODE = re.compile(
    rf"""[ \t]*+(?:\r(?=\n))? (?:
      (?P<NAME>{_NAME})
    | (?P<newline>\n)
    | (?P<PLAIN_STRING>"[^"\\$%\r\n]*+")
    | (?P<quote>")
    | (?P<FLOAT_LITERAL>[0-9]++(?=[.eE])(?:\.[0-9]++(?:[eE][+-]?[0-9]++)?|[eE][+-]?[0-9]++))
    | (?P<INT_LITERAL>[0-9]++)
    | (?P<equals>=(?![=>]))
    | (?P<comment>{_COMMENT})
    | (?P<heredoc><<-?{_NAME}\r?\n)
    | (?P<FULL_SPLAT_START>\[[ \t]*+\*[ \t]*+\])
    | (?P<ATTR_SPLAT>\.[ \t]*+\*)
    | (?P<open>[\[({{])
    | (?P<close>[\])}}])
    | (?P<mark>/(?!\*)|==|!=|<=|>=|<(?!<)|&&|\|\||=>|\.\.\.|::|[-+*%>!?:,.])
    | (?P<strip>~(?=\}}))
    | (?P<end>\Z)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
"""One token of code after blanks; groups in capitals are types of tokens. Names take in every
character beyond ASCII; the scanner judges them."""

QUOTED_TEXT = re.compile(r'(?:[^"\\$%\r\n]++|\\[^\r\n]|\$\$\{|%%\{|[$%](?!\{)){1,1000}')
BARE_TEXT = re.compile(r"(?:[^$%]++|\$\$\{|%%\{|[$%](?!\{)){1,1000}")
"""Literal text, or the first part of it."""

NOTHING = re.compile(rf"[ \t\r\n]++|{_COMMENT}", re.DOTALL)
FOR = re.compile(r"for(?![\w-])")
HEREDOC_STOP = re.compile(
    rf"^[^\S\n]*+({_NAME})[^\S\n]*+(?=\n)|\$\$\{{|%%\{{|\$\{{|%\{{", re.MULTILINE
)
"""A line that holds one word (group 1), as the last line of a heredoc does, or something that
begins with `${` or `%{`, doubled or not."""

NEXT_ITEM = re.compile(r"\n(?=[^\W\d])")
UNINDENTED_ITEM = re.compile(
    r'^[^\W\d][\w-]*+(?:(?:[ \t]++"[^"\n]*+")*[ \t]*+\{[ \t]*+\r?$|[ \t]*+=[ \t])', re.MULTILINE
)
MISWRITTEN_HEREDOC = re.compile(r"<<-?[ \t]*+[\"']?([\w-]++)[^\n]*+")
# As git writes them: seven of one mark at the beginning of a line, then a blank or its end.
CONFLICT = re.compile(r"(?:<{7}|>{7}|={7}|\|{7})(?=[ \r\n]|\Z)")
