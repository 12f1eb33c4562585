"""The closing table of an apply."""

from __future__ import annotations

from msgspec.structs import replace

from kafkaform.core.change import Action, Outcome, OutcomeStatus, Ownership, PathChange
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.words import Words
from kafkaform.render.change_lines import render_headline
from kafkaform.render.report import APPLIED_LIMIT, make_apply_report, render_apply_summary
from kafkaform.render.terraform import make_resource_change

from . import plans
from .plans import change

FAULT = Fault("INVALID_CONFIG", "not a number", FaultClass.DEFINITE, advice="Correct it.")
APPLIED = Outcome("a", OutcomeStatus.APPLIED)
RESULTS = [
    (plans.CREATED, APPLIED),
    (plans.UPDATED, APPLIED),
    (plans.UPDATED, Outcome("b", OutcomeStatus.FAILED, FAULT)),
    (plans.LOSING, Outcome("c", OutcomeStatus.UNKNOWN)),
    (plans.DELETED, Outcome("d", OutcomeStatus.SKIPPED)),
    (plans.MOVED_REPLICAS, Outcome("e", OutcomeStatus.STARTED, ticket="move-1")),
]


def test_the_table_says_what_happened_why_and_what_next() -> None:
    """Open ends first, each with a reason, then the run and the command that goes on."""
    report = make_apply_report(
        RESULTS, "run-42", "kafkaform apply --expect TOKEN", words=plans.WORDS
    )
    assert render_apply_summary(report) == (
        "  unknown  ~ kafka_topic.clicks"
        "  the request may have taken effect; the next run checks that first\n"
        '  failed   ~ kafka_topic.orders["eu"] (orders-eu)'
        "  1 of 2 requests applied; INVALID_CONFIG: not a number\n"
        "      fix: Correct it.\n"
        "  skipped  - kafka_topic.legacy"
        "  not sent, because a change that it depends on was not applied\n"
        "  started  ~ kafka_topic.wide"
        "  the move of its replicas continues in the background;"
        " the next apply reports its progress\n"
        "  applied  + kafka_topic.payments\n"
        "\n"
        "Run: run-42\n"
        "Next: kafkaform apply --expect TOKEN\n"
        "Applied in part: 1 applied, 1 started, 1 skipped, 1 failed, 1 unknown.\n"
    )


def test_a_complete_apply_counts_by_action() -> None:
    """Success ends with the counts that people know, others only when they happened."""
    text = render_apply_summary(
        make_apply_report([(plans.CREATED, APPLIED), (plans.ADOPTED, APPLIED)])
    )
    assert text.endswith("Apply complete: 1 added, 0 changed, 0 destroyed, 1 adopted.\n")


def test_a_new_address_is_told_as_a_move() -> None:
    """A rename sends nothing, so neither the plan nor the report calls it a change."""
    before, after = Ownership(("kafka_topic.old",), "no"), Ownership(("kafka_topic.new",), "no")
    moved = change("kafka_topic.new", "orders", Action.UPDATE, row_before=before, row_after=after)
    assert render_headline(moved) == "kafka_topic.new will be moved from kafka_topic.old"
    text = render_apply_summary(make_apply_report([(moved, APPLIED)]))
    assert text.endswith("Apply complete: 0 added, 0 changed, 0 destroyed, 1 moved.\n")
    data = make_resource_change(moved)
    assert (data["change"]["actions"], data["previous_address"]) == (["no-op"], "kafka_topic.old")
    assert not replace(moved, paths=(PathChange(("owner",), None, "a"),)).moves
    assert not replace(moved, row_after=replace(after, protected="explicit")).moves
    shared = replace(after, owners=("kafka_topic.new", "kafka_topic.other"))
    assert not replace(moved, row_after=shared).moves


def test_an_apply_with_nothing_to_do_is_complete() -> None:
    """No rows, no table, one line."""
    text = render_apply_summary(make_apply_report([]))
    assert text == "Apply complete: 0 added, 0 changed, 0 destroyed.\n"


def test_background_work_is_not_called_a_failure() -> None:
    """With nothing worse than a running move the last line says that work goes on."""
    text = render_apply_summary(make_apply_report(RESULTS[-1:]))
    assert text.splitlines()[-1] == "Applied, with work under way: 1 started."


def test_many_successes_do_not_bury_a_failure() -> None:
    """Applied changes are only counted once they are many."""
    many = [
        (change(f"kafka_topic.t{number}", f"t{number}", Action.CREATE), APPLIED)
        for number in range(APPLIED_LIMIT + 1)
    ]
    text = render_apply_summary(make_apply_report([*many, *RESULTS[1:3]]))
    assert "kafka_topic.t0" not in text and "INVALID_CONFIG" in text
    assert text.endswith(f"Applied in part: {APPLIED_LIMIT + 1} applied, 1 failed.\n")


def list_lines(status: OutcomeStatus, faults: dict[int, Fault]) -> list[str]:
    """The summary of topics that ended so, one for each fault."""
    results = [
        (
            change(f'kafka_topic.t["t{n:04}"]', f"t{n:04}", Action.CREATE),
            Outcome(f"t{n}", status, fault),
        )
        for n, fault in faults.items()
    ]
    report = make_apply_report([*results, (plans.CREATED, APPLIED)], words=plans.WORDS)
    return render_apply_summary(report).splitlines()


def test_a_thousand_changes_with_one_cause_are_one_line() -> None:
    """The server is gone: one cause, a count, a few names and what to do, each once."""
    gone = Fault(
        "NOT_SENT",
        "CreateTopics could not be sent: connection refused (broker 1 at localhost:9092)",
        FaultClass.NOT_APPLIED,
        advice="check the connection to the cluster and run the command again",
    )
    lines = list_lines(OutcomeStatus.FAILED, dict.fromkeys(range(1000), gone))
    assert lines == [
        "  not applied  + 1,000 topics"
        "  CreateTopics could not be sent: connection refused (broker 1 at localhost:9092)",
        '      kafka_topic.t["t0000"], kafka_topic.t["t0001"], kafka_topic.t["t0002"], '
        'kafka_topic.t["t0003"], kafka_topic.t["t0004"], … and 995 more',
        "      fix: Check the connection to the cluster and run the command again.",
        "  applied      + kafka_topic.payments",
        "",
        "Applied in part: 1 applied, 1,000 not applied.",
    ]


def test_causes_that_differ_in_names_are_one() -> None:
    """What waits for its own object, or repeats its own name, is told with an example."""
    waits = {
        n: Fault(
            "SKIPPED",
            f'it depends on kafka_topic.t["t{(n + 1) % 1000:04}"], which was not applied',
            FaultClass.NOT_APPLIED,
        )
        for n in range(1000)
    }
    assert list_lines(OutcomeStatus.SKIPPED, waits)[0] == (
        '  skipped  + 1,000 topics  for example, it depends on kafka_topic.t["t0001"], which was '
        "not applied"
    )
    one = Fault(
        "SKIPPED",
        'it depends on kafka_topic.t["t0000"], which was not applied',
        FaultClass.NOT_APPLIED,
    )
    lines = list_lines(OutcomeStatus.SKIPPED, dict.fromkeys(range(10), one))
    assert lines[0].startswith("  skipped  + 10 topics")
    taken = {
        n: Fault("TOPIC_ALREADY_EXISTS", f"Topic 't{n:04}' already exists.", FaultClass.DEFINITE)
        for n in range(500)
    }
    lines = list_lines(OutcomeStatus.FAILED, taken)
    assert lines[0].startswith("  failed   + 500 topics")
    assert "for example, TOPIC_ALREADY_EXISTS: Topic 't0000' already exists." in lines[0]


def test_different_causes_stay_apart() -> None:
    """Each cause has its own line and its own advice; two with one cause are not worth a list."""
    faults = {
        n: Fault("BAD", f"value {n // 4} is bad", FaultClass.DEFINITE, advice=f"Write {n // 4}.")
        for n in range(10)
    }
    lines = list_lines(OutcomeStatus.FAILED, faults)
    assert [line for line in lines if "bad" in line] == [
        f"  failed   + 4 topics  BAD: value {n} is bad" for n in range(2)
    ] + [f'  failed   + kafka_topic.t["t{n:04}"]  BAD: value 2 is bad' for n in (8, 9)]
    assert [line.strip() for line in lines if "fix:" in line] == [
        f"fix: Write {n}." for n in (0, 1, 2, 2)
    ]


def test_of_many_skipped_changes_the_first_are_listed() -> None:
    """Ten say what it is about; the others are counted, and so are all in the last line."""
    skipped = {n: Fault("SKIPPED", f"reason {n}", FaultClass.NOT_APPLIED) for n in range(30)}
    lines = list_lines(OutcomeStatus.SKIPPED, skipped)
    assert [line.split()[-1] for line in lines[:10]] == [f"{n}" for n in range(10)]
    assert lines[10] == "  applied  + kafka_topic.payments"
    assert lines[11] == "  … and 20 more skipped"
    assert lines[-1] == "Applied in part: 1 applied, 30 skipped."
    ten = list_lines(OutcomeStatus.SKIPPED, {n: skipped[n] for n in range(10)})
    assert not any("more" in line for line in ten) and any("0009" in line for line in ten)


def ended(status: OutcomeStatus, kind: FaultClass) -> str:
    """The summary of one change that ended so."""
    fault = Fault("TRANSPORT", "no answer to CreateTopics: connection reset", kind)
    return render_apply_summary(make_apply_report([(plans.CREATED, Outcome("c", status, fault))]))


def test_nothing_is_said_to_be_applied_in_part_that_may_not_be_applied_at_all() -> None:
    """What is unknown says what is known of it, and what had no effect is no failure."""
    unknown = ended(OutcomeStatus.UNKNOWN, FaultClass.AMBIGUOUS)
    assert unknown.endswith("It is unknown whether anything was applied: 1 unknown.\n")
    assert "connection reset; the request may have taken effect; the next run" in unknown
    harmless = ended(OutcomeStatus.FAILED, FaultClass.NOT_APPLIED)
    assert harmless.endswith("Nothing applied: 1 not applied.\n")
    assert harmless.startswith("  not applied  + kafka_topic.payments")
    failed = ended(OutcomeStatus.FAILED, FaultClass.DEFINITE)
    assert failed.endswith("Nothing applied: 1 failed.\n")


def test_a_removed_setting_is_counted() -> None:
    """An apply that only removes a throttle does not look as if it had done nothing."""
    words = {"kafka": Words(setting="throttle")}
    for number, end in ((1, "0 destroyed, 1 throttle removed."), (2, "2 throttles removed.")):
        report = make_apply_report([], words=words, removals=number)
        assert render_apply_summary(report).rstrip().endswith(end)
