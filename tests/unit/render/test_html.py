"""The page for reviews, taken apart without a browser."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.core.change import Action
from kafkaform.core.secret import MASK, watch_secrets
from kafkaform.plan.model import Plan
from kafkaform.render.review.html_page import render_html
from kafkaform.workflow.plan_documents import render_plan

from ...kit.markup import Page
from ...kit.quick import examples
from . import plans
from .hostile import HOSTILE, hostile
from .plans import WORDS, change, frozen, plan


def take_apart(subject: Plan) -> Page:
    return Page(render_html(subject, words=WORDS))


def list_classes(page: Page, name: str) -> list[dict[str, str | None]]:
    return [a for _, a in page.tags if name in (a.get("class") or "").split()]


def shape(page: Page) -> list[tuple[str, str | None]]:
    """The elements and their looks, without lines of values: a longer value takes more of them."""
    return [(tag, attrs.get("class")) for tag, attrs in page.tags if tag not in ("p", "i")]


PLAIN = shape(take_apart(hostile("plain")))


def assert_only_text(text: str) -> None:
    shown = render_html(hostile(text), words=WORDS)
    page = Page(shown)
    assert shape(page) == PLAIN
    names = {name for _, attrs in page.tags for name in attrs}
    assert not [name for name in names if name.startswith("on") or name in ("src", "srcset")]
    assert all((a["href"] or "").startswith("#") for a in page.all("a"))
    assert all(line.isprintable() for line in shown.split("\n"))
    shown.encode("utf-8")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_text(text: str) -> None:
    """Whatever a name holds, it adds no element and no attribute, and all of it can be seen."""
    assert_only_text(text)


@given(st.text(max_size=40).filter(lambda text: text.strip() != ""))
@settings(max_examples=examples(40), deadline=None)
def test_any_text_stays_text(text: str) -> None:
    """The same for texts that nobody thought of."""
    assert_only_text(text)


def test_it_loads_nothing() -> None:
    """One script, named by its hash in the policy; no address, picture, font, frame or form."""
    text = render_html(plans.everything(), words=WORDS)
    page = Page(text)
    assert len(page.all("script")) == 1 and page.all("script")[0] == {}
    policy = next(a for a in page.all("meta") if "http-equiv" in a)["content"] or ""
    assert policy.startswith("default-src 'none'") and "script-src 'sha256-" in policy
    assert not re.search(r"https?://|url\(|@import|<link|<img|<iframe", text)


def test_the_first_section_is_the_dangers() -> None:
    """What could destroy data or cut clients off comes before all other sections, worst first."""
    text = render_html(plans.review(333), words=WORDS)
    ids = [a["id"] for a in Page(text).all("section") if "id" in a]
    assert ids[0] == "dangers"
    part = text.partition('id="dangers"')[2].partition("</section>")[0]
    words = ("data loss", "data loss", "access lost")
    assert tuple(re.findall(r'class="chip bad">([^<]+)<', part)) == words
    for one in plans.GRAVE:
        assert one.address.replace('"', "&#34;") in part


@pytest.mark.parametrize(
    "size", [333, pytest.param(2000, marks=pytest.mark.slow("renders thousands of changes"))]
)
def test_every_change_is_named(size: int) -> None:
    """All addresses are in it, and all links lead to something."""
    subject = plans.review(size)
    page = take_apart(subject)
    found = page.within("details")
    assert [one.address for one in subject.changes if one.address not in found] == []
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for a in page.all("a")} <= set(ids)
    numbers = [int(a["data-number"] or 0) for a in list_classes(page, "entry")]
    assert sum(numbers) == size


def test_units_stand_beside_exact_values() -> None:
    """A duration reads as on a terminal, and the number that somebody has to type is there."""
    text = render_html(plan(plans.GRAVE[0]), words=WORDS)
    assert "retention.ms&#34; = 30 d → 1 d (2592000000 → 86400000)" in text


def test_it_shows_how_to_apply_exactly_this() -> None:
    """The command with the approval, once; not for a plan that an apply refuses."""
    text = render_html(plans.everything(), words=WORDS, command="make apply")
    assert '<pre class="command">make apply</pre>' in text
    assert f"Approval: <code>{plans.everything().token}</code>" in text
    usual = render_html(plans.everything(), words=WORDS)
    assert usual.count(plans.everything().token) == 1
    refused = render_html(plans.impossible(), words=WORDS)
    assert "kafkaform apply" not in refused and "cannot be applied" in refused


def test_a_plan_without_changes_is_a_page() -> None:
    """It says so, and has neither a search box nor empty sections."""
    page = take_apart(plans.unchanged())
    assert page.within("h1").startswith("No changes. 1,204 managed objects")
    assert page.all("form") == [] and page.all("section") == []


def test_secrets_are_masked() -> None:
    """A secret that a note repeats is masked, also if HTML writes its quotes in another way."""
    secret = "pass\"'<word>&more"
    note = f"the server said {secret}"
    telling = change("kafka_x.a", "a", Action.CREATE, after=frozen(name="a"), notes=(note,))
    with watch_secrets() as known:
        known.add(secret)
        text = render_plan(plan(telling), "html")
    assert f"the server said {MASK}" in text and "word" not in Page(text).within("details")


def test_sensitive_values_are_hidden() -> None:
    """As everywhere, only their change is shown."""
    text = render_html(plans.everything(), words=WORDS)
    assert "token = (sensitive) → (sensitive)" in text and "&#34;old&#34;" not in text


def test_equal_plans_are_equal_pages() -> None:
    """Nothing in it depends on the time or on the order of a set."""
    assert render_html(plans.everything()) == render_html(plans.everything())
