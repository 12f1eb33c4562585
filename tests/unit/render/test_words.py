"""Messages speak the language of the provider that they are about."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafkaform.apply.obligations import describe_work
from kafkaform.apply.report import Report, Work
from kafkaform.core.change import Action, Evidence, Outcome, OutcomeStatus
from kafkaform.core.resource import SETTING, TASK, Facts, Identity, Pending
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import NEUTRAL, Vocabulary, Words, shared
from kafkaform.plan.model import PlanInstance, Removal
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.report import make_apply_report, render_apply_summary
from kafkaform.render.review.comment import render_markdown
from kafkaform.render.stream import list_plan_events
from kafkaform_kafka.resource_kinds import WORDS as KAFKA

from .plans import change, frozen, plan

CONNECT = Words(
    "group", "worker", "url", "restart", "restart of it", "restarting", "pause", "paused"
)
KAFKAS_OWN = re.compile(r"broker|cluster|bootstrap|throttle|replica|partition|\bmov(e|ing)\b")
IT = Identity("connect", "connect_connector", "jdbc")
MADE = change(
    "connect_connector.x",
    "x",
    Action.CREATE,
    ("Put", Evidence.REMOTE),
    instance="connect",
    after=frozen(name="x"),
)


def texts(words: Vocabulary) -> list[str]:
    """All forms of a plan that shows whatever the words are for."""
    shown = plan(
        MADE,
        instances={"connect": PlanInstance(Facts("id-1"), frozen(url="http://h"))},
        pending=(
            Pending(IT, "R", "t", TASK, FrozenMap(), 0.0),
            Pending(IT, "R", "t", SETTING, FrozenMap(), 0.0),
        ),
        removals=(Removal(IT, "connect_connector.jdbc", "R", "t"),),
    )
    report = make_apply_report(
        [(MADE, Outcome("x", OutcomeStatus.STARTED, ticket="t"))], words=words
    )
    events = [event["@message"] for event in list_plan_events(shown, words)]
    return [
        render_plan_text(shown, words=words),
        render_markdown(shown, words=words),
        *events,
        render_apply_summary(report),
    ]


@pytest.mark.parametrize("words", [{}, {"connect": CONNECT}], ids=["neutral", "its own"])
def test_no_word_of_kafkas_is_said_of_another_system(words: Vocabulary) -> None:
    """A renderer that knows such a word would say it here."""
    for text in texts(words):
        assert not KAFKAS_OWN.search(text), text


def test_a_plan_is_told_in_the_words_of_its_provider() -> None:
    """Each word stands where it is meant to stand."""
    seen, *_ = texts({"connect": CONNECT})
    for part in (
        "Group connect: id-1 at http://h",
        "restart connect_connector jdbc (connect): restarting since run R",
        "pause connect_connector jdbc (connect): paused since run R",
        "Pauses to remove once their restarts have ended (1)",
        "the pause that run R set for the restart of it (t)",
        "the worker will check",
        "1 pause to remove.",
    ):
        assert part in seen


@pytest.mark.parametrize(
    ("what", "due", "sentence"),
    [
        (TASK, False, "x: the restart of it that run R started is still running."),
        (
            SETTING,
            False,
            "x: the pause of its restart that run R set stays until the restart has ended.",
        ),
        (
            SETTING,
            True,
            "x: the pause of its restart that run R set is still set, although its restart has "
            "ended: the next plan lists its removal.",
        ),
    ],
)
def test_long_work_of_another_provider_is_no_move(what: str, due: bool, sentence: str) -> None:
    """A slow connector is told as what it is."""
    body = {"address": "x", "what": what}
    record = cast(Any, SimpleNamespace(body=body, run="R"))
    assert (
        describe_work(Work(record, Outcome("t", OutcomeStatus.STARTED), due, CONNECT)) == sentence
    )


def test_the_error_names_what_was_not_removed() -> None:
    """Also where two providers are concerned, in words that are true of both."""
    unknown = Outcome("t", OutcomeStatus.UNKNOWN)
    both = tuple(Work(cast(Any, None), unknown, False, words) for words in (CONNECT, KAFKA))
    for work, name in ((both[:1], "pause"), (both[1:], "throttle"), (both, "setting")):
        error = Report(work=work).make_error()
        assert error is not None and error.message == f"a {name} was not removed"


def test_different_words_make_neutral_ones() -> None:
    """A heading over objects of two providers takes the side of neither."""
    assert shared([KAFKA, KAFKA]) is KAFKA
    assert shared([KAFKA, CONNECT]) == shared([]) == NEUTRAL
