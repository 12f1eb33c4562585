"""What a reader sees first of large plans, whose whole forms are cases: six dangers among 185
changes, one grant of everything among 600, one new rule among 60 edited ones, 62 equal cuts."""

from __future__ import annotations

import html
import json
import re
from functools import cache

import pytest

from kafkaform.core import canonical
from kafkaform.core.finding import Level
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import render_markdown
from kafkaform.render.review.html_page import render_html
from kafkaform.render.terraform import to_json

from ...test_cases import FOLDER, plan_of, workspace_of
from .plans import WORDS

DANGEROUS = {
    "kafka_topic.invoices": "billing.invoices",
    "kafka_topic.legacy": "shop.legacy",
    "kafka_topic.clicks": "search.clicks",
    "kafka_topic.scores": "fraud.scores",
    "kafka_acl.checkout": "Allow User:checkout Read",
    "kafka_acl.tool": "Allow User:tool All on the cluster",
}
"""Address -> name."""
FIRST_LINES = 25
NEW_RULE = ".*@PARTNER.EXAMPLE.COM"
OPEN_FIRST = "Open the whole plan first"


@cache
def make_plan(name: str) -> Plan:
    folder = FOLDER / name
    return plan_of(workspace_of(folder), folder)


def six() -> Plan:
    return make_plan("110-six-dangers-of-185-changes")


def grants() -> Plan:
    return make_plan("111-one-grant-of-everything-among-600")


def rules() -> Plan:
    return make_plan("112-one-new-rule-among-60-edited")


def cuts() -> Plan:
    return make_plan("113-one-cut-of-62-topics")


def read_page(plan: Plan) -> str:
    """The text of the page without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", "", render_html(plan, words=WORDS)))


@pytest.mark.parametrize("limit", [60_000, 12_000])
def test_all_six_dangers_are_in_the_first_lines_of_the_comment(limit: int) -> None:
    """Each by name and address, also in a comment that must be cut."""
    assert len(six().changes) == 185
    comment = render_markdown(six(), words=WORDS, limit=limit)
    first = "\n".join(comment.splitlines()[:FIRST_LINES])
    for address, name in DANGEROUS.items():
        assert address in first and name in first
    assert (comment.startswith("**This comment is shortened.**")) is (limit == 12_000)


@pytest.mark.parametrize("detail", ["grouped", "concise", "full"])
def test_the_text_begins_with_the_six_dangers(detail: str) -> None:
    """Before the access and before any list of changes."""
    text = render_plan_text(six(), words=WORDS, detail=detail)  # type: ignore[arg-type]
    first = " ".join(text.partition("\nAccess (")[0].split())
    assert all(address in first and name in first for address, name in DANGEROUS.items())


def test_the_page_begins_with_the_six_dangers() -> None:
    """Before its table of objects."""
    first = read_page(six()).partition("Objects")[0]
    assert all(address in first and name in first for address, name in DANGEROUS.items())


def test_programs_have_the_six_dangers() -> None:
    """And the rights that are lost and gained, as rows."""
    entries = json.loads(canonical.dumps(to_json(six())))["resource_changes"]
    dangerous = {
        finding["address"]: entry
        for entry in entries
        for finding in entry["kafkaform"]["findings"]
        if finding["level"] == Level.DANGER
    }
    assert dangerous.keys() == DANGEROUS.keys()
    (loss,) = dangerous["kafka_acl.checkout"]["kafkaform"]["losses"]
    assert (loss["principal"], loss["name"]) == ("User:checkout", "billing.invoices")
    gains = dangerous["kafka_acl.tool"]["kafkaform"]["gains"]
    assert ("User:tool", ["All"], "system") in [
        (row["principal"], row["operations"], row["breadth"]) for row in gains
    ]


def test_a_cut_comment_asks_to_open_the_plan_before_it_offers_the_command() -> None:
    """A whole comment does not."""
    comment = render_markdown(six(), words=WORDS, limit=12_000, whole="plan.html")
    assert f"{OPEN_FIRST}: `plan.html`" in comment
    assert comment.index(OPEN_FIRST) < comment.index("kafkaform apply --expect")
    without_file = render_markdown(six(), words=WORDS, limit=12_000)
    assert f"{OPEN_FIRST} (`kafkaform plan` with the same flags)" in without_file
    assert OPEN_FIRST not in render_markdown(six(), words=WORDS)


def test_the_comment_names_the_grant_of_everything_first() -> None:
    """Before 600 harmless ones, of each of which it also says who gains what."""
    comment = render_markdown(grants(), words=WORDS)
    first = comment.partition("reads[")[0]
    assert "Allow User:tool All on the cluster from any host (kafka_acl.tool)" in first
    assert "| `User:tool` | `All on the cluster; Create, Delete on every Topic` |  |" in first
    assert not comment.startswith("**This comment is shortened.**")
    for number in range(600):
        assert (
            f"| `User:app-{number:03}` | `Read, Describe on Topic orders-{number:03}` |" in comment
        )


def test_a_short_comment_keeps_the_grant_of_everything() -> None:
    """What is cut is narrow access, and the first line counts it."""
    comment = render_markdown(grants(), words=WORDS, limit=12_000)
    first, *_ = comment.splitlines()
    assert re.search(r"leaves out \d+ principals", first)
    assert "| `User:tool` | `All on the cluster; Create, Delete on every Topic` |  |" in comment


@pytest.mark.parametrize("detail", ["grouped", "concise"])
def test_the_text_names_the_grant_of_everything_first(detail: str) -> None:
    """And ten of the others."""
    text = render_plan_text(grants(), words=WORDS, detail=detail)  # type: ignore[arg-type]
    access = text.partition("\nAccess (601 principals)\n")[2].splitlines()
    assert access[0] == "  + User:tool gains All on the cluster; Create, Delete on every Topic"
    assert access[10] == "  … and 591 more principals (--detail lists them all)"
    assert text.index("User:tool") < text.index("User:app-000")


@pytest.mark.parametrize("detail", ["grouped", "concise", "full"])
def test_the_text_shows_the_new_rule(detail: str) -> None:
    """Before the edited ones."""
    text = render_plan_text(rules(), words=WORDS, detail=detail)  # type: ignore[arg-type]
    assert NEW_RULE in text and "svc-00" not in text.partition(NEW_RULE)[0]


def test_the_comment_and_the_page_show_the_new_rule() -> None:
    """In the row of the change and in its details, before the edited ones."""
    comment = html.unescape(render_markdown(rules(), words=WORDS))
    assert comment.count(NEW_RULE) == 2 and "svc-00" not in comment.partition(NEW_RULE)[0]
    page = read_page(rules())
    assert NEW_RULE in page and "svc-00" not in page.partition(NEW_RULE)[0]


def test_near_equal_changes_are_one_row() -> None:
    """With their number and ten names in each form; the comment names the others below it."""
    ten = [f"shop.audit-{number:02}" for number in range(10)]
    text = " ".join(render_plan_text(cuts(), words=WORDS).split())
    comment = render_markdown(cuts(), words=WORDS)
    page = " ".join(read_page(cuts()).split())
    (row,) = [line for line in comment.splitlines() if line.startswith("| **data loss**")]
    (danger,) = re.findall(r"! data loss: 62 topics \(.*? … and 52 more\)", text)
    (card,) = re.findall(r"data loss 62 topics: .*?, … and 52 more", page)
    for form in (row, danger, card):
        assert "62 topics" in form and "52 more" in form
        assert [name for name in ten if name not in form] == []
        assert "shop.audit-10" not in form
    assert "(shop.audit-61)" in comment
