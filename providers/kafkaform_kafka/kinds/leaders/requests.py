"""Reads the leaders of partitions from Metadata, and elects leaders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap

from ...protocol.apis import MAX_PARTITIONS_ELECTED
from ...protocol.cluster_facts import KafkaFacts
from ...protocol.faults import fault_of
from ...wire.topics import Partition, PartitionAnswers, TopicRow, elect_leaders, list_topics
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt
from ..topic.read import read_topic_rows
from ..topic.send_placement import combine_faults, make_part_fault
from . import resource_type as leaders
from .resource_type import API


def sweep_leaders(_: ClusterContext, depth: Depth) -> Sweep:
    """Always empty: leaders are only read by the name of their topic."""
    return Sweep(leaders.KIND, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def read_leaders(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """The leaders of these topics. node: the broker to ask, None for any."""
    rows, readings = read_topic_rows(context, ids, node)
    return {
        **readings,
        **{identity: _observe_leaders(identity, row) for identity, row in rows.items()},
    }


def _observe_leaders(identity: Identity, row: TopicRow) -> Observed:
    first = {str(n): replicas[0] for n, replicas in enumerate(row.replicas) if replicas}
    # A preferred election (KIP-460) fails with error 80 unless the first replica is in sync.
    ready = (n for n, broker in first.items() if broker in row.in_sync[int(n)])
    attributes = leaders.make_attributes(row.name, dict(enumerate(row.leaders)))
    return Observed(
        identity,
        attributes,
        row.topic_id,
        details=FrozenMap(preferred=FrozenMap(first), ready=tuple(ready)),
        foreign=leaders.find_foreign_paths(attributes),
    )


# ELECTION_NOT_NEEDED: the first replica leads already, which is all that was asked for.
_NOT_NEEDED = 84


def send_elections(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """One reply for each topic, with the faults of its partitions as one."""
    # The broker has no dry run for it, so fresh reads replace one.
    if order.dry:
        return _check_steps(context, order.steps)
    answers = _elect_all(context, order.steps)
    return [Reply(step, _make_fault(step, answers)) for step in order.steps]


def _elect_all(context: ClusterContext, steps: Sequence[Step]) -> Mapping[Partition, Fault | None]:
    """The fault of each partition."""
    todo = [(step.payload["name"], int(n)) for step in steps for n in step.payload["leaders"]]
    faults: dict[Partition, Fault | None] = {}
    for start in range(0, len(todo), MAX_PARTITIONS_ELECTED):
        cut = todo[start : start + MAX_PARTITIONS_ELECTED]
        answers = _elect(context, cut)
        # Without an answer the state of the cluster is unclear, so the rest is not sent.
        if isinstance(answers, Fault):
            faults.update(dict.fromkeys(todo[start:], answers))
            break
        faults.update(
            {partition: make_part_fault(API, partition, answers, _NOT_NEEDED) for partition in cut}
        )
    return faults


def _elect(context: ClusterContext, partitions: Sequence[Partition]) -> PartitionAnswers | Fault:
    named: dict[str, list[int]] = {}
    for name, number in partitions:
        named.setdefault(name, []).append(number)
    answers = attempt(API, lambda: elect_leaders(context.wire, named, context.timeout))
    if isinstance(answers, PartitionAnswers) and answers.code:
        return fault_of(API, answers.code, ", ".join(named), answers.message)
    return answers


def _make_fault(step: Step, answers: Mapping[Partition, Fault | None]) -> Fault | None:
    name = step.payload["name"]
    partition_faults = [answers.get((name, int(number))) for number in step.payload["leaders"]]
    return combine_faults(partition_faults, "the others are led by their first replicas")


def _check_steps(context: ClusterContext, steps: Sequence[Step]) -> Sequence[Reply]:
    """Check the right, the topic, and its first replicas."""
    rights = KafkaFacts.of(context.facts).rights
    names = [step.payload["name"] for step in steps]
    rows = attempt("Metadata", lambda: list_topics(context.wire, names, context.timeout))
    if isinstance(rows, Fault):
        return [Reply(step, rows) for step in steps]
    if rights and "Alter" not in rights:
        return [Reply(step, fault_of(API, 31, step.payload["name"])) for step in steps]
    by_name = {row.name: row for row in rows}
    return [Reply(step, find_hurdle(step, by_name.get(step.payload["name"]))) for step in steps]


def find_hurdle(step: Step, row: TopicRow | None) -> Fault | None:
    """The fault if this is no longer the election that was planned."""
    name = step.payload["name"]
    if row is None or row.code:
        return fault_of("Metadata", row.code if row else -1, name)
    if row.topic_id != step.payload["topic_id"]:
        return _definite_fault("RECREATED", f"{name} was recreated outside kafkaform")
    # ElectLeaders names no broker: Kafka elects whichever replica is the first one then.
    leaders = ", ".join(_find_other_leaders(step, row.replicas))
    if not leaders:
        return None
    return _definite_fault("MOVED", f"{name}: another replica is now the first one of {leaders}")


def _find_other_leaders(step: Step, rows: Sequence[Sequence[int]]) -> Iterator[str]:
    for number, leader in step.payload["leaders"].items():
        if int(number) >= len(rows) or rows[int(number)][:1] != (leader,):
            yield f"partition {number}"


def _definite_fault(code: str, message: str) -> Fault:
    return Fault(code, message, FaultClass.DEFINITE, where=API, advice="plan again")


REQUESTS = Requests(Reads(sweep_leaders, read_leaders), {API: send_elections})
