"""The plan on a terminal."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Ownership, PathChange
from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.resource import Output
from kafkaform.core.value import FrozenMap, freeze
from kafkaform.plan.model import Mode, Options, OutputChange, Plan
from kafkaform.render.attributes import render_sides
from kafkaform.render.change_lines import render_brief
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import render_markdown

from . import plans
from .plans import change, frozen, path, plan

LAST = re.compile(
    r"Plan: (\d+ to import, )?\d+ to add, \d+ to change, \d+ to destroy"
    r"(, \d+ to adopt)?(, \d+ to forget)?\.( \d+ blocked\.)?"
)


def last(subject: Plan) -> str:
    return render_plan_text(subject).splitlines()[-1]


def test_the_last_line_is_terraforms() -> None:
    """Scripts that read Terraform's last line read ours."""
    assert last(plan(plans.CREATED, plans.DELETED)) == "Plan: 1 to add, 0 to change, 1 to destroy."


def test_the_last_line_names_what_terraform_lacks_only_when_it_happens() -> None:
    """Import, adopt, forget and what is blocked appear with their numbers, and not with zero."""
    assert last(plans.everything()) == (
        "Plan: 1 to import, 1 to add, 6 to change, 1 to destroy, 2 to adopt, 1 to forget."
        " 1 blocked."
    )


@pytest.mark.parametrize("name", [name for name in plans.GOLDEN if name != "unchanged"])
def test_the_last_line_has_one_shape(name: str) -> None:
    """Every plan with work or blocks ends with the counting line."""
    assert LAST.fullmatch(last(plans.GOLDEN[name]()))


def test_nothing_to_do_says_so() -> None:
    """An empty plan ends with `No changes.` and offers no approval."""
    text = render_plan_text(plans.unchanged())
    assert text.splitlines()[-1].startswith("No changes.") and "Approval" not in text


@pytest.mark.parametrize(
    ("unchanged", "options", "sentence"),
    [
        (1, Options(), "1 managed object matches the configuration."),
        (2, Options(), "2 managed objects match the configuration."),
        (0, Options(), "The configuration declares nothing, and the state records nothing."),
        (2, Options(target=("x",)), "2 managed objects in this partial plan match the config"),
        (0, Options(exclude=("x",)), "This partial plan covers no managed object."),
        (0, Options(mode=Mode.DESTROY), "The state records nothing, so there is nothing to dest"),
    ],
)
def test_nothing_to_do_names_what_was_compared(
    unchanged: int, options: Options, sentence: str
) -> None:
    """Nobody takes the result of an empty folder, or of a part, for that of the whole system."""
    idle = plan(unchanged=unchanged, options=options)
    assert f"No changes. {sentence}" in render_plan_text(idle, width=300).splitlines()[-1]
    assert sentence in render_markdown(idle)


def test_deletes_come_before_everything_that_is_not_blocked() -> None:
    """A reader finds what is destroyed before what is created or changed."""
    text = render_plan_text(plans.everything())
    heads = ["To destroy", "To change, with loss", "Blocked:", "To change (", "To create"]
    places = [text.index(head) for head in heads]
    assert places == sorted(places)


def test_a_changed_line_that_carries_a_warning_comes_first() -> None:
    """Updates with notes are listed before updates without."""
    quiet = change("kafka_topic.a", "a", Action.UPDATE, paths=(path("partitions", 1, 2),))
    text = render_plan_text(plan(quiet, plans.UPDATED))
    assert text.index('kafka_topic.orders["eu"]') < text.index("kafka_topic.a will")


def test_a_removed_override_shows_what_takes_effect() -> None:
    """The reader learns the value that the broker falls back to."""
    text = render_plan_text(plan(plans.UPDATED))
    assert '"retention.ms"      = "1000" → "604800000" (default)' in text


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (
            path("config.x", None, "true", effective_before="false"),
            '"false" (default) → "true"',
        ),
        (
            path("config.x", None, "3600000", effective_before="604800000", unit="ms"),
            "7 d (default) → 1 h (604800000 → 3600000)",
        ),
        (
            path("config.x", "3600000", None, effective="604800000", unit="ms"),
            "1 h → 7 d (default) (3600000 → 604800000)",
        ),
        (
            path("config.x", None, 1048576, effective_before=2**63 - 1, unit="bytes/s"),
            "no limit (default) → 1 MiB/s (1048576)",
        ),
        (
            path("config.x", 5, None, effective=2**31 - 1, unit="partitions/s"),
            "5 partitions/s → no limit (default)",
        ),
        (
            path("level", "INHERITED", "FULL", effective_before="BACKWARD"),
            '"BACKWARD" (default) → "FULL"',
        ),
        (path("config.x", None, "true"), '(not set) → "true"'),
        (path("config.x", "true", None), '"true" → (not set)'),
    ],
)
def test_what_is_in_effect_stands_beside_the_value(item: PathChange, text: str) -> None:
    """Not set is said only where nobody knows what is in effect."""
    assert render_sides(item, whole=True) == text


def test_an_override_for_the_first_time_has_both_values_in_its_block() -> None:
    """With the symbol of something that is added."""
    item = path("config.retention.ms", None, "3600000", effective_before="604800000", unit="ms")
    text = render_plan_text(plan(replace(plans.UPDATED, paths=(item,))))
    assert '+ "retention.ms" = 7 d (default) → 1 h (604800000 → 3600000)' in text


def test_untouched_attributes_are_counted_not_shown() -> None:
    """Keys and attributes that stay are hidden behind a number."""
    text = render_plan_text(plan(plans.UPDATED))
    assert "# (1 unchanged key hidden)" in text and "# (2 unchanged attributes hidden)" in text
    assert "segment.bytes" not in text


def test_a_blocked_plan_offers_no_approval() -> None:
    """Nobody can approve a plan that an apply would refuse."""
    text = render_plan_text(plans.impossible())
    assert "Approval:" not in text
    assert "cannot be applied until 1 blocked change is resolved." in text


def test_a_protected_object_does_not_stop_the_rest() -> None:
    """With only protected objects blocked the approval is there."""
    text = render_plan_text(plan(plans.PROTECTED, plans.CREATED))
    assert f"Approval: {plan().token}" in text


def test_a_plan_with_errors_cannot_be_approved() -> None:
    """An error in the plan is shown and takes the approval away."""
    broken = plan(plans.CREATED, diagnostics=(Diagnostic(Severity.ERROR, "Topic not readable"),))
    text = render_plan_text(broken)
    assert "Error: Topic not readable" in text and "Approval:" not in text


def test_only_output_changes_can_be_approved() -> None:
    """A plan that changes outputs alone is not empty."""
    text = render_plan_text(plan(outputs=plans.everything().outputs))
    assert text.splitlines()[-1] == "Plan: 0 to add, 0 to change, 0 to destroy."
    assert "Approval:" in text


def test_sensitive_values_do_not_appear() -> None:
    """A sensitive path is masked in create, update, delete and drift alike."""
    hidden = path("password", "old-hunter2", "new-hunter2", sensitive=True)
    whole = frozen(password="old-hunter2")
    create = change(
        "kafka_x.c",
        "c",
        Action.CREATE,
        after=whole,
        paths=(path("password", None, "old-hunter2", sensitive=True),),
    )
    update = change("kafka_x.u", "u", Action.UPDATE, before=whole, after=whole, paths=(hidden,))
    drift = change("kafka_x.d", "d", Action.NOOP, drift=(hidden,))
    assert "hunter2" not in render_plan_text(plan(create, update, drift))


def test_an_adopted_object_is_shown_whole() -> None:
    """What comes under management is listed although nothing is written."""
    text = render_plan_text(plan(plans.ADOPTED))
    assert "kafka_topic.metrics will be adopted" in text and "        partitions = 3" in text


def test_a_whole_map_is_compared_key_by_key() -> None:
    """A path that holds a map shows only the keys that differ."""
    before, after = FrozenMap({"a": "1", "b": "2"}), FrozenMap({"a": "1", "b": "3"})
    text = render_plan_text(
        plan(change("kafka_x.m", "m", Action.UPDATE, paths=(path("config", before, after),)))
    )
    assert '~ "b" = "2" → "3"' in text and '"a"' not in text


def test_a_reordered_list_is_shown_in_full() -> None:
    """Where only the order differs there is no shorter truth."""
    items = [f"element-{number}" for number in range(12)]
    reordered = path("names", items, items[::-1])
    text = render_plan_text(plan(change("kafka_x.r", "r", Action.UPDATE, paths=(reordered,))))
    assert text.count('"element-11"') == 2


def test_several_clusters_are_told_apart() -> None:
    """With two provider instances each change says which one it is on."""
    text = render_plan_text(plans.destroy())
    assert "# kafka_topic.legacy will be destroyed on kafka.eu\n" in text
    assert "This plan destroys everything" in text


def test_colour_adds_nothing_but_colour() -> None:
    """Without its colour codes the coloured text is the plain text."""
    coloured = render_plan_text(plans.everything(), colour=True)
    assert coloured != render_plan_text(plans.everything())
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_plan_text(plans.everything())


def test_short_form_has_one_line_a_change() -> None:
    """Without detail a change takes one line, with its warning on it."""
    text = render_plan_text(plan(plans.UPDATED, plans.DELETED), detail="concise")
    assert sum("kafka_topic." in line for line in text.splitlines()) == 2
    assert "more partitions move keys" in " ".join(text.split())


def test_short_form_names_what_only_the_state_keeps() -> None:
    """A new secret version changes no attribute that could be shown, and is named all the same."""
    text = render_plan_text(plan(replace(plans.CREDENTIAL, paths=())), detail="concise")
    assert "recorded secret version" in text


def test_ten_thousand_changes_render_in_seconds() -> None:
    """A large plan is text soon enough to be read at once (about a second on two cores)."""
    large = plans.large(10_000)
    start = time.process_time()
    assert last(large) == "Plan: 3333 to add, 3334 to change, 3333 to destroy."
    assert time.process_time() - start < 20


def shown_outputs(before: Any, after: Any, width: int) -> list[str]:
    """The lines about one output that changes. None: it is not there."""
    sides = [None if v is None else Output("names", freeze(v)) for v in (before, after)]
    plan = Plan("l", 0, "", {}, (), outputs=(OutputChange(*sides),))
    lines = render_plan_text(plan, width=width).splitlines()
    start = lines.index("Outputs (1)") + 1
    return lines[start : lines.index("", start)]


def test_a_short_output_takes_one_line() -> None:
    """However it changes."""
    assert shown_outputs(["a"], ["a", "b"], 40) == ['  ~ names = ["a"] → ["a", "b"]']


def test_a_long_output_takes_several_lines() -> None:
    """Collections are opened until a line fits; what fits stays on one line."""
    topics = [{"name": "orders", "partitions": 3}, {"name": "returns-of-orders", "partitions": 12}]
    assert shown_outputs(None, topics, 50) == [
        "  + names = [",
        '      {"name" = "orders", "partitions" = 3},',
        "      {",
        '        "name" = "returns-of-orders"',
        '        "partitions" = 12',
        "      },",
        "    ]",
    ]
    assert shown_outputs(["a" * 20], ["a" * 20, "b" * 20], 40) == [
        "  ~ names",
        "        # (1 unchanged element hidden)",
        '      + "bbbbbbbbbbbbbbbbbbbb"',
    ]


def test_a_nested_output_shows_what_changes() -> None:
    """A reader sees the paths that differ, and not two whole maps."""
    before = {"eu": {"orders": 3, "returns-of-orders": 12}, "us": ["a", {"n": 1}], "old": 1}
    after = {"eu": {"orders": 6, "returns-of-orders": 12}, "us": ["a", {"n": 2}], "new one": None}
    assert shown_outputs(before, after, 60) == [
        "  ~ names",
        "      ~ eu.orders = 3 → 6",
        '      + ["new one"] = (not set)',
        "      - old = 1",
        "      ~ us[1].n = 1 → 2",
    ]


def test_a_very_long_output_is_cut_unless_somebody_asks() -> None:
    """A new map of hundreds of objects does not bury the plan, and its top says what is cut."""
    value = freeze({f"topic-{n:03}": "x" * 60 for n in range(100)})
    subject = plan(outputs=(OutputChange(None, Output("topics", value)),))
    text = render_plan_text(subject)
    assert text.index("Shortened: 1 long output") < text.index("Outputs (1)")
    assert "… and 82 more lines (--detail shows them all)" in text and "topic-050" not in text
    whole = render_plan_text(subject, detail="full")
    assert "topic-099" in whole and "Shortened" not in whole


def test_a_whole_output_is_shown_if_it_goes() -> None:
    """What is removed is listed, and what comes after it is nothing."""
    assert shown_outputs(["a" * 20, "b" * 20], None, 40)[-2:] == ["    ]", "    → (not set)"]


def test_a_destroy_of_a_part_does_not_claim_everything() -> None:
    """With --target the head names what was chosen and says that the rest stays."""
    whole = plan(plans.DELETED, options=Options(mode=Mode.DESTROY))
    part = plan(plans.DELETED, options=Options(mode=Mode.DESTROY, target=("kafka_topic.legacy",)))
    assert "destroys everything that the state records" in render_plan_text(whole)
    told = render_plan_text(part)
    assert "everything" not in told
    assert (
        "This plan destroys part of what the state records.\n"
        "It overrides the delete protection that is on by default for 1 object (kafka_topic).\n"
        "Partial plan (--target=kafka_topic.legacy): all other objects stay.\n"
    ) in told
    assert "everything" not in render_markdown(
        part
    ) and "part of what the state records" in render_markdown(part)


def test_a_destroy_names_the_protection_that_it_overrides() -> None:
    """The protection that nobody chose counts as overridden, what prevent_destroy protects stays,
    and a plan that is no destroy says neither."""
    destroys = Options(mode=Mode.DESTROY)
    kept = replace(plans.PROTECTED, row_before=Ownership(("kafka_topic.ledger",), "explicit"))
    many = [replace(kept, address=f'kafka_topic.ledger["{n}"]') for n in range(7)]
    said = render_plan_text(plan(plans.DELETED, *many, options=destroys))
    assert "is on by default for 1 object (kafka_topic).\n" in said
    assert 'prevent_destroy protects 7 objects that stay: kafka_topic.ledger["0"], ' in said
    assert ' kafka_topic.ledger["4"] and 2 more.\n' in said
    assert "delete protection that" not in render_plan_text(plan(plans.DELETED, *many))
    free = replace(plans.DELETED, row_before=Ownership(("kafka_topic.legacy",), "no"))
    assert "delete protection that" not in render_plan_text(plan(free, options=destroys))


def test_one_line_a_change_still_says_what_to_do() -> None:
    """Whoever reads the short form of a blocked change needs its to-do no less."""
    text = render_plan_text(plan(plans.PROTECTED), detail="concise", width=200)
    (line,) = [line for line in text.splitlines() if "blocked: " in line]
    assert f"fix: {plans.REMOVED_ADVICE}" in line


@pytest.mark.parametrize(
    ("before", "after", "unit", "shown"),
    [
        ("2592000000", "1000", "ms", "30 d → 1 s (2592000000 → 1000)"),
        ("-1", "86400000", "ms", "no limit → 1 d (-1 → 86400000)"),
        ("1500000001", "86400000", "ms", "1500000001 ms → 1 d (1500000001 → 86400000)"),
        (1000, 2000, "bytes/s", "1000 B/s → 2000 B/s"),
        (None, "604800000", "ms", "(not set) → 7 d (604800000)"),
        ("604800000", None, "ms", "7 d (604800000) → (not set)"),
        ("odd", "even", "ms", '"odd" → "even"'),
        ("1", "2", "", '"1" → "2"'),
    ],
)
def test_amounts_are_shown_in_the_units_of_people(
    before: Any, after: Any, unit: str, shown: str
) -> None:
    """With the exact values beside them, unless they are the same number."""
    item = path("config.retention.ms", before, after, unit=unit)
    assert render_brief(item) == f"retention.ms {shown}"


def test_sensitive_amounts_are_masked() -> None:
    """A unit never unmasks a value."""
    item = path("config.retention.ms", "604800000", "1000", unit="ms", sensitive=True)
    subject = plan(change("kafka_x.u", "u", Action.UPDATE, paths=(item,), drift=(item,)))
    for detail in ("concise", "grouped", "full"):
        text = render_plan_text(subject, detail=detail)  # type: ignore[arg-type]  # a literal each
        assert "604800000" not in text and "7 d" not in text
