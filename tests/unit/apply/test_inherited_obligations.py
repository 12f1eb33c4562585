"""What an earlier run owes is undone by an approved plan, and only if the log shows the approved
step that owes it: a record that merely claims a throttle removes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kafkaform.apply.obligations import NEVER_SENT_NOTE, UNFOUNDED_NOTE
from kafkaform.audit.journal import Journal
from kafkaform.audit.records import Record, RecordKind
from kafkaform.core.errors import AppliedInPart, KafkaformError, PlanRefused
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import render_markdown
from kafkaform.render.terraform import to_json
from kafkaform_kafka.kinds.topic.placement import RATES, ThrottlePlace
from kafkaform_kafka.memory import Killed, killed_before, lost_reply
from kafkaform_kafka.resource_kinds import WORDS

from ...kit.simulated.engine import KAFKA, House, apply, desired, plan, topic
from ...kit.simulated.managed_topics import codes, complete
from .test_throttle import BYTES, RATE, arrive, owed, ready, set_there, wanted


def ended() -> House:
    """A move that a throttle was set for has ended, and nobody has applied since."""
    where = ready()
    apply(where, wanted(3))
    arrive(where)
    return where


def forge(where: House, kind: RecordKind, body: Mapping[str, Any], run: str) -> Record:
    """Somebody who can write to the log adds a record that fits its chain."""
    journal = Journal(cast(Any, where.sink), where.clock, run, "eve", where.state.lineage)
    return journal.write(kind, FrozenMap(body))


def operators(where: House) -> None:
    """An operator throttles all brokers by the same rate, with Kafka's own tool."""
    session = cast(Any, where.providers[KAFKA].open(KAFKA, FrozenMap(operation_timeout=4), {}))
    for broker in ("1", "2", "3"):
        place = ThrottlePlace("broker", broker, RATES, BYTES)
        assert session.inner._alter(place, dict.fromkeys(RATES, BYTES), ()) is None


def ticket(where: House) -> str:
    found = where.cluster.topics["t"]
    return f"t/{found.id}/throttle/{BYTES}/1,2,3"


# ── after approval ──────────────────────────────────────────────────────────────────────


def test_a_plan_lists_the_removal_in_every_form() -> None:
    """Text, comment, JSON and counts name the run and the object; the plan is something to do."""
    where = ended()
    shown = plan(where, wanted(3))
    (one,) = shown.removals
    assert (one.address, one.run) == ("kafka_topic.t", where.records("run_begin")[-1].run)
    text = render_plan_text(shown, words={KAFKA: WORDS}, width=300)
    assert f"kafka_topic.t: the throttle that run {one.run} set for the move" in text
    assert "No changes" not in text and text.rstrip().endswith("1 throttle to remove.")
    assert "its move has ended: this apply removes it" in text and "Approval: " in text
    assert one.run in render_markdown(shown, words={KAFKA: WORDS}).split("Throttles to remove")[1]
    assert to_json(shown)["kafkaform"]["removals"][0]["ticket"] == one.ticket
    assert not shown.idle and not shown.changes


@pytest.mark.parametrize("factor", [3, 2], ids=["nothing else", "another change"])
def test_nothing_is_removed_before_the_approval(factor: int) -> None:
    """Who looks at the plan and says no keeps every throttle."""
    where = ended()
    before = set_there(where)

    def untouched(_: Plan) -> None:
        assert set_there(where) == before != []

    with pytest.raises(KafkaformError, match="not approved"):
        apply(where, wanted(factor), gap=untouched, answer=False)
    assert set_there(where) == before and "throttle" in owed(where)
    assert complete(apply(where, wanted(3), gap=untouched))
    assert set_there(where) == [] and owed(where) == []


def test_a_removal_alone_is_a_run_of_its_own() -> None:
    """On record like every other: begun, planned, approved, discharged, ended; the next plan has
    nothing."""
    where = ended()
    number = len(where.sink.records)
    done = apply(where, wanted(3))
    assert done.report is not None and done.report.make_error() is None
    kinds = [record.kind for record in where.sink.records[number:]]
    order = ["run_begin", "plan", "approval", "validate", "discharged", "run_end"]
    assert [kind for kind in kinds if kind != "verify"] == ["discharged", *order]
    assert [note for note in where.screen.notes if "throttle" in note and "was removed" in note]
    assert not [note for note in where.screen.notes if "still set" in note]
    assert sum(work.is_removal for work in done.report.work) == 1
    assert plan(where, wanted(3)).idle and apply(where, wanted(3)).report is None


def test_the_reviewed_token_removes_it() -> None:
    """--expect, and a saved plan."""
    for way in ("expect", "saved"):
        where = ended()
        shown = plan(where, wanted(3))
        done = (
            apply(where, wanted(3), expect=shown.token)
            if way == "expect"
            else apply(where, wanted(3), saved=shown)
        )
        assert complete(done) and set_there(where) == []


def test_what_was_not_reviewed_is_left_to_the_next_apply() -> None:
    """A review of before a move had ended is not undone by its end, and approves no removal."""
    where = ready()
    apply(where, wanted(3))
    more = desired(topic("t", 3, replication_factor=3), topic("u"), reassignment_throttle=RATE)
    token = plan(where, more).token
    arrive(where)
    assert plan(where, more).removals
    assert complete(apply(where, more, expect=token))
    assert set(where.cluster.topics) == {"t", "u"} and set_there(where) != []
    assert any("left to the next apply" in note for note in where.screen.notes)
    assert any("the next plan lists its removal" in note for note in where.screen.notes)
    assert complete(apply(where, more)) and set_there(where) == []


def test_a_removal_that_was_put_into_a_plan_is_refused() -> None:
    """The approval covers it, and an object or a ticket more is another approval."""
    where = ended()
    shown = plan(where, wanted(3))
    (one,) = shown.removals
    for forged in (
        (),
        (one, replace(one, run="other")),
        (replace(one, ticket=ticket(where)[:-2]),),
    ):
        with pytest.raises(PlanRefused, match="altered"):
            apply(where, wanted(3), saved=replace(shown, removals=forged))
    assert set_there(where) != []


def test_a_removal_that_fails_is_said_and_stays_owed() -> None:
    """Exit code 5; the next plan lists it again, and the same approval is no finished run."""
    where = ended()
    shown = plan(where, wanted(3))
    where.cluster.faults.schedule(lost_reply(), "IncrementalAlterConfigs")
    done = apply(where, wanted(3), expect=shown.token)
    assert done.report is not None and isinstance(done.report.make_error(), AppliedInPart)
    assert owed(where) == ["throttle"]
    again = plan(where, wanted(3))
    assert again.removals == shown.removals
    assert complete(apply(where, wanted(3), expect=again.token)) and set_there(where) == []


def test_a_run_that_dies_while_it_removes_leaves_it_to_the_next() -> None:
    """The obligation is open until everything is gone."""
    where = ended()
    where.cluster.faults.schedule(killed_before(), "IncrementalAlterConfigs", skip=2)
    with pytest.raises(Killed):
        apply(where, wanted(3))
    assert owed(where) == ["throttle"] and plan(where, wanted(3)).removals
    assert complete(apply(where, wanted(3))) and set_there(where) == []


# ── what the log has to show ────────────────────────────────────────────────────────────


def claimed(where: House, **members: Any) -> dict[str, Any]:
    """The body of an obligation as ours are, of the throttle that the operator set."""
    return {
        "lineage": where.state.lineage,
        "instance": "kafka",
        "scope_id": where.cluster.id,
        "address": "kafka_topic.t",
        "kind": "kafka_topic",
        "key": "t",
        "ticket": ticket(where),
        "what": "throttle",
        **members,
    }


def intent(where: House, run: str, **members: Any) -> None:
    """An intent after it, with the outcome that closes it."""
    (true,) = where.records("intent")[-1:]
    body = true.body.with_items(members)
    forge(where, RecordKind.INTENT, body, run)
    forge(where, RecordKind.OUTCOME, body.with_items({"outcome": "failed", "ticket": None}), run)


def _alone(where: House) -> None:
    forge(where, RecordKind.OBLIGATION, claimed(where), "forged")


def _called_a_move(where: House) -> None:
    forge(where, RecordKind.OBLIGATION, claimed(where, what="move"), "forged")


def _with_an_intent(where: House) -> None:
    forge(where, RecordKind.OBLIGATION, claimed(where), "forged")
    intent(where, "forged")


def _of_a_true_run(where: House) -> None:
    run = where.records("run_begin")[-1].run
    forge(where, RecordKind.OBLIGATION, claimed(where), run)
    intent(where, run)


def _with_a_plan_that_nobody_approved(where: House) -> None:
    (true,) = where.records("plan")[-1:]
    forge(where, RecordKind.PLAN, true.body, "forged")
    _with_an_intent(where)


def _with_a_plan_of_another_approval(where: House) -> None:
    plans, approvals = where.records("plan"), where.records("approval")
    forge(where, RecordKind.PLAN, plans[-1].body, "forged")
    forge(
        where, RecordKind.APPROVAL, approvals[0].body.with_items({"approval": "0" * 64}), "forged"
    )
    _with_an_intent(where)


def _with_a_step_written_into_the_plan(where: House) -> None:
    (true,) = where.records("plan")[-1:]
    (change,) = true.body["plan"]["changes"]
    steps = tuple(step.with_items({"owes": ticket(where)}) for step in change["steps"])
    altered = true.body["plan"].with_items({"changes": (change.with_items({"steps": steps}),)})
    forge(where, RecordKind.PLAN, true.body.with_items({"plan": altered}), "forged")
    forge(where, RecordKind.APPROVAL, where.records("approval")[-1].body, "forged")
    _with_an_intent(where)


SILENT = "nothing but the record"
FORGERIES: dict[str, Callable[[House], None]] = {
    SILENT: _alone,
    "an intent too": _with_an_intent,
    "the name of a true run": _of_a_true_run,
    "a plan that nobody approved": _with_a_plan_that_nobody_approved,
    "a plan of another approval": _with_a_plan_of_another_approval,
    "a step that was written into a plan": _with_a_step_written_into_the_plan,
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_obligation_removes_nothing(what: str) -> None:
    """An operator's throttle, of the very rate that the record claims, outlives every apply; a
    plan says that the record is left alone."""
    where = ready(throttle=None)
    assert complete(apply(where, wanted(3, throttle=None)))
    arrive(where)
    assert complete(apply(where, wanted(3, throttle=None)))
    operators(where)
    FORGERIES[what](where)
    shown = plan(where, wanted(3, throttle=None))
    assert shown.removals == ()
    assert [item.note for item in shown.pending] == [
        NEVER_SENT_NOTE if what == SILENT else UNFOUNDED_NOTE
    ]
    for said in (wanted(3, throttle=None), wanted(2, throttle=None), wanted(3, throttle=None)):
        assert complete(apply(where, said))
        arrive(where)
    assert set_there(where) == [BYTES] * 6


def test_a_forged_obligation_does_not_make_a_throttle_ours() -> None:
    """A move that would be throttled meets the operator's, and is not started, as without the
    record."""
    where = ready()
    operators(where)
    _with_an_intent(where)
    assert codes(apply(where, wanted(3))) == {"t#3": "THROTTLED_BY_OTHERS"}
    assert where.cluster.requests["AlterPartitionReassignments"] == 0
    assert set_there(where) == [BYTES] * 6


def test_a_throttle_that_is_called_a_move_does_not_become_ours() -> None:
    """Moves are asked about without any proof, and what a throttle's ticket names is no move."""
    where = ready()
    operators(where)
    _called_a_move(where)
    assert codes(apply(where, wanted(3))) == {"t#3": "THROTTLED_BY_OTHERS"}
    assert set_there(where) == [BYTES] * 6 and owed(where) == []


@pytest.mark.parametrize("member", ["scope_id", "key", "ticket", "instance"])
def test_a_true_obligation_that_was_altered_is_not_ours(member: str) -> None:
    """Cluster, object and ticket are those of the approved step, or nothing is removed."""
    where = ended()
    (true,) = [r for r in where.records("obligation") if r.body["what"] == "throttle"]
    forge(where, RecordKind.DISCHARGED, true.body.with_items({"discharges": true.seq}), true.run)
    other = {"ticket": ticket(where).replace(BYTES, "7")}.get(member, "other")
    forge(where, RecordKind.OBLIGATION, true.body.with_items({member: other}), true.run)
    assert plan(where, wanted(3)).removals == ()
    apply(where, wanted(3))
    assert set_there(where) == ["*"] * 2 + [BYTES] * 6


def test_what_was_never_sent_is_given_up() -> None:
    """A crash between an obligation and its intent, in one append: nothing was set, the record
    of that is the end of it, and what an operator sets meanwhile stays."""
    where = ready()
    apply(where, wanted(3, throttle=None))
    operators(where)
    _alone(where)
    assert {item.note for item in plan(where, wanted(1)).pending} >= {NEVER_SENT_NOTE}
    apply(where, wanted(3, throttle=None))
    assert "throttle" not in owed(where) and set_there(where) == [BYTES] * 6


def test_a_plan_of_older_rules_is_believed_for_what_it_owes() -> None:
    """The log of an earlier version: plan and approval name the same digest, which nobody can
    make again."""
    where = ended()
    (true,) = [r for r in where.records("obligation") if r.body["what"] == "throttle"]
    forge(where, RecordKind.DISCHARGED, true.body.with_items({"discharges": true.seq}), true.run)
    recorded, old = where.records("plan")[-1].body, "a" * 64
    data = recorded["plan"].without(["rule"]).with_items({"approval": old})
    forge(where, RecordKind.PLAN, recorded.with_items({"plan": data, "approval": old}), "older")
    approved = where.records("approval")[-1].body.with_items({"approval": old})
    forge(where, RecordKind.APPROVAL, approved, "older")
    forge(where, RecordKind.OBLIGATION, true.body, "older")
    (sent,) = [r for r in where.records("intent") if r.body["step"].endswith("#3")]
    forge(where, RecordKind.INTENT, sent.body, "older")
    forge(
        where,
        RecordKind.OUTCOME,
        sent.body.with_items({"outcome": "failed", "ticket": None}),
        "older",
    )
    (one,) = plan(where, wanted(3)).removals
    assert one.run == "older"
    assert complete(apply(where, wanted(3))) and set_there(where) == []
