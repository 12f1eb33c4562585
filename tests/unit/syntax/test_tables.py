"""The parser's tables are what the grammar says, and all that a command needs of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kafkaform.syntax.parse import RULES

from . import compile


def test_tables_are_those_of_the_grammar() -> None:
    """Made again from hcl2's grammar and the corrections, the tables are the same to the byte."""
    assert compile.tables() == compile.TABLES.read_text("utf-8")


def test_another_grammar_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made of the pinned grammar only, since the corrections might not fit another."""
    monkeypatch.setattr(compile, "GRAMMAR_SHA256", "0" * 64)
    with pytest.raises(AssertionError, match="not the grammar"):
        compile.tables()


def test_every_rule_has_its_function() -> None:
    """The names in the tables are those of the builder's functions, all of them."""
    named = {make for _, _, make in json.loads(compile.TABLES.read_text("utf-8"))["rules"]}
    assert named - {None} == set(RULES)


def test_no_grammar_is_built_when_a_text_is_parsed() -> None:
    """Neither hcl2 nor lark is loaded to parse, or to say what is wrong."""
    script = """\
import sys
from kafkaform.syntax.parse import parse
assert parse('a = [1, "${b}"]\\n', "t")[1] == () and parse("a = [1 2]\\n", "t")[1]
assert not {"lark", "hcl2"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
