"""Hostile names, values and messages in every place of a plan, through every renderer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kafkaform.core.canonical import dumps
from kafkaform.core.change import Action, Outcome, OutcomeStatus
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.render import stream
from kafkaform.render.diagnostics import render_diagnostics
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.report import make_apply_report, render_apply_summary
from kafkaform.render.review.comment import LIMIT, render_markdown
from kafkaform.render.terraform import to_json

from ...kit.quick import examples
from .hostile import HOSTILE, diagnostic, hostile

OWN_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
PARSER = MarkdownIt("commonmark").enable("table")
OWN_HTML = re.compile(r"<details><summary>(<code>[^<>]*</code>|[^<>]*)</summary>|</details>")
ANY = (
    st.text(max_size=40) | st.text(alphabet="`|<>@#\\[]()!*_~&:/\n \x1bw.1a", max_size=40)
).filter(lambda text: text.strip() != "")


def texts(text: str, colour: bool = False) -> Iterator[str]:
    """Everything that goes to a terminal."""
    subject = hostile(text)
    fault = Fault(text, text, FaultClass.DEFINITE, text, text)
    outcome = Outcome(text, OutcomeStatus.FAILED, fault, text)
    yield render_plan_text(subject, colour=colour)
    yield render_plan_text(subject, colour=colour, detail="concise")
    yield render_diagnostics([diagnostic(text)] * 2, colour)
    report = make_apply_report([(one, outcome) for one in subject.changes], text, "kafkaform apply")
    yield render_apply_summary(report, colour=colour)


def assert_harmless(shown: str) -> None:
    for line in shown.split("\n"):
        assert line.replace("\u200d", "").isprintable()
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##\w*\[", line)
    shown.encode("utf-8")


@pytest.mark.parametrize("text", HOSTILE)
def test_terminals_show_it_and_obey_nothing(text: str) -> None:
    """No control byte, forged line or log command survives in any text."""
    for shown in texts(text):
        assert_harmless(shown)


@pytest.mark.parametrize("text", HOSTILE)
def test_colours_are_only_our_own(text: str) -> None:
    """With colour on, the only escapes are complete SGR sequences, and all are closed."""
    for shown in texts(text, colour=True):
        assert_harmless(OWN_COLOURS.sub("", shown))
        assert shown.count("\x1b[0m") * 2 == shown.count("\x1b")


@given(ANY)
@settings(max_examples=examples(60), deadline=None)
def test_any_text_is_harmless_on_terminals(text: str) -> None:
    """The same for texts that nobody thought of."""
    for shown in texts(text):
        assert_harmless(shown)


def structure(tokens: list[Token]) -> list[str]:
    """The shape of a document without its text."""
    shape = []
    for token in tokens:
        shape.append(token.type if token.type != "fence" else f"fence {token.info}")
        shape += structure(token.children or [])
    return [kind for kind in shape if kind != "text"]


PLAIN = structure(PARSER.parse(render_markdown(hostile("plain"))))


def assert_only_text(text: str) -> None:
    comment = render_markdown(hostile(text))
    assert_harmless(comment)
    tokens = PARSER.parse(comment)
    assert structure(tokens) == PLAIN
    for token in tokens:
        if token.type == "html_block":
            for line in token.content.splitlines():
                assert OWN_HTML.fullmatch(line)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_has_the_same_structure_whatever_the_names(text: str) -> None:
    """Fences, tables and details cannot be broken: hostile text is only ever text."""
    assert_only_text(text)


@given(ANY)
@settings(max_examples=examples(60), deadline=None)
def test_any_text_stays_text_in_a_comment(text: str) -> None:
    """The same for texts that nobody thought of."""
    assert_only_text(text)


def test_a_comment_mentions_nobody() -> None:
    """Outside code, mentions, issue numbers and addresses are broken up."""
    for token in PARSER.parse(render_markdown(hostile("@team closes #123 www.evil.example"))):
        for child in token.children or []:
            if child.type == "text":
                assert "@team" not in child.content and "#123" not in child.content


def test_names_are_not_templates() -> None:
    """A template expression in a name is printed, not evaluated."""
    assert "{{ 7 * 7 }}" in render_markdown(hostile("{{ 7 * 7 }}"))


@pytest.mark.parametrize("text", HOSTILE)
def test_json_lines_stay_lines(text: str) -> None:
    """Each event is one line of ASCII and comes back as it went in."""
    for event in stream.list_plan_events(hostile(text)):
        line = dumps(event)
        assert line.isascii() and line.isprintable()
        assert json.loads(line)["@message"].isprintable()


def test_json_keeps_names_exactly() -> None:
    """Machines get the very name, not its visible form."""
    for text in HOSTILE:
        data = json.loads(dumps(to_json(hostile(text))))
        assert data["resource_changes"][0]["kafkaform"]["key"] == text


def test_a_huge_name_cannot_overflow_a_comment() -> None:
    """Long names are cut in a comment, which stays under its limit."""
    for text in ("`" * 5_000, "@" * 5_000, "<" * 5_000):
        assert len(render_markdown(hostile(text))) <= LIMIT


def test_the_hostile_plan_covers_every_action() -> None:
    """The fixture would not hide a renderer's branch."""
    actions = {one.action for one in hostile("x").changes}
    assert {Action.CREATE, Action.UPDATE, Action.DELETE, Action.NOOP} <= actions
