"""Long values: every differing part is shown, in order, and nothing is cut without a word."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.core.change import Action, PathChange
from kafkaform.core.value import FrozenMap
from kafkaform.render import stream
from kafkaform.render.attributes import MANY, compare_parts, split_text
from kafkaform.render.change_lines import render_brief
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import DETAIL_LIMIT, render_markdown
from kafkaform.render.terraform import to_json

from .plans import change, frozen, plan

KEY = "ssl.principal.mapping.rules"
RULES = [f"RULE:^CN=service-{n},OU=payments,O=example$/service-{n}/" for n in range(12)]
ADMIN = "RULE:^CN=(mallory|build).*$/admin/"

texts = st.text(st.sampled_from("ab,;\n"), max_size=60)
lists = st.lists(st.sampled_from("abcd"), max_size=20).map(tuple)


@given(st.one_of(st.tuples(texts, texts), st.tuples(lists, lists)))
def test_the_pieces_are_the_whole_difference(sides: tuple[str, str]) -> None:
    """What goes and what stays is the old value, what comes and what stays the new one."""
    before, after = (split_text(s) if isinstance(s, str) else list(s) for s in sides)
    old, new, place = [], [], 0
    for piece in compare_parts(*sides):
        if piece.sign == " ":
            old += before[place : place + piece.unchanged]
            new += before[place : place + piece.unchanged]
        place += piece.unchanged + (piece.sign == "-")
        old += [piece.value] * (piece.sign == "-")
        new += [piece.value] * (piece.sign == "+")
    # Of parts that replace others, what is new or gone comes before what was edited.
    assert (sorted(old), sorted(new)) == (sorted(before), sorted(after))


def test_a_new_part_stands_before_sixty_edited_ones() -> None:
    """Whoever hides a rule among edits of all others is seen first, wherever the rule stands."""
    before = tuple(f"RULE:[1:$1@$0](app{n}@OLD.EXAMPLE)s/@.*//" for n in range(60))
    after = tuple(f"RULE:[1:$1@$0](app{n}@NEW.EXAMPLE)s/@.*//" for n in range(60))
    rule = "RULE:[1:$1@$0](eve@EVIL)s/.*/admin/"
    for place in (0, 30, 60):
        first, *rest = compare_parts(before, (*after[:place], rule, *after[place:]))
        assert (first.sign, first.value) == ("+", rule) and len(rest) == 120
        assert [piece.value for piece in rest[:2]] == [before[0], after[0]]


@given(texts)
def test_parts_joined_are_the_text(text: str) -> None:
    """No character is lost between them."""
    assert "".join(split_text(text)) == text


@pytest.mark.parametrize("words", [2, 90, MANY, 20_000])
def test_a_value_made_to_be_slow_is_not(words: int) -> None:
    """Many alike parts in another order are compared in a bounded number of steps."""
    chosen = random.Random(1)
    sides = [",".join(str(chosen.randrange(words)) for _ in range(16_000)) for _ in range(2)]
    few = [",".join(str(chosen.randrange(words)) for _ in range(MANY)) for _ in range(2)]
    begin = time.process_time()
    assert all(any(piece.sign == "+" for piece in compare_parts(*pair)) for pair in (sides, few))
    assert time.process_time() - begin < 20


def mapped(before: str | None, after: str | None) -> PathChange:
    return PathChange(("config", KEY), before, after)


OLD = ",".join([*RULES, "DEFAULT"])
NEW = ",".join([RULES[0].replace("payments", "billing"), *RULES[1:9], ADMIN, *RULES[9:], "DEFAULT"])
RAISED = change(
    "kafka_broker_config.one",
    "1",
    Action.UPDATE,
    before=frozen(broker_id=1, config={KEY: OLD}),
    after=frozen(broker_id=1, config={KEY: NEW}),
    paths=(mapped(OLD, NEW),),
)


def test_a_rule_that_stands_far_behind_the_first_difference_is_shown() -> None:
    """In the plan, in the comment, and in both forms of JSON; what stays is counted."""
    assert OLD.index("payments") < 240 < NEW.index(ADMIN)
    text = render_plan_text(plan(RAISED))
    assert f'+ "{ADMIN},"' in text
    assert '- "OU=payments,"' in text and '+ "OU=billing,"' in text
    assert "unchanged elements hidden" in text
    assert ADMIN.replace("$", "$") in render_markdown(plan(RAISED))
    assert ADMIN in json.dumps(stream.make_planned_change(RAISED), default=str)
    entry = to_json(plan(RAISED))["resource_changes"][0]
    assert entry["change"]["after"]["config"][KEY] == NEW


def test_a_new_long_value_is_shown_whole() -> None:
    """Also one that goes, and one that another value takes the place of."""
    for before, after in ((None, NEW), (NEW, None), ("short", NEW), (NEW, "short")):
        moved = replace(RAISED, paths=(mapped(before, after),))
        shown = render_plan_text(plan(moved)).replace('"\n', "").replace('"', "")
        assert all(part.rstrip(",") in shown for part in split_text(NEW))


def test_drift_shows_every_differing_part_too() -> None:
    """On its line of the plan, of the comment, and as data."""
    drifted = replace(RAISED, action=Action.NOOP, paths=(), drift=(mapped(OLD, NEW),))
    assert f'+ "{ADMIN},"' in render_brief(mapped(OLD, NEW))
    assert f'+ "{ADMIN},"' in " ".join(render_plan_text(plan(drifted)).split())
    assert ADMIN in render_markdown(plan(drifted))
    (found,) = stream.make_resource_drift(drifted)["change"]["kafkaform"]["changes"]
    assert (found["before"], found["after"]) == (OLD, NEW)


def test_a_list_in_another_order_shows_what_moved() -> None:
    """Elements that changed places differ, beside one that is new."""
    hosts = tuple(f"broker-{n}.example.com:9092" for n in range(8))
    moved = (hosts[1], hosts[0], *hosts[2:], "new.example.com:9092")
    text = render_plan_text(plan(replace(RAISED, paths=(PathChange(("hosts",), hosts, moved),))))
    assert f'- "{hosts[0]}"' in text or f'- "{hosts[1]}"' in text
    assert '+ "new.example.com:9092"' in text


def test_a_secret_is_in_no_part() -> None:
    """A sensitive value is masked before anything is compared."""
    hidden = replace(RAISED, paths=(replace(mapped(OLD, NEW), sensitive=True),))
    assert "RULE" not in render_plan_text(plan(hidden)) + render_markdown(plan(hidden))


def test_a_comment_that_is_not_whole_says_so_first() -> None:
    """In its first line: how much is missing, and where it is."""
    long = ",".join(f"rule-{n}-{'x' * 40}" for n in range(2 * DETAIL_LIMIT // 40))
    cut = render_markdown(plan(replace(RAISED, paths=(mapped("y" * 300, long),))))
    assert cut.startswith(
        "**This comment is shortened.** It names every change. It leaves out parts of"
    )
    many = [
        replace(RAISED, address=f"kafka_broker_config.b{n}", paths=(mapped(OLD, f"{NEW}{n}"),))
        for n in range(400)
    ]
    assert render_markdown(plan(*many)).startswith("**This comment is shortened.**")
    assert "shortened" not in render_markdown(plan(RAISED))


def test_a_plan_that_is_not_whole_says_so_first() -> None:
    """Its only limit is the number of different drifts; --concise asks for less."""
    many = [
        change(
            f"kafka_topic.t{n:02}",
            f"t{n:02}",
            Action.NOOP,
            drift=(PathChange(("config", "retention.ms"), "1", f"{n + 2}"),),
        )
        for n in range(25)
    ]
    text = render_plan_text(plan(*many))
    assert text.index("Shortened: 20 of 25 kafka_topic") < text.index("Changed outside")
    assert "kafka_topic.t19" in text and "kafka_topic.t20" not in text
    assert "Shortened: " not in render_plan_text(plan(*many[:20]))
    whole = render_plan_text(plan(*many), detail="full")
    assert "kafka_topic.t24" in whole and "Shortened: " not in whole


def test_one_huge_piece_does_not_hide_what_comes_after_it() -> None:
    """It is counted; shorter ones that fit are in the comment."""
    huge = change("kafka_topic.huge", "huge", Action.DELETE, notes=("x" * 80_000,))
    small = change("kafka_topic.small", "small", Action.DELETE, before=FrozenMap(name="small"))
    text = render_markdown(plan(huge, small))
    assert "| `kafka_topic.small` |" in text
    assert "This comment is shortened." in text[:300]
