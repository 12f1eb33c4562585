"""What to describe, and the session to ask; how several brokers are asked at the same time, and
what the answer lacks if some do not answer; and where the logs of partitions end, and why that is
unknown for some of them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError
from kafkaform.core.progress import SlowTask
from kafkaform.core.resource import Depth, Fault, FaultClass, Sweep
from kafkaform.core.text import Page
from kafkaform.core.value import FrozenMap, Value

from ..kinds.context import ClusterContext, attempt, live_nodes
from ..protocol.cluster_facts import Capability, find_capability_fault
from ..protocol.faults import fault_of
from ..wire import describe as wire
from ..wire.describe import describe_topics
from ..wire.usage import LATEST, PARTITIONS_AT_ONCE, Place, group_by_topic, list_offsets

T = TypeVar("T")
_NOT_FOUND = frozenset(
    ("UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND", "TRANSACTIONAL_ID_NOT_FOUND")
)
"""The faults of a name that does not exist."""
OUT_OF_TIME = "OUT_OF_TIME"
"""Code of a request that was not sent because a deadline had passed."""
TOPICS_HIDDEN = "Kafka leaves out topics that this principal may not describe"


class DescribeQuery(Struct, frozen=True):
    """What to describe."""

    name: str = "*"
    """A glob."""
    exact: tuple[str, ...] = ()
    """Full names. Each of them must exist."""
    partitions: bool = False
    """Include the partitions of topics."""
    sizes: bool = False
    """Include the bytes on disk of topics."""
    disks: bool = False
    """Include the disks of brokers."""
    entity_type: str = "topics"
    """Which configs: a key of CONFIG_ENTITIES."""
    default: bool = False
    """The configs that all brokers share."""
    keys: tuple[str, ...] = ()
    """Names or globs of configs; none for all."""
    fields: FrozenMap = FrozenMap()
    """Attribute -> glob that the value of an ACL or a quota must match."""


class DescribeSource(Struct, frozen=True):
    """The parts of a session that documents are read from."""

    context: ClusterContext
    sweep: Callable[[str, Depth], Sweep]
    deadline: float | None = None
    """When the last answer must be there (`time.monotonic`); None for no limit but that of each
    request."""

    def ask(
        self, api: str, call: Callable[..., T], *arguments: object, node: str | None = None
    ) -> T | Fault:
        """The answer to one request, or the fault."""
        timeout = self.context.timeout
        if self.deadline is not None:
            timeout = min(timeout, self.deadline - time.monotonic())
            if timeout <= 0:
                return Fault(OUT_OF_TIME, "there was no time left", FaultClass.NOT_APPLIED, api)
        request = partial(call, self.context.wire, *arguments)
        return attempt(api, lambda: request(timeout=timeout), node)

    def list_brokers(self) -> tuple[str, ...]:
        """The live brokers; those of the beginning if there is a deadline, because it takes time to
        find out that one of them is gone."""
        return live_nodes(self.context) if self.deadline is None else self.context.facts.nodes

    def require(self, api: str, call: Callable[..., T], *arguments: object) -> T:
        """The answer to one request. Raises KafkaformError without one."""
        answer = self.ask(api, call, *arguments)
        if isinstance(answer, Fault):
            raise make_read_error(answer)
        return answer


def require_feature(context: ClusterContext, capability: Capability | None) -> None:
    """Raises KafkaformError if this cluster is known not to have the capability."""
    fault = capability and find_capability_fault(capability, context.facts, "DescribeConfigs")
    if fault:
        raise KafkaformError(fault.message, fault.advice)


def make_read_error(fault: Fault) -> KafkaformError:
    """The error for a failed listing."""
    return KafkaformError(f"{fault.message} ({fault.code}, {fault.where})", fault.advice)


def add_suggestion(fault: Fault, name: str, names: Iterable[str]) -> Fault:
    """The fault with the nearest name that exists, if it says that there is no such name."""
    near = suggest(name, names) if fault.code in _NOT_FOUND else ""
    return replace(fault, advice=f"{near} {fault.advice}".strip()) if near else fault


def list_topic_names(context: ClusterContext) -> tuple[str, ...]:
    """The topics that we can see, none if they cannot be listed: for the answer to a wrong name."""
    rows = attempt("Metadata", lambda: describe_topics(context.wire, None, timeout=context.timeout))
    return () if isinstance(rows, Fault) else tuple(row.name for row in rows if row.code == 0)


def describe_fault(fault: Fault | None) -> Value:
    if fault is None:
        return None
    return FrozenMap(code=fault.code, message=fault.message, advice=fault.advice)


READ_THE_ANSWER = "The answer names the reason."
"""Advice of an error that is raised after an answer that lacks something."""


class Gap(Struct, frozen=True):
    """What could not be read, so that the document lacks it."""

    what: str
    """A sentence without a period."""
    fault: Fault
    broker: str | None = None


def explain_gap(gap: Gap) -> Fault:
    """Why something that was named is not listed: it can be in the gap."""
    return Fault(
        "NOT_LISTED",
        "no broker that answered lists it, but the list is incomplete",
        FaultClass.DEFINITE,
        advice=f"{gap.what}: {gap.fault.message}",
    )


def document_gap(gap: Gap) -> FrozenMap:
    return FrozenMap(
        what=gap.what,
        broker=None if gap.broker is None else int(gap.broker),
        code=gap.fault.code,
        message=gap.fault.message,
        advice=gap.fault.advice,
    )


def find_leaderless(source: DescribeSource, topic: str, content: str) -> Iterator[Gap]:
    """A gap if partitions of this topic have no leader, as far as we may know. what: what they
    contain."""
    # The leader of such a partition coordinates what is in it. Without a leader, no broker lists it
    # and none says so.
    rows = source.ask("Metadata", describe_topics, (topic,))
    for row in () if isinstance(rows, Fault) else rows:
        count = sum(partition.leader is None for partition in row.partitions)
        if count:
            message = f"{count} of {len(row.partitions)} partitions of {topic} have no leader"
            fault = Fault(
                "LEADER_NOT_AVAILABLE", message, FaultClass.DEFINITE, advice="start their brokers"
            )
            yield Gap(f"{content} that no broker coordinates now are missing", fault)


T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")


class Listing(Protocol):
    """What one broker lists."""

    @property
    def code(self) -> int:
        """0, or why it is unknown."""


L = TypeVar("L", bound=Listing)
IN_FLIGHT = 4
"""Requests at the same time."""


class NodeRequest(Struct, Generic[T_co], frozen=True):
    """A request that only one broker can answer."""

    api: str
    node: str
    """Broker id."""
    call: Callable[..., T_co]
    """Called with the wire, the arguments, the node, and the timeout in seconds."""
    arguments: tuple[Any, ...] = ()


def send_each(source: DescribeSource, requests: Sequence[NodeRequest[T]]) -> list[T | Fault]:
    """The answers, in the order of the requests."""

    def send(request: NodeRequest[T]) -> T | Fault:
        answer: T | Fault = source.ask(
            request.api, request.call, *request.arguments, request.node, node=request.node
        )
        return answer

    task, answers = SlowTask("Asking the brokers", "requests"), list[T | Fault]()
    with ThreadPoolExecutor(IN_FLIGHT, "describe") as pool:
        for answer in pool.map(send, requests):
            answers.append(answer)
            task.report(len(answers), len(requests))
    return answers


def ask_all_brokers(
    source: DescribeSource,
    api: str,
    call: Callable[..., L],
    arguments: tuple[Any, ...],
    content: str,
) -> tuple[Mapping[str, L], list[Gap]]:
    """Broker id -> its answer, and a gap for each broker without one. what: that which each broker
    lists. Raises KafkaformError if no broker answers."""
    nodes = source.list_brokers()
    answers: dict[str, L] = {}
    gaps: list[Gap] = []
    requests = [NodeRequest(api, node, call, arguments) for node in nodes]
    for node, answer in zip(nodes, send_each(source, requests), strict=True):
        if not isinstance(answer, Fault) and not answer.code:
            answers[node] = answer
            continue
        fault = answer if isinstance(answer, Fault) else fault_of(api, answer.code, "", None, node)
        gaps.append(Gap(f"the {content} of broker {node} are missing", fault, node))
    if gaps and not answers:
        raise make_read_error(gaps[0].fault)
    return answers, gaps


def cut_batches(items: Iterable[A], size: int) -> Iterator[Sequence[A]]:
    """The items in parts of this size at most."""
    listed = list(items)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]


def render_gaps(document: FrozenMap) -> Page:
    """What a document lacks, and what may be hidden."""
    for gap in document["gaps"]:
        yield f"Incomplete: {gap['what']}: {render_problem(gap)}"
    yield f"Others may be hidden: {document['hidden']}."


def render_problem(error: FrozenMap) -> str:
    """Why something could not be read, and what to do."""
    advice = f" Advice: {error['advice'].removesuffix('.')}." if error["advice"] else ""
    code = f" ({error['code']})" if error["code"] else ""
    return f"{error['message']}{code}.{advice}"


TOPICS_AT_ONCE = 2_000
_UNKNOWN_TOPIC, _HIDDEN = 3, 29
"""Codes of a topic that is not there, and of one that this principal may not describe."""


# ── ends of logs ────────────────────────────────────────────────────────────────────────


class End(Struct, frozen=True):
    """Where the log of a partition ends."""

    offset: int | None
    problem: str | None = None
    """Why the offset is unknown: a key of PROBLEMS."""


PROBLEMS: Mapping[str, str] = {
    "topic_missing": "the topic is gone",
    "partition_missing": "the partition is gone",
    "topic_hidden": "the topic is hidden from us",
    "no_leader": "it has no leader",
    "no_end_offset": "the end of its log is unknown",
    "ahead_of_end": "its log ends before this offset",
}
"""What can be wrong with the offset of a partition -> words for people."""


def read_ends(source: DescribeSource, partitions: Iterable[Place]) -> Mapping[Place, End]:
    """The ends of these partitions' logs."""
    # Metadata by name tells a topic that is gone (3) from one that is hidden (29); the listing of
    # all topics leaves out both.
    ordered = sorted(set(partitions))
    leaders, ends = find_leaders(source, ordered)
    led: dict[int, list[Place]] = defaultdict(list)
    for partition, leader in leaders.items():
        led[leader].append(partition)
    requests = [
        NodeRequest("ListOffsets", str(leader), list_offsets, (group_by_topic(batch), LATEST))
        for leader, led_partitions in led.items()
        for batch in cut_batches(led_partitions, PARTITIONS_AT_ONCE)
    ]
    offsets: dict[Place, int] = {}
    for answer in send_each(source, requests):
        if not isinstance(answer, Fault):
            offsets.update(answer)
    for partition in leaders:
        offset = offsets.get(partition)
        ends[partition] = End(offset, None if offset is not None else "no_end_offset")
    return ends


def find_leaders(
    source: DescribeSource, partitions: Iterable[Place]
) -> tuple[Mapping[Place, int], dict[Place, End]]:
    """Partition -> broker that leads it, and the partitions without one."""
    leaders: dict[Place, int] = {}
    ends: dict[Place, End] = {}
    topics = group_by_topic(partitions)
    for names in cut_batches(topics, TOPICS_AT_ONCE):
        answer = source.ask("Metadata", wire.describe_topics, names)
        rows = {} if isinstance(answer, Fault) else {row.name: row for row in answer}
        for name in names:
            for number, leader, problem in _judge_partitions(rows.get(name), topics[name]):
                if leader is None:
                    ends[name, number] = End(None, problem)
                else:
                    leaders[name, number] = leader
    return leaders, ends


def _judge_partitions(
    row: wire.DescribedTopic | None, numbers: Iterable[int]
) -> Iterator[tuple[int, int | None, str | None]]:
    """Number, leader and problem of each of these partitions of a topic."""
    codes = {_UNKNOWN_TOPIC: "topic_missing", _HIDDEN: "topic_hidden"}
    leaders = (
        {} if row is None else {partition.number: partition.leader for partition in row.partitions}
    )
    for number in numbers:
        if row is None or row.code:
            yield number, None, codes.get(row.code if row else 0, "no_end_offset")
        elif number not in leaders:
            yield number, None, "partition_missing"
        else:
            yield number, leaders[number], "no_leader"
