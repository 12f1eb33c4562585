"""The plans of many folders: the summary, and one comment that fits the limit of a forge."""

from __future__ import annotations

import re

import pytest

from kafkaform.plan.model import Plan
from kafkaform.render.folders import (
    FolderReview,
    FoldersSummary,
    make_folders_data,
    render_folder_plans,
    summarise_folders,
)
from kafkaform.render.review.comment import LIMIT
from kafkaform.render.review.folders_comment import render_folders_markdown
from kafkaform.render.review.html_page import render_folders_html
from kafkaform_kafka.resource_kinds import WORDS as KAFKA

from . import hostile, plans
from .test_hostile import PARSER, assert_harmless, structure

COMMAND = "kafkaform apply --all --expect 1234"
WORDS = {"kafka": KAFKA}


def summarise(*reviews: FolderReview) -> FoldersSummary:
    return summarise_folders("acme", 70, reviews, "1234")


def review(path: str, plan: Plan | None = None, **more: str) -> FolderReview:
    return FolderReview(f"teams/{path}", path, plan, WORDS, **more)


SUMMARY = summarise(
    review("billing", fault="no broker answered"),
    review("idle", plans.unchanged()),
    review("shop", plans.plan(plans.GRAVE[0])),
    review("web", plans.plan(*plans.everything().changes[:3])),
    review("zoo", skipped="teams/billing failed"),
)


def test_what_failed_comes_first() -> None:
    """Then the table, the plans under the paths of their folders, and the sums."""
    lines = render_folder_plans(SUMMARY).splitlines()
    assert lines[:3] == [
        "1 of 5 folders of acme cannot be planned",
        "  ! teams/billing: no broker answered",
        "  teams/zoo is skipped: teams/billing failed",
    ]
    assert lines[4].split() == ["folder", "owner", "create", "change", "destroy", "dangers"]
    heads = [line for line in lines if line.startswith("── ")]
    assert [head.split()[1] for head in heads] == ["teams/shop", "teams/web"]
    assert lines[-3] == "1 folder has no changes."
    assert lines[-1] == "Approval: 1234"
    assert "Approval" not in render_folder_plans(SUMMARY, approval=False)


def test_the_counts_of_programs_are_those_of_people() -> None:
    """The data has every folder, also those that people need not read about."""
    data = make_folders_data(SUMMARY)
    assert [item["folder"] for item in data["folders"]] == [
        *("teams/billing", "teams/idle", "teams/shop", "teams/web", "teams/zoo")
    ]
    assert (data["failed"], data["approval"]) == (1, "1234")
    assert data["dangers"] == sum(row.dangers for row in SUMMARY.rows) > 0
    assert data["folders"][4]["skipped"] == "teams/billing failed"


def test_a_comment_begins_with_the_folders_and_their_dangers() -> None:
    """A link leads to each section; no section says how it is applied alone."""
    text = render_folders_markdown(SUMMARY, command=COMMAND)
    assert text.startswith("## kafkaform plan of 2 folders of `acme`: ")
    links = re.findall(r"\[`(teams/\w+)`\]\(#user-content-(folder-\d+)\)", text)
    assert {path for path, _ in links} == {"teams/shop", "teams/web"}
    for _, anchor in links:
        assert text.count(f'<a id="{anchor}"></a>') == 1
    order = [
        text.index(part)
        for part in (
            "**`teams/billing` failed**",
            "| Folder | Owner |",
            "**Dangers (1)**",
            "| Folder | Danger |",
            COMMAND,
            "### `teams/shop`: ",
            "### `teams/web`: ",
        )
    ]
    assert order == sorted(order)
    assert text.count("To apply exactly") == 1 and "--expect" not in text.split(COMMAND)[1]
    assert "shortened" not in text


def test_a_folder_of_which_only_outputs_change_says_so() -> None:
    """Its row would look as if nothing happened."""
    outputs = plans.plan(outputs=plans.everything().outputs)
    text = render_folders_markdown(summarise(review("a", outputs)), command=COMMAND)
    (row,) = [line for line in text.splitlines() if line.startswith("| [`teams/a`]")]
    assert row.endswith("| · | · | · | · | 4 outputs |")


def test_a_comment_says_what_is_not_applied() -> None:
    """In its title, in the table of folders, whose first rows are about that, in a table of what is
    blocked, and where it says how to apply the rest."""
    small = plans.plan(*plans.everything().changes[:3])
    blocked = plans.plan(plans.IMPOSSIBLE, plans.GRAVE[0])
    reviews = [review("a", small), FolderReview("teams/b", "b", blocked, WORDS, withheld=True)]
    summary = summarise(*reviews, review("c", fault="no broker answered"))
    text = render_folders_markdown(summary, command=COMMAND)
    title, *lines = text.splitlines()
    assert re.search(r" to destroy, \d+ blocked, 1 folder not planned$", title)
    rows = [line for line in lines if line.startswith("| [`teams/")]
    assert rows[0].startswith("| [`teams/b`]") and "**not applied: " in rows[0]
    assert any(line.startswith("| [`teams/b`]") for line in rows[2:])
    assert text.index("**Blocked (") < text.index("**Dangers (") < text.index("To apply")
    assert "To apply exactly these plans, and nothing of `teams/b`:" in lines


@pytest.mark.parametrize("count", [5, 60, 600])
def test_a_comment_fits(count: int) -> None:
    """What is left out is counted in the first line: sections without dangers first."""
    grave = [review(f"a{n:03}", plans.plan(plans.GRAVE[0])) for n in range(2)]
    large = [review(f"b{n:03}", plans.large(300)) for n in range(count // 5)]
    small = [
        review(f"c{n:03}", plans.plan(*plans.everything().changes[:3]))
        for n in range(count - len(large) - 2)
    ]
    text = render_folders_markdown(summarise(*grave, *large, *small), command=COMMAND)
    assert len(text) <= LIMIT
    first = text.splitlines()[0]
    assert first.startswith("**This comment is shortened.**") == ("kafkaform plan of" not in first)
    sections = re.findall(r"^### `(teams/\w+)`: ", text, re.M)
    missing = re.search(r"It has no section for (\d+) folder", first)
    assert len(sections) + (int(missing[1]) if missing else 0) == count
    assert {"teams/a000", "teams/a001"} <= set(sections)
    if count == 600:
        assert missing, first
        named = render_folders_markdown(summarise(*grave, *large, *small), whole="plan.html")
        assert "All plans are in `plan.html`." in named.splitlines()[0]


def summarise_hostile(text: str) -> FoldersSummary:
    own = FolderReview("teams/a", text, hostile.hostile(text), WORDS)
    return summarise(own, review("b", fault=text), review("c", skipped=text))


@pytest.mark.parametrize("text", hostile.HOSTILE)
def test_foreign_text_stays_text(text: str) -> None:
    """Names, reasons and owners neither break a table nor forge a line."""
    comment = render_folders_markdown(summarise_hostile(text), command=COMMAND)
    assert_harmless(comment)
    plain = render_folders_markdown(summarise_hostile("plain"), command=COMMAND)
    assert structure(PARSER.parse(comment)) == structure(PARSER.parse(plain))
    assert_harmless(render_folder_plans(summarise_hostile(text)))


def test_a_page_has_a_part_for_each_folder() -> None:
    """A table leads to them, one search covers all of them, and no two anchors are equal."""
    text = render_folders_html(SUMMARY, command=COMMAND)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="#([^"]+)"', text)
    assert links and set(links) <= set(ids)
    assert text.count('<section class="folder"') == 2 and text.count('id="tools"') == 1
    assert "<code>teams/billing</code> failed: no broker answered" in text
    assert COMMAND in text and "--expect" not in text.replace(COMMAND, "")
    assert render_folders_html(SUMMARY, command=COMMAND) == text


@pytest.mark.parametrize("text", hostile.HOSTILE)
def test_foreign_text_stays_text_on_a_page(text: str) -> None:
    """The page has no other elements than with plain words, and one script."""
    pages = [render_folders_html(summarise_hostile(word), command="c") for word in (text, "plain")]
    tags = [set(re.findall(r"</?[a-z0-9]+(?=[ >])", page)) for page in pages]
    assert tags[0] == tags[1]
    assert pages[0].count("<script") == 1
