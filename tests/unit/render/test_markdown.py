"""The review comment."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import Range
from kafkaform.core.finding import AccessRow, Breadth, Finding, Harm, Level
from kafkaform.core.resource import Output
from kafkaform.core.value import freeze
from kafkaform.plan.model import OutputChange
from kafkaform.render.review.comment import LIMIT, render_markdown
from kafkaform.render.review.comment_rows import render_cell, render_code, render_fence
from kafkaform.render.review.html_page import render_html

from ...kit.findings import note, risk
from ...kit.quick import examples
from . import plans
from .plans import WORDS, change, frozen, path, plan

LARGE = [
    pytest.param(size, marks=pytest.mark.slow("renders thousands of changes"))
    for size in (2_000, 10_000)
]


def test_the_title_counts() -> None:
    """The first line says how much happens."""
    first = render_markdown(plan(plans.CREATED, plans.DELETED)).splitlines()[0]
    assert first == "### kafkaform plan: 1 to add, 0 to change, 1 to destroy"


def test_blocked_and_deletes_come_before_details() -> None:
    """The tables of what needs thought are above the folded differences."""
    text = render_markdown(plans.everything())
    heads = ["**To destroy", "**To change, with loss", "**Blocked", "**Changes in detail"]
    places = [text.index(head) for head in heads]
    assert places == sorted(places)


def test_it_holds_the_very_command_to_apply() -> None:
    """A reviewer copies one line, and it names the token, which the comment has once."""
    comment = render_markdown(plan(plans.CREATED))
    assert f"```sh\nkafkaform apply --expect {plan().token}\n```" in comment
    assert comment.count(plan().token) == 1


def test_the_command_can_be_the_pipelines_own() -> None:
    """CI says how it applies; the approval has a place of its own then."""
    comment = render_markdown(plan(plans.CREATED), command="make apply")
    assert "```sh\nmake apply\n```" in comment and f"Approval `{plan().token}`" in comment


def test_what_cannot_be_applied_has_no_command() -> None:
    """A blocked plan offers nothing to copy."""
    text = render_markdown(plans.impossible())
    assert "kafkaform apply" not in text and "cannot be applied" in text


def test_nothing_to_do_is_short() -> None:
    """An empty plan is a comment of a few lines."""
    text = render_markdown(plans.unchanged())
    assert "no changes" in text and len(text.splitlines()) < 8


def find_names(comment: str) -> set[str]:
    """The addresses in a comment: `kafka_x.a["b"]` whole, and `["c"]` with what stood before."""
    names, base = set(), ""
    for span in re.findall(r"``? ?(.*?) ?``?", comment.replace(r"\|", "|")):
        text = re.sub(r"^[~+=.-] ", "", span)
        # An object in one sentence has its address at the end.
        sentence = re.fullmatch(r"(?:Allow|Deny) .* \((.*)\)", text)
        text = sentence[1] if sentence else text.partition(" ")[0]
        if text.startswith("["):
            names.add(base + text)
        else:
            base = text.partition("[")[0]
            names.add(text)
    return names


def count_missing(comment: str) -> int:
    """What the first line says."""
    found = re.search(r"does not name ([\d,]+) change", comment.splitlines()[0])
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.parametrize("size", [3, 40, 333, 2_000, 5_000])
def test_no_change_is_missing_unless_the_first_line_says_so(size: int) -> None:
    """Every address is there, or it is counted; the command is there in any case."""
    subject = plans.review(size) if size > 15 else plan(*plans.GRAVE)
    comment = render_markdown(subject, words=WORDS)
    assert len(comment) <= LIMIT
    names = find_names(comment)
    missing = [one for one in subject.changes if one.address not in names]
    assert len(missing) == count_missing(comment)
    assert (comment.startswith("**This comment is shortened.**")) is (size > 100)
    assert f"kafkaform apply --expect {subject.token}" in comment


@pytest.mark.parametrize("size", [333, 2_000])
def test_all_names_of_many_changes_fit(size: int) -> None:
    """Two thousand different changes are all named."""
    assert count_missing(render_markdown(plans.review(size), words=WORDS)) == 0


@pytest.mark.parametrize("size", [40, 333, *LARGE])
def test_what_is_dangerous_leads(size: int) -> None:
    """The first rows are the three grave changes, the worst first, with what they destroy."""
    comment = render_markdown(plans.review(size), words=WORDS)
    rows = [line for line in comment.splitlines() if line.startswith("| ")][1:4]
    for row, words in zip(
        rows,
        (
            ("**data loss**", 'kafka_topic.events["audit"]', "30 d → 1 d", "1.2 TiB"),
            ("**data loss**", "kafka_topic.invoices", "destroy", "14.3 GiB"),
            ("**access lost**", "kafka_acl.checkout_reads", "loses Read"),
        ),
        strict=True,
    ):
        assert all(word in row for word in words), row


@given(
    st.lists(st.sampled_from((*plans.GRAVE, plans.CREATED, plans.UPDATED)), max_size=60),
    st.integers(1_500, 12_000),
    st.integers(0, 200),
)
@settings(max_examples=examples(60), deadline=None)
def test_danger_is_never_cut_before_anything_else(
    kinds: list[Change], limit: int, length: int
) -> None:
    """Whatever the limit is: what is missing is counted, and if a grave change is not named, then
    no harmless one is."""
    changes = [
        replace(
            one,
            address=f'kafka_topic.t["{number}{"x" * length}"]',
            identity=replace(one.identity, key=f"{number}"),
        )
        for number, one in enumerate(kinds)
    ]
    comment = render_markdown(plan(*changes), words=WORDS, limit=limit)
    names = find_names(comment)
    named = [one for one in changes if one.address in names]
    assert len(changes) - len(named) == count_missing(comment)
    if any(one.grave and one not in named for one in changes):
        assert all(one.grave for one in named)
        assert "with a danger" in comment.splitlines()[0]


@pytest.mark.slow("renders thousands of changes")
def test_the_first_line_counts_by_kind_and_by_danger() -> None:
    """What is not named is counted, and the file that has everything is named."""
    comment = render_markdown(plans.review(10_000), words=WORDS, whole="out/plan `1`.html")
    first = comment.splitlines()[0]
    assert re.search(r"does not name [\d,]+ changes: ([\d,]+ to (change|create)(, |;))+", first)
    assert "a caution" in first or "none of them has a danger" in first
    assert first.endswith("The whole plan is in ``out/plan `1`.html``.")
    assert render_markdown(plans.review(10_000)).splitlines()[0].endswith("to see everything.")


def test_grants_have_rows() -> None:
    """Who gets access to what stands in a table, as losses do, with the very grant."""
    grant = change(
        "kafka_acl.reads",
        "User:new|*|Read|Allow|Topic|orders|Literal",
        Action.CREATE,
        after=frozen(acl_principal="User:new", acl_operation="Read", resource_name="orders"),
        notes=("User:new gains Read, Describe on Topic orders",),
    )
    comment = render_markdown(plan(grant), words=WORDS)
    sentence = 'Allow User:new Read on topic "orders" from any host (kafka_acl.reads)'
    (row,) = [line for line in comment.splitlines() if line.startswith("| `Allow")]
    assert row.startswith(f"| `{sentence}` | create |")
    assert "User:new gains Read, Describe on Topic orders" in row


def test_broken_policies_have_rows() -> None:
    """A policy that only warns stands in the comment and on the page, with its message."""
    place = Range("policies.kf.hcl", 1, 1, 1, 5)
    warned = replace(
        plans.CREATED,
        findings=(
            Finding(
                "policy/owners",
                Level.CAUTION,
                Harm.NONE,
                "policy owners: payments has no owner",
                range=place,
            ),
        ),
    )
    comment = render_markdown(plan(warned), words=WORDS)
    (row,) = [line for line in comment.splitlines() if line.startswith("| `kafka_topic.payments")]
    assert "policy owners: payments has no owner" in row
    assert "payments has no owner" in render_html(plan(warned), words=WORDS)


def test_outputs_show_the_paths_that_change() -> None:
    """A large map is not repeated for one value."""
    before = {f"region-{n}": {"size": n, "name": f"orders.{n}"} for n in range(30)}
    after = {**before, "region-3": {"size": 99, "name": "orders.3"}}
    shown = plan(
        outputs=(OutputChange(Output("regions", freeze(before)), Output("regions", freeze(after))),)
    )
    (line,) = [one for one in render_markdown(shown).splitlines() if "regions" in one]
    assert "size = 3 → 99" in line and "region-4" not in line and len(line) < 100


def test_the_table_of_losses_says_who_loses_what() -> None:
    """A delete whose loss is a note, such as that of an ACL, shows the note and not its reason."""
    gone = replace(
        plans.DELETED, impact=None, findings=(note("User:b loses Read on Topic orders"),)
    )
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


def test_a_change_of_rights_is_never_cut_inside() -> None:
    """All of its rights and values, or none and its number in the first line."""
    names = [f"orders-{number:04}" for number in range(300)]
    rows = tuple(
        AccessRow("User:app", "Topic", name, "literal", ("Read",), Breadth.ONE) for name in names
    )
    role = change(
        "kafka_access.app",
        "app",
        Action.UPDATE,
        before=frozen(topics=[]),
        after=frozen(topics=names),
        paths=(path("topics", [], names),),
        risks=(risk(Harm.ACCESS_GAINED, "User:app gains Read on topics", access=rows),),
    )
    whole = render_markdown(plan(role))
    assert "more lines" not in whole and not whole.startswith("**This comment is shortened.**")
    assert [name for name in names if whole.count(name) < 2] == []
    cut = render_markdown(plan(role), limit=9_000)
    assert "It leaves out 1 principal, the details of 1 change." in cut.splitlines()[0]
    assert "orders-0100" not in cut and "User:app gains Read on topics" in cut


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
