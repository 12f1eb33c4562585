"""The review comment."""

from __future__ import annotations

import re

from msgspec.structs import replace

from kafkaform.core.change import Action
from kafkaform.render.markdown.comment import LIMIT, render_markdown
from kafkaform.render.markdown.text import render_cell, render_code, render_fence

from . import plans
from .plans import change, frozen, plan


def test_the_title_counts() -> None:
    """The first line says how much happens."""
    first = render_markdown(plan(plans.CREATED, plans.DELETED)).splitlines()[0]
    assert first == "### kafkaform plan: 1 to add, 0 to change, 1 to destroy"


def test_blocked_and_deletes_come_before_details() -> None:
    """The tables of what needs thought are above the folded differences."""
    text = render_markdown(plans.everything())
    heads = ["**Blocked", "**To destroy", "**To change, with loss", "**Changes in detail"]
    places = [text.index(head) for head in heads]
    assert places == sorted(places)


def test_it_holds_the_very_command_to_apply() -> None:
    """A reviewer copies one line, and it names the token."""
    assert f"```sh\nkafkaform apply --expect {plan().token}\n```" in render_markdown(
        plan(plans.CREATED)
    )


def test_the_command_can_be_the_pipelines_own() -> None:
    """CI says how it applies."""
    assert "```sh\nmake apply\n```" in render_markdown(plan(plans.CREATED), command="make apply")


def test_what_cannot_be_applied_has_no_command() -> None:
    """A blocked plan offers nothing to copy."""
    text = render_markdown(plans.impossible())
    assert "kafkaform apply" not in text and "cannot be applied" in text


def test_nothing_to_do_is_short() -> None:
    """An empty plan is a comment of a few lines."""
    text = render_markdown(plans.unchanged())
    assert "no changes" in text and len(text.splitlines()) < 8


def test_a_huge_plan_is_cut_and_counts_what_it_cut() -> None:
    """Shown and counted changes add up, and the command is still there."""
    text = render_markdown(plans.large(10_000))
    assert len(text) <= LIMIT
    tables, details = text.split("**Changes in detail (10,000)**")
    rows = len(re.findall(r"^\| `kafka_topic", tables, re.M))
    shown = len(re.findall(r"^<details>", details, re.M))
    tails = [int(tail.replace(",", "")) for tail in re.findall(r"… and ([\d,]+) more", text)]
    assert rows > 10 and shown > 10
    assert [rows + tails[0], shown + tails[1]] == [3333, 10_000]
    assert "kafkaform apply --expect" in text


def test_the_table_of_losses_says_who_loses_what() -> None:
    """A delete whose loss is a note, such as that of an ACL, shows the note and not its reason."""
    gone = replace(plans.DELETED, impact=None, notes=("User:b loses Read on Topic orders",))
    text = render_markdown(plan(gone))
    table = text.split("**Changes in detail")[0]
    assert "| User:b loses Read on Topic orders |" in table


def test_one_huge_change_does_not_hide_the_others() -> None:
    """The difference of one change is cut by itself, with the number of lines left out."""
    huge = change(
        "kafka_x.a",
        "a",
        Action.CREATE,
        after=frozen(config={f"key-{number:05}": "value" for number in range(5_000)}),
    )
    text = render_markdown(plan(huge, plans.CREATED))
    assert re.search(r"… and [\d,]+ more lines", text)
    assert "kafka_topic.payments will be created" in text


def test_a_fence_is_longer_than_what_it_holds() -> None:
    """No run of backticks in a value can close the fence."""
    assert render_fence(["a ```` b"], "diff").startswith("`````diff\n")
    assert render_fence(["plain"], "sh") == "```sh\nplain\n```"


def test_code_spans_hold_any_text() -> None:
    """Backticks get a longer delimiter, pipes are escaped in cells alone."""
    assert render_code("a`b|c") == "``a`b|c``"
    assert render_cell("a|b") == r"`a\|b`"
    assert render_cell("a\\|b") == r"`a\x7cb`"
    assert render_code("") == "`  `"
