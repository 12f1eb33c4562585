"""The parser's tables from the rules of hcl2's grammar: `python -m tests.unit.syntax.compile`.

Only the rules are taken from hcl2; its terminals are replaced by `kafkaform.syntax.scan`, which
knows where newlines count, where templates begin and end, and needs linear time for any text. So
every `new_line_or_comment?` inside expressions goes, and what HCL forbids but hcl2 lets pass is
forbidden here. A name behind `->`, or of a rule without `?` or `_`, is a function of
`kafkaform.syntax.parse`; other rules hand on their parts as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lark import Lark
from lark.lexer import Lexer, Token

import kafkaform.syntax

TABLES = Path(kafkaform.syntax.__file__).with_name("tables.json")
GRAMMAR_SHA256 = "856e0a0a416400a68630c3a7bb2af92592394c992eb0e728f3b930c27a73aa78"
"""Of python-hcl2 8.1.4's hcl2.lark; the corrections below might not fit another one."""

STARTS = ("body", "expression_only", "template")

_TERMINALS = (
    "NL_OR_COMMENT IF IN FOR ELSE ENDIF ENDFOR NULL TRUE FALSE NAME STRING_CHARS INT_LITERAL"
    " FLOAT_LITERAL DOUBLE_EQ NEQ LT GT LEQ GEQ MINUS ASTERISK SLASH PERCENT DOUBLE_AMP"
    " DOUBLE_PIPE PLUS NOT QMARK LPAR RPAR LBRACE RBRACE LSQB RSQB COMMA DOT EQ COLON DBLQUOTE"
    " INTERP_START DIRECTIVE_START STRIP_MARKER ATTR_SPLAT FULL_SPLAT_START FOR_OBJECT_ARROW"
    " ELLIPSIS COLONS PLAIN_STRING HEREDOC_TEMPLATE HEREDOC_END FLAT_OBJECT"
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
    ("identifier : NAME\n", "?identifier : NAME | IN | IF\n"),
    ("keyword: IN | FOR | IF | FOR_EACH | ELSE | ENDIF | ENDFOR\n", ""),
    ("literal_value: TRUE", "?literal_value: TRUE"),
    ("object_elem_key : expression | keyword", "?object_elem_key : expression"),
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
        "?string: PLAIN_STRING -> plain_string | DBLQUOTE string_part* DBLQUOTE -> quoted_string",
    ),
    ("string_part: STRING_CHARS", "?string_part: STRING_CHARS"),
    ("            | template_string\n", ""),
    ("template_string : TEMPLATE_STRING\n", ""),
    # Expressions: unary operators nest; the builder knows what a splat takes in, and
    # the precedence of operators: tables with fewer steps are faster.
    ("?expression : or_expr QMARK", "?expression : operation QMARK"),
    ("            | or_expr\n", "            | operation\n"),
    ("!unary_op : (MINUS | NOT) expr_term", "!unary_op : (MINUS | NOT) unary_expr"),
    (
        "expr_term : LPAR new_line_or_comment? expression new_line_or_comment? RPAR",
        "?expr_term : LPAR expression RPAR -> parentheses",
    ),
    (
        "            | identifier\n            | literal_value\n",
        "            | identifier -> root\n            | literal_value -> constant\n"
        "            | FLAT_OBJECT -> flat_object\n",
    ),
    (
        "            | index_expr_term\n            | get_attr_expr_term\n"
        "            | attr_splat_expr_term\n            | full_splat_expr_term\n",
        "            | expr_term LSQB expression RSQB -> index\n"
        "            | expr_term DOT INT_LITERAL -> legacy_index\n"
        "            | expr_term DOT (identifier | literal_value) -> get_attr\n"
        "            | expr_term ATTR_SPLAT -> attr_splat\n"
        "            | expr_term FULL_SPLAT_START -> full_splat\n",
    ),
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
_STEPS = re.compile(r"// Indexing and attribute access.*?(?=// For expressions)", re.DOTALL)
_OPERATION = """
?operation : unary_expr (_operator unary_expr)*
_operator : DOUBLE_PIPE | DOUBLE_AMP | DOUBLE_EQ | NEQ | LT | GT | LEQ | GEQ
          | PLUS | MINUS | ASTERISK | SLASH | PERCENT

"""


def tables() -> str:
    """The content of TABLES, the same in every run."""
    stock = _stock()
    rules = _corrected(stock)
    table = _lalr(rules)
    numbers = _numbers(table)
    kinds = sorted({rule for row in table.states.values() for rule in _reduced(row)}, key=str)
    rows = {
        state: {
            symbol: numbers[to] if str(action) == "Shift" else ~kinds.index(to)
            for symbol, (action, to) in sorted(row.items())
        }
        for state, row in table.states.items()
    }
    for state in table.end_states.values():
        rows[state] = {"$END": numbers[state]}
    parts = {
        "grammar": sha256(stock.encode()).hexdigest(),
        "corrected": sha256(rules.encode()).hexdigest(),
        "starts": {start: numbers[table.start_states[start]] for start in STARTS},
        "rules": [[rule.origin.name, len(rule.expansion), _function(rule)] for rule in kinds],
        "states": [rows[state] for state in numbers],
    }
    return "{\n" + ",\n".join(f"{_json(key)}: {_lines(parts[key])}" for key in parts) + "\n}\n"


def _stock() -> str:
    found = find_spec("hcl2")
    assert found is not None and found.origin is not None
    content = Path(found.origin).with_name("hcl2.lark").read_bytes()
    assert sha256(content).hexdigest() == GRAMMAR_SHA256, "this is not the grammar of 8.1.4"
    return content.decode()


def _corrected(stock: str) -> str:
    rules = stock[stock.index(_CORRECTIONS[0][0]) :]
    for old, new in _CORRECTIONS:
        before, found, after = rules.partition(old)
        assert found, old
        rules = before + new + after
    rules = _STEPS.sub("", _LADDER.sub(_OPERATION, rules))
    rules = re.sub(r" *new_line_or_comment\?", "", rules)
    return f"%declare {_TERMINALS}\n{rules}"


class _NoLexer(Lexer):
    """Tells Lark to build no lexer: the terminals are only names here."""

    def __init__(self, conf: object) -> None:
        """Lark calls this with terminals that nobody needs."""

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Token]:
        return iter(())


def _lalr(rules: str) -> Any:
    """states: number -> symbol -> (Shift, number) or (Reduce, rule); start_states; end_states."""
    made = Lark(
        rules,
        parser="lalr",
        lexer=_NoLexer,
        start=list(STARTS),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    return made.parser.parser._parse_table


def _numbers(table: Any) -> Mapping[int, int]:
    """Own numbers of the states, which do not depend on the order of sets: by the shortest way
    from a start, symbols in alphabetical order; in that order."""
    order = dict.fromkeys(table.start_states[start] for start in STARTS)
    waiting = list(order)
    for state in waiting:
        row = table.states[state]
        followed = [row[symbol][1] for symbol in sorted(row) if str(row[symbol][0]) == "Shift"]
        waiting.extend(to for to in dict.fromkeys(followed) if to not in order)
        order.update(dict.fromkeys(followed))
    return {state: number for number, state in enumerate(order)}


def _reduced(row: Mapping[str, Any]) -> list[Any]:
    return [rule for action, rule in row.values() if str(action) == "Reduce"]


def _function(rule: Any) -> str | None:
    """The builder's function for a rule; None where the parts stay as they are."""
    name: str = rule.alias or rule.origin.name
    single = len(rule.expansion) == 1 and not rule.expansion[0].name.startswith("_")
    if name.startswith("_") or (rule.options.expand1 and not rule.alias and single):
        return None
    return name


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _lines(value: object) -> str:
    """A list with a line for each element, so that a changed rule is a small difference."""
    if not isinstance(value, list):
        return _json(value)
    return "[\n" + ",\n".join(map(_json, value)) + "\n]"


if __name__ == "__main__":
    TABLES.write_text(tables(), "utf-8")
