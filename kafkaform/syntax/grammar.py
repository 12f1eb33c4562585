"""The rules of hcl2's grammar, corrected, as an LALR parser that takes our tokens.

Only the rules are taken from hcl2; its terminals are replaced by `tokens.scan`, which knows where
newlines count, where templates begin and end, and needs linear time for any text. So every
`new_line_or_comment?` inside expressions goes, and what HCL forbids but hcl2 lets pass is
forbidden here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from lark import Lark
from lark.lexer import Lexer, Token

from ..core.errors import KafkaformError
from . import builder

GRAMMAR_SHA256 = "856e0a0a416400a68630c3a7bb2af92592394c992eb0e728f3b930c27a73aa78"

STARTS = ("body", "expression_only", "template")

_TERMINALS = (
    "NL_OR_COMMENT IF IN FOR ELSE ENDIF ENDFOR NULL TRUE FALSE NAME STRING_CHARS INT_LITERAL"
    " FLOAT_LITERAL DOUBLE_EQ NEQ LT GT LEQ GEQ MINUS ASTERISK SLASH PERCENT DOUBLE_AMP"
    " DOUBLE_PIPE PLUS NOT QMARK LPAR RPAR LBRACE RBRACE LSQB RSQB COMMA DOT EQ COLON DBLQUOTE"
    " INTERP_START DIRECTIVE_START STRIP_MARKER ATTR_SPLAT FULL_SPLAT_START FOR_OBJECT_ARROW"
    " ELLIPSIS COLONS PLAIN_STRING HEREDOC_TEMPLATE HEREDOC_END"
)

_CORRECTIONS = (
    # Body: a newline ends every item; a block on one line holds one attribute at most.
    (
        "start : body\n",
        "template : string_part*\nexpression_only : expression\n",
    ),
    (
        "body : (new_line_or_comment? (attribute | block))* new_line_or_comment?",
        "body : ((attribute | block) NL_OR_COMMENT)*",
    ),
    (
        "block : _attribute_name (_attribute_name | string)* new_line_or_comment? LBRACE body"
        " RBRACE",
        "block : _attribute_name (_attribute_name | string)* LBRACE (NL_OR_COMMENT body"
        " | attribute?) RBRACE",
    ),
    ("new_line_or_comment: ( NL_OR_COMMENT )+\n", ""),
    # Words: the scanner says where for, else, endif, endfor are keywords.
    (
        "_attribute_name : identifier | keyword | literal_value",
        "_attribute_name : identifier | literal_value",
    ),
    ("identifier : NAME\n", "identifier : NAME | IN | IF\n"),
    ("keyword: IN | FOR | IF | FOR_EACH | ELSE | ENDIF | ENDFOR\n", ""),
    ("object_elem_key : expression | keyword", "object_elem_key : expression"),
    # Templates: heredocs have parts too; interpolations can trim.
    ("           | ESCAPED_INTERPOLATION\n           | ESCAPED_DIRECTIVE\n", ""),
    (
        "interpolation: INTERP_START expression RBRACE",
        "interpolation: INTERP_START STRIP_MARKER? expression STRIP_MARKER? RBRACE",
    ),
    (
        "heredoc_template : HEREDOC_TEMPLATE\n",
        "heredoc_template : HEREDOC_TEMPLATE string_part* HEREDOC_END\n",
    ),
    ("heredoc_template_trim : HEREDOC_TEMPLATE_TRIM\n", ""),
    ("            | heredoc_template_trim\n", ""),
    (
        "string: DBLQUOTE string_part* DBLQUOTE",
        "string: PLAIN_STRING | DBLQUOTE string_part* DBLQUOTE",
    ),
    ("string_part: STRING_CHARS", "?string_part: STRING_CHARS"),
    ("            | template_string\n", ""),
    ("template_string : TEMPLATE_STRING\n", ""),
    # Expressions: unary operators nest; the builder folds a splat's steps and, for speed,
    # knows the precedence of operators.
    ("?expression : or_expr QMARK", "?expression : operation QMARK"),
    ("            | or_expr\n", "            | operation\n"),
    ("!unary_op : (MINUS | NOT) expr_term", "!unary_op : (MINUS | NOT) unary_expr"),
    ("attr_splat : ATTR_SPLAT (get_attr | index)*", "attr_splat : ATTR_SPLAT"),
    ("full_splat : FULL_SPLAT_START (get_attr | index)*", "full_splat : FULL_SPLAT_START"),
    (
        "identifier (COLONS identifier COLONS identifier)? LPAR",
        "identifier (COLONS identifier)* LPAR",
    ),
    (
        "object : LBRACE new_line_or_comment? ((object_elem | (object_elem new_line_or_comment?"
        " COMMA)) new_line_or_comment?)* RBRACE",
        "object : LBRACE NL_OR_COMMENT? (object_elem (_separator object_elem)* _separator?)?"
        " RBRACE\n_separator : COMMA NL_OR_COMMENT? | NL_OR_COMMENT",
    ),
)


_LADDER = re.compile(r"// Operator precedence ladder.*?(?=// Unary)", re.DOTALL)
_OPERATION = """
?operation : unary_expr (_operator unary_expr)*
_operator : DOUBLE_PIPE | DOUBLE_AMP | DOUBLE_EQ | NEQ | LT | GT | LEQ | GEQ
          | PLUS | MINUS | ASTERISK | SLASH | PERCENT

"""


class _OwnTokens(Lexer):
    """Tells Lark to build no lexer: tokens are fed one by one."""

    def __init__(self, conf: object) -> None:
        """Lark calls this with terminals that nobody needs."""

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Token]:
        return iter(())


@cache
def parser() -> Lark:
    """The parser with starts STARTS; built once per process in about 0.15 s, and never read
    from a cache file, since such a file would be code that somebody else could replace.

    Raises KafkaformError when the installed grammar is not the one that was corrected.
    """
    return Lark(
        _corrected(_stock()),
        parser="lalr",
        lexer=_OwnTokens,
        start=list(STARTS),
        transformer=builder.RULES,
        keep_all_tokens=True,
        maybe_placeholders=False,
        propagate_positions=False,
    )


def _stock() -> str:
    found = find_spec("hcl2")
    if found is None or found.origin is None:
        raise KafkaformError(
            "The package python-hcl2 is not installed.", "Install kafkaform again."
        )
    content = Path(found.origin).with_name("hcl2.lark").read_bytes()
    if sha256(content).hexdigest() != GRAMMAR_SHA256:
        raise KafkaformError(
            "The installed python-hcl2 has another grammar than version 8.1.4.",
            "Install python-hcl2==8.1.4.",
        )
    return content.decode()


def _corrected(stock: str) -> str:
    rules = stock[stock.index(_CORRECTIONS[0][0]) :]
    for old, new in _CORRECTIONS:
        before, found, after = rules.partition(old)
        assert found, old
        rules = before + new + after
    rules = _LADDER.sub(_OPERATION, rules)
    rules = re.sub(r" *new_line_or_comment\?", "", rules)
    return f"%declare {_TERMINALS}\n{rules}"
