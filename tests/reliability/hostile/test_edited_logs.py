"""Audit logs that somebody edited and chained anew, and saved plans that somebody edited and sealed
again: each command says which record or member is wrong, or works; none fails unexpectedly."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from kafkaform.audit.records import check_bodies
from kafkaform.core.errors import PlanRefused, StorageError
from kafkaform.plan.codec import decode, read_recorded_plan
from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.audit_story import GOLDEN
from ...kit.commands.here import Here
from ...kit.simulated.copies import Mould, copy_later
from ...test_cases import cluster_of
from . import edited

LONG = "KAFKAFORM_LONG" in os.environ
STATE, LOG = "kafkaform.state.json", "kafkaform.audit.jsonl"
YES = "--auto-approve --accept-unproven-access"
THROTTLED = edited.CONFIGURATION.replace(
    '["localhost:9092"] }', '["localhost:9092"]\n  reassignment_throttle = "50MiB"\n}'
).replace('provider "kafka" {', 'provider "kafka" {\n ')
MOVES = """
resource "kafka_topic" "m" {
  name               = "m"
  partitions         = 3
  replication_factor = 1
}
resource "kafka_topic" "gone" { name = "gone" }
"""
COMMANDS = (
    *("audit show", "audit show --json", "audit verify", "audit head", "audit export"),
    *("audit export --csv", "audit mend", "plan", "state pull", "state push pushed.json"),
    *("state mv kafka_topic.a kafka_topic.z", "import kafka_topic.gone gone", f"apply {YES}"),
)


@dataclass
class Past:
    """What two applies and two edits of a state left: log, the state after each apply, and the
    cluster."""

    log: list[dict[str, Any]]
    first: bytes
    last: bytes
    cluster: SimulatedCluster

    def number(self, kind: str, which: int = 0) -> int:
        """The place in the log of one of the records of this kind."""
        return [n for n, record in enumerate(self.log) if record["kind"] == kind][which]


@pytest.fixture(scope="module")
def pasts() -> list[tuple[Past, dict[str, bytes]]]:
    """One past and its files, once it is made."""
    return []


@pytest.fixture
def past(here: Here, pasts: list[tuple[Past, dict[str, bytes]]]) -> Past:
    """A log with every kind of record but a mended fork, with a move and its throttle under way."""
    if not pasts:
        pasts.append((_live(here, cluster_of()), here.files()))
    [(found, files)] = pasts
    for name, data in files.items():
        here.write(name, data)
    found = replace(found, cluster=Mould(found.cluster).copy())
    edited.simulate(here.monkeypatch, found.cluster)
    return found


def _live(here: Here, cluster: SimulatedCluster) -> Past:
    """The commands that leave it."""
    edited.simulate(here.monkeypatch, cluster)
    here.write("main.kf.hcl", THROTTLED + MOVES)
    here.done("apply", *YES.split())
    here.done("state", "mv", "kafka_topic.gone", "kafka_topic.went")
    later = (THROTTLED + MOVES).replace('"kafka_topic" "gone"', '"kafka_topic" "went"')
    here.write("main.kf.hcl", later.replace("replication_factor = 1", "replication_factor = 3"))
    first = (here.path / STATE).read_bytes()
    here.done("apply", *YES.split())
    here.done("state", "rm", "kafka_topic.went")
    log = [json.loads(line) for line in (here.path / LOG).read_bytes().splitlines()]
    return Past(log, first, (here.path / STATE).read_bytes(), cluster)


def run_all(here: Here, past: Past, log: bytes, state: bytes | None) -> dict[str, int]:
    """Every command on this log and this state; what each ended with."""
    codes = {}
    for command in COMMANDS:
        for name in (STATE, LOG, "pushed.json", "pushed.audit.jsonl"):
            (here.path / name).unlink(missing_ok=True)
        copied = copy_later(past.cluster)  # few commands need one
        here.monkeypatch.setattr(
            Registry, "load", lambda self, name, copied=copied: MemoryProvider(copied())
        )
        pushed = command.startswith("state push")
        here.write("pushed.audit.jsonl" if pushed else LOG, log)
        if state is not None:
            here.write("pushed.json" if pushed else STATE, state)
        said = here.run(*command.split())
        assert said.code in (0, 1, 2, 4, 5, 6, 7, 8, 9), (command, said.text)
        assert "please report" not in said.text, said.text
        codes[command] = said.code
    return codes


def anchored(state: bytes | None, log: bytes) -> bytes | None:
    """The state with the anchor that this log has at its number."""
    if state is None:
        return None
    body = json.loads(state)
    line = json.loads(log.splitlines()[body["audit_head"]["seq"] - 1])
    body["audit_head"]["hash"] = line["hash"] if isinstance(line, dict) and "hash" in line else ""
    return edited.sealed_state(body)


REFUSED = (
    ("intent", "body.instance", {"x": 1}),
    ("intent", "body.step", ...),
    ("intent", "body.attempt", "x"),
    ("intent", "body.action", "x"),
    ("intent", "body.target", []),
    ("intent", "body.paths.0", {}),
    ("outcome", "body", []),
    ("outcome", "body.error", "x"),
    ("outcome", "body.owners", ["x"]),
    ("outcome", "body.forked", {"x": 1}),
    ("outcome", "body.outcome", ["applied"]),
    ("outcome", "body.incarnation", 7),
    ("outcome", "time", "x"),
    ("outcome", "actor", []),
    ("state", "body.objects", 7),
    ("state", "body.objects.0.row", "x"),
    ("obligation", "body", 7),
    ("obligation", "body.ticket", ...),
    ("obligation", "body.what", [None]),
    ("obligation", "body.key", {"$secret": "env:X"}),
    ("run_begin", "body.approval", ...),
    ("run_end", "body.complete", "x"),
)
"""Kind, path and value of edits that each brought some command down."""


@pytest.mark.parametrize(("kind", "path", "value"), REFUSED, ids=lambda item: str(item))
def test_a_record_that_cannot_be_is_named(
    here: Here, past: Past, kind: str, path: str, value: Any
) -> None:
    """Each with every command: plan, apply and `audit verify` end with 9 and name the file, the
    record and the member."""
    number = past.number(kind)
    log = list(past.log)
    log[number] = edited.changed(log[number], path, value)
    data = edited.chained_log(log)
    codes = run_all(here, past, data, anchored(past.last, data))
    assert codes["plan"] == codes[f"apply {YES}"] == codes["audit verify"] == 9, codes
    here.write(LOG, data)
    (here.path / STATE).unlink(missing_ok=True)
    said = " ".join(here.fails("audit", "verify", code=9).replace("│", " ").split())
    member = path.split(".")[1 if path.startswith("body.") else 0]
    assert LOG in said and f"record {number + 1}" in said and member in said, said


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("body.plan", []),
        ("body.plan.changes.0.paths.0", 7),
        ("body.plan.changes.0.identity.instance", "other"),
        ("body.plan.changes.0.row_after.protected", "x"),
        ("body.plan.instances.kafka.facts", []),
    ],
)
def test_a_recorded_plan_that_cannot_be_is_named(
    here: Here, past: Past, path: str, value: Any
) -> None:
    """A run that died after its first intent cannot be recovered with another plan: apply ends
    with 9, sends nothing and records nothing."""
    log = past.log[: past.number("intent") + 1]
    log[past.number("plan")] = edited.changed(log[past.number("plan")], path, value)
    data = edited.chained_log(log)
    codes = run_all(here, past, data, None)
    assert codes[f"apply {YES}"] == 9, codes
    assert (here.path / LOG).read_bytes() == data and not (here.path / STATE).exists()


@pytest.mark.parametrize("member", ["step", "key"])
def test_an_intent_that_its_plan_does_not_know(here: Here, past: Past, member: str) -> None:
    """An open intent of a step, or an object, that the recorded plan does not have: 9."""
    number = past.number("intent")
    log = [*past.log[:number], edited.changed(past.log[number], f"body.{member}", "other")]
    assert run_all(here, past, edited.chained_log(log), None)[f"apply {YES}"] == 9


def test_a_row_in_the_log_that_cannot_be(here: Here, past: Past) -> None:
    """An edit of the state is done again only with a row of the object that it names, and one that
    such an object can have."""
    number = past.number("state")
    for path, value in (("row.identity", "other"), ("row.attributes.config", 7), ("key", "other")):
        log = list(past.log)
        log[number] = edited.changed(log[number], f"body.objects.0.{path}", value)
        data = edited.chained_log(log)
        before = {**json.loads(past.first), "audit_head": {"seq": number, "hash": ""}}
        state = anchored(edited.sealed_state(before), data)
        assert run_all(here, past, data, state)[f"apply {YES}"] == 9


def _edits(past: Past) -> Iterator[tuple[int, Any]]:
    """Every edit of one record of each sort: its place, and the record after it."""
    seen = set()
    for number, record in enumerate(past.log):
        sort = (record["kind"], record["body"].get("action"), record["body"].get("what"))
        if sort in seen:
            continue
        seen.add(sort)
        yield from ((number, body) for _, body in edited.edits(record))


@pytest.mark.slow("types every command for each of twelve logs")
@pytest.mark.timeout(3600)
def test_no_command_fails_unexpectedly(here: Here, past: Past) -> None:
    """With a state, without one, with one from before the second apply, and of runs that died
    after an intent: some edits here, a thousand times as many with KAFKAFORM_LONG."""
    found = list(_edits(past))
    cuts = (past.number("intent") + 1, past.number("intent", -1) + 1)
    ways = [(len(past.log), state) for state in (past.last, None, past.first)]
    ways += [(cuts[0], None), (cuts[1], past.first)]
    chosen = found if LONG else random.Random(1).sample(found, 12)
    for turn, (number, body) in enumerate(chosen):
        end, state = ways[turn % len(ways)]
        if number >= end:
            continue
        log = past.log[:end]
        log[number] = body
        data = edited.chained_log(log)
        run_all(here, past, data, anchored(state, data))


@pytest.mark.slow("reads thousands of logs")
def test_each_record_is_taken_or_named(past: Past) -> None:
    """Thousands of edits: a reader takes the record, or says by a StorageError what is wrong."""
    refused, share = 0, 1 if LONG else 7
    before = cache(lambda number: edited.chained_log(past.log[:number]).splitlines())
    for number, body in list(_edits(past))[::share]:
        if not isinstance(body, dict):
            continue
        lines = before(number) if number else []
        prev = (json.loads(lines[-1])["hash"],) if lines else ()
        try:
            check_bodies([*lines, *edited.chained_log([body], *prev).splitlines()], "log")
            if body["kind"] == "plan":
                read_recorded_plan(body_of(body), "run")
        except StorageError as error:
            refused += 1
            assert error.advice and "record" in error.message or "plan of run" in error.message
    assert refused > 500


def body_of(record: dict[str, Any]) -> Any:
    """The recorded plan, as the log's own reader has it."""
    from kafkaform.audit.records import decode as decode_record

    line = edited.chained_log([record]).splitlines()[0]
    return decode_record(line).body["plan"]


def test_logs_of_earlier_versions_are_read(here: Here) -> None:
    """Logs that were written before steps had owners, and today's golden one, pass the rules."""
    for file in sorted(GOLDEN.parent.glob("*.jsonl")):
        check_bodies(file.read_bytes().splitlines(), file.name)


# ── saved plans ─────────────────────────────────────────────────────────────────────────

SHOWS = ("show p.json", "show --json p.json", "show --markdown p.json", "show --html p.json")


@pytest.fixture
def saved(here: Here, past: Past) -> Any:
    """A plan with changes of several sorts and what earlier runs owe, as JSON."""
    text = (here.path / "main.kf.hcl").read_text()
    for old, new in (("partitions = 2", "partitions = 4"), ('toset(["x"])', 'toset(["y"])')):
        text = text.replace(old, new)
    here.write("main.kf.hcl", text + 'output "more" { value = "y" }\n')
    here.run("plan", "-out=p.json")
    return json.loads((here.path / "p.json").read_bytes())


def run_plan(here: Here, past: Past, data: bytes) -> list[int]:
    """Each way to look at a plan, and to apply it, of this file."""
    here.write("p.json", data)
    here.write(STATE, past.last)
    here.write(LOG, edited.chained_log(past.log))
    cluster = Mould(past.cluster).copy()
    here.monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    codes = []
    for command in (*SHOWS, "apply p.json"):
        said = here.run(*command.split())
        assert "please report" not in said.text and "contradicts" not in said.text, said.text
        codes.append(said.code)
    assert set(codes[:-1]) <= {0, 4} and codes[-1] in (0, 4, 8), codes
    return codes


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("changes.0.paths", 7),
        ("changes.0.identity", "x"),
        ("changes.0.action", 1),
        ("changes.0.identity.instance", "other"),
        ("changes.0.labels", {"x": 1}),
        ("changes.0.row_after.owners", ["x"]),
        ("changes.0.row_after.protected", "x"),
        ("changes.0.unknown", 1),
        ("instances.kafka.facts.scope_id", ...),
        ("outputs.0.after.value", {"$secret": "env:X"}),
        ("pending", {}),
        ("serial", "x"),
    ],
)
def test_a_plan_that_cannot_be_is_named(
    here: Here, past: Past, saved: Any, path: str, value: Any
) -> None:
    """A plan whose member cannot be, or could not be recorded after it was sent, is refused with 4
    and the member, whoever sealed and approved it."""
    for approve in (False, True):
        data = edited.sealed_plan(edited.changed(saved, f"plan.{path}", value), approve=approve)
        assert run_plan(here, past, data) == [4] * (len(SHOWS) + 1)
    last = path.split(".")[-1]
    assert last in here.fails("show", "p.json", code=4)


@pytest.mark.slow("reads hundreds of plans")
@pytest.mark.timeout(3600)
def test_edited_plans_are_refused_or_shown(here: Here, past: Past, saved: Any) -> None:
    """Each edit: the codec takes the plan or names the member; some are shown and applied too."""
    found = list(edited.edits(saved))
    for turn, (_, body) in enumerate(found[:: 1 if LONG else 11]):
        approve = turn % 2 == 0
        data = edited.sealed_plan(body, approve=approve)
        try:
            decode(data, "p.json")
        except PlanRefused as error:
            assert error.message.startswith("p.json ") and error.advice
        if LONG or turn % 60 == 0:
            run_plan(here, past, data)
