"""Faults as annotations, as a report and as a comment: foreign texts in them stay texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import diagnostics

from ...kit.pipelines.github import find_commands
from ...kit.quick import examples

HOSTILE = (
    "::error::x\n::add-mask::y",
    "a\r::warning::x",
    "%0A::error::x",
    "##[error]x",
    "a,line=7::x",
    "\x1b[31m\u202e\u2028::error::x",
    "`$(id)`",
    "-->\n```\n<script>",
)


def make_event(text: str) -> dict[str, Any]:
    """An error of `plan --json` that consists of one text."""
    place = {"filename": text, "start": {"line": 3}}
    data = {"severity": "error", "summary": text, "detail": text, "advice": text, "range": place}
    return {"type": "diagnostic", "diagnostic": data}


def annotate(text: str) -> tuple[str, dict[str, str], str]:
    """The only command that GitHub finds in the annotation of a fault with this text."""
    (found,) = diagnostics.read_diagnostics([make_event(text)], "kafka")
    command = diagnostics.render_command(found, "kafkaform: kafka")
    assert "\n" not in command and "\r" not in command and command.isprintable()
    (only,) = find_commands(command)
    return only


@pytest.mark.parametrize("text", HOSTILE)
def test_an_annotation_is_one_command(text: str) -> None:
    """Whatever a fault says, GitHub finds one command, on one line, with our properties."""
    name, properties, data = annotate(text)
    assert name == "error" and properties.keys() == {"title", "file", "line"}
    assert properties["line"] == "3" and properties["title"] == "kafkaform: kafka"
    assert "x" in data or "id" in data or "script" in data


@given(text=st.text(min_size=1, max_size=60))
@settings(max_examples=examples(300))
def test_no_text_ends_its_command(text: str) -> None:
    """The same for texts that nobody thought of."""
    name, properties, _ = annotate(text)
    assert name == "error" and properties.keys() == {"title", "file", "line"}


def test_an_annotation_names_the_place_in_the_repository() -> None:
    """The file is relative to the top of the repository, as GitHub needs it; errors come before
    warnings; a fault without a place has none."""
    warning = {"severity": "warning", "summary": "w", "detail": ""}
    events = [{"type": "version"}, {"type": "diagnostic", "diagnostic": warning}, make_event("m/a")]
    found = diagnostics.read_diagnostics(events, "./infra")
    assert [one.place for one in found] == ["infra/m/a:3", ""]
    assert (
        diagnostics.render_command(found[1], "kafkaform: x") == "::warning title=kafkaform%3A x::w"
    )


def test_a_fault_of_another_repository_has_no_place_here() -> None:
    """The file of a module from Git is named in the text: an annotation could not show it."""
    file = "git::https://git.example/acme/kafka.git?ref=v1//topic/main.kf.hcl"
    (found,) = diagnostics.read_diagnostics([make_event(file)], "./infra")
    assert found.place == "" and found.detail.startswith(f"On {file}:3.\n")
    assert json.loads(diagnostics.render_code_quality([found], "kafkaform")) == []


@pytest.mark.parametrize("text", HOSTILE)
def test_the_comment_is_a_block_that_nothing_closes(text: str) -> None:
    """Without a plan, the comment has each fault as indented lines, which Markdown never reads as
    anything else."""
    found = diagnostics.read_diagnostics([make_event(text)], ".")
    lines = diagnostics.render_failure(found, "").split("\n")
    assert lines[3] == "" and all(line.startswith("    ") for line in lines[4:] if line)


def test_a_plan_that_says_nothing_refers_to_the_log() -> None:
    """A plan that was killed names no fault."""
    assert "The log of the job says why." in diagnostics.render_failure((), "")


def test_many_faults_fit_into_a_comment() -> None:
    """GitHub refuses longer comments, so the others are counted."""
    found = diagnostics.read_diagnostics([make_event(f"{n} {'x' * 900}") for n in range(100)], ".")
    text = diagnostics.render_failure(found, "kafka")
    assert len(text) < 61_000 and "more." in text.rstrip().splitlines()[-1]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_report_has_what_gitlab_needs(text: str) -> None:
    """Each fault with a place is an entry; faults without one are only in the log."""
    found = diagnostics.read_diagnostics([make_event(text), make_event("other")], ".")
    report = json.loads(diagnostics.render_code_quality(found, "kafkaform: kafka"))
    assert len({one["fingerprint"] for one in report}) == 2
    for one in report:
        assert one["severity"] == "major" and one["location"]["lines"] == {"begin": 3}
        assert one["description"].isprintable()


@pytest.mark.parametrize("label", HOSTILE)
def test_a_heading_names_the_pipeline(label: str) -> None:
    """Of several pipelines in one repository, each comment says whose it is, on one line."""
    heading = diagnostics.render_failure((), label).splitlines()[0]
    assert heading.startswith("## kafkaform `") and heading.endswith("`: no plan")


def test_faults_of_many_folders_with_one_cause_are_one() -> None:
    """A module that all of them use has its fault once; a cluster that is gone names the first of
    them."""
    gone = {"severity": "error", "summary": "no broker answered", "detail": "at prod:9092"}
    events = [
        {"type": "diagnostic", "folder": f"teams/t{n}", "diagnostic": data}
        for n in range(60)
        for data in (gone, make_event("modules/a/main.kf.hcl")["diagnostic"])
    ]
    placed, other = diagnostics.read_diagnostics(events, ".")
    assert placed.place == "modules/a/main.kf.hcl:3"
    named = "teams/t0, teams/t1, teams/t2, teams/t3, teams/t4 and 55 more"
    assert other.summary == f"{named}: no broker answered"
    (single,) = diagnostics.read_diagnostics(events[:1], ".")
    assert single.summary == "teams/t0: no broker answered"


def test_faults_of_many_objects_with_one_cause_are_one() -> None:
    """A cluster that is gone is one annotation and one entry of the comment, with a count."""
    events = [
        {
            "type": "diagnostic",
            "diagnostic": {
                "severity": "error",
                "summary": f"kafka_topic.t{n}: CreateTopics could not be checked in the dry run",
                "detail": "connection refused",
                "advice": "check the connection",
                "address": f"kafka_topic.t{n}",
            },
        }
        for n in range(1000)
    ]
    (fault,) = diagnostics.read_diagnostics(events, "kafka")
    assert fault.summary == "1,000 objects: CreateTopics could not be checked in the dry run"
    assert "kafka_topic.t4, … and 995 more" in fault.detail
    assert fault.detail.endswith("connection refused\ncheck the connection")
    (single,) = diagnostics.read_diagnostics(events[:1], "kafka")
    assert single.detail == "connection refused\ncheck the connection"
