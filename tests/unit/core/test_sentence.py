"""Clauses become sentences, and what somebody has to type stays as it is."""

from __future__ import annotations

import pytest

from kafkaform.core.finding import Harm, Level
from kafkaform.core.rule import Needs, Rule
from kafkaform.core.text import make_sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ""),
        ("write 5", "Write 5."),
        ("Write 5.", "Write 5."),
        ("did you mean x?", "Did you mean x?"),
        ("x, or y", "X, or y."),
        ("retention.ms has to be set", "retention.ms has to be set."),
        ("max_age: lower it", "max_age: lower it."),
        ("user=* is the default", "user=* is the default."),
        ("`kafkaform plan` shows it", "`kafkaform plan` shows it."),
        ("kafkaform plan shows it", "kafkaform plan shows it."),
        ("--exclude leaves it out", "--exclude leaves it out."),
        ("3 brokers are needed", "3 brokers are needed."),
        (ValueError("a number is expected"), "A number is expected."),
    ],
)
def test_a_clause_becomes_a_sentence(text: object, sentence: str) -> None:
    """A plain word begins with a capital letter, and the end is a stop or a question mark."""
    assert make_sentence(text) == sentence


def test_what_a_rule_advises_is_a_sentence() -> None:
    """Whoever wrote it, in the row or for one finding."""
    rule = Rule("x-y", "X", Level.CAUTION, Harm.NONE, (), Needs.BLOCK, "Why.", "x {}", "lower it")
    assert rule.fix == "Lower it." and rule.find("it is high").fix == "Lower it."
    assert rule.find("it is high", fix="raise max.age").fix == "Raise max.age."
    assert rule.find("it is high", fix="").fix == ""
