"""The state of the simulated cluster: its objects, the brokers that show them with a delay, users
with their rights, and the configs of a broker with default settings; its controller, with the part
that each kind of object provides for it; and mishaps of requests as data, with the schedule that
gives them to requests.

A mishap says what happens to the effect of a request and to its answer. Nothing is random, so a
failing schedule can be replayed exactly.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from kafkaform.core.change import Step
from kafkaform.core.resource import Depth, Facts, Fault, Identity, Reading, Sweep
from kafkaform.core.value import EMPTY, FrozenMap

from ..protocol.broker_rules import MAX_RECORDS
from ..protocol.cluster_facts import NEWEST, KafkaFacts, is_before, presence_faults
from ..protocol.config_keys import ALL_TOPIC_KEYS

Key = tuple[str, str]
"""The kind of an object and the key of its identity."""

Changes = dict[Key, Any]
"""One atomic batch: key -> the object after the batch, None if it is deleted."""


class SimulatedWorld:
    """Frozen objects by kind and key. Only `apply` changes them."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Any]] = {}

    def of(self, kind: str) -> Mapping[str, Any]:
        """A live view of the objects of a kind by key."""
        return MappingProxyType(self._kinds.setdefault(kind, {}))

    def get(self, key: Key) -> Any:
        """The object, or None."""
        return self._kinds.get(key[0], {}).get(key[1])

    def apply(self, changes: Changes) -> None:
        """Replay one batch of the log."""
        for (kind, key), value in changes.items():
            objects = self._kinds.setdefault(kind, {})
            if value is None:
                objects.pop(key, None)
            else:
                objects[key] = value

    def __iter__(self) -> Iterator[Key]:
        return ((kind, key) for kind, objects in self._kinds.items() for key in objects)


Right = tuple[str, str]
"""(operation, resource): `("Describe", "topic:orders")`, `("Create", "topic:app-*")` for a
prefix, `("AlterConfigs", "topic:*")` for all, `("Create", "cluster")`."""

CLUSTER = "cluster"

_IMPLIED_BY = {
    "Describe": ("Describe", "Read", "Write", "Delete", "Alter"),
    "DescribeConfigs": ("DescribeConfigs", "AlterConfigs"),
}
"""Operation -> the operations that imply it (StandardAuthorizer)."""


# Rights are set directly and do not follow from the simulated ACLs: a test chooses both.
class User(Struct, frozen=True):
    """A user of the simulated cluster."""

    name: str
    root: bool = False
    """True for a super user."""
    rights: frozenset[Right] = frozenset()

    @property
    def principal(self) -> str:
        return f"User:{self.name}"

    def may(self, operation: str, resource: str) -> bool:
        """True if the user is root, or has the operation or one that implies it."""
        if self.root:
            return True
        operations = _IMPLIED_BY.get(operation, (operation,))
        return any(
            right in operations and _covers(pattern, resource) for right, pattern in self.rights
        )

    def may_on_topic(self, operation: str, name: str) -> bool:
        """`may` for a topic."""
        return self.may(operation, f"topic:{name}")


def make_user(name: str, rights: Iterable[Right] = ()) -> User:
    """A user with these rights only."""
    return User(name, rights=frozenset(rights))


def _covers(pattern: str, resource: str) -> bool:
    if pattern.endswith("*"):
        return resource.startswith(pattern[:-1])
    return pattern == resource


class _Unseen(Struct):
    """A committed batch that the broker does not show yet."""

    changes: Changes
    reads: int
    """How many more reads do not show it."""
    due: float
    """Until when it is not shown."""


# Real brokers apply the metadata log asynchronously: right after 1,000 successful creates, a
# listing showed 200 of the topics.
class SimulatedBroker:
    """Shows committed batches whole and in the order of the log."""

    def __init__(self) -> None:
        self.up = True
        """Whether the cluster lists it."""
        self.hangs = False
        """Whether it leaves all requests without an answer."""
        self.lag: tuple[int, float] = (0, 0.0)
        """Reads and seconds during which later writes are not shown."""
        self._world = SimulatedWorld()
        self._unseen: deque[_Unseen] = deque()

    def commit(self, changes: Changes, now: float) -> None:
        """Follow the log by one batch."""
        reads, seconds = self.lag
        if self._unseen or reads or seconds:
            self._unseen.append(_Unseen(changes, reads, now + seconds))
        else:
            self._world.apply(changes)

    def look(self, now: float) -> SimulatedWorld:
        """The world as one read at this time shows it."""
        # Only from the front: a later batch never shows before an earlier one.
        while self._unseen and not self._unseen[0].reads and self._unseen[0].due <= now:
            self._world.apply(self._unseen.popleft().changes)
        for unseen in self._unseen:
            unseen.reads = max(0, unseen.reads - 1)
        return self._world


_NEVER = "9223372036854775807"

TOPIC_DEFAULTS = FrozenMap(
    {
        "cleanup.policy": "delete",
        "compression.gzip.level": "-1",
        "compression.lz4.level": "9",
        "compression.type": "producer",
        "compression.zstd.level": "3",
        "delete.retention.ms": "86400000",
        "file.delete.delay.ms": "60000",
        "flush.messages": _NEVER,
        "flush.ms": _NEVER,
        "follower.replication.throttled.replicas": "",
        "index.interval.bytes": "4096",
        "leader.replication.throttled.replicas": "",
        "local.retention.bytes": "-2",
        "local.retention.ms": "-2",
        "max.compaction.lag.ms": _NEVER,
        "max.message.bytes": "1048588",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": _NEVER,
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
        "min.insync.replicas": "1",
        "preallocate": "false",
        "remote.log.copy.disable": "false",
        "remote.log.delete.on.disable": "false",
        "remote.storage.enable": "false",
        "retention.bytes": "-1",
        "retention.ms": "604800000",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "segment.jitter.ms": "0",
        "segment.ms": "604800000",
        "unclean.leader.election.enable": "false",
    }
)
"""Those of Kafka 4.3."""


@cache
def make_release_facts(release: str) -> Facts:
    """The facts of a cluster of which only the Kafka release is known."""
    return Facts("", values=KafkaFacts(kafka_version=release))


def list_topic_defaults(release: str) -> dict[str, str]:
    """Those of this Kafka release."""
    facts = make_release_facts(release)
    defaults = {
        key: TOPIC_DEFAULTS.get(key, row.default)
        for key, row in ALL_TOPIC_KEYS.items()
        if not any(presence_faults(row, key, facts))
    }
    # KIP-1030 lowered it.
    if "message.timestamp.after.max.ms" in defaults and is_before(release, "4.0"):
        defaults["message.timestamp.after.max.ms"] = _NEVER
    return defaults


Item = Mapping[str, Any]
"""The payload of one step, as the resource types make it."""

Charge = Callable[[int], float | None]
"""Mutations of one item -> None, or the seconds to wait if nothing was spent and the item must be
refused."""


# ── the controller ──────────────────────────────────────────────────────────────────────


class AdminAnswer(Struct, frozen=True):
    """The answer to one item."""

    code: int = 0
    """Kafka's error code, or 0."""
    message: str = ""
    made: Any = None
    """The object after the request."""
    wait: float = 0.0
    """The throttle time in seconds."""


class AdminCall(Struct, frozen=True):
    """One request with everything that a handler needs besides its items."""

    world: SimulatedWorld
    user: User
    brokers: tuple[int, ...]
    """The live brokers."""
    defaults: tuple[int, int]
    """Default partitions and replication factor."""
    deletable: bool
    """delete.topic.enable."""
    new_id: Callable[[], str]
    """Makes topic ids."""
    veto: Callable[[int, str], AdminAnswer | None]
    """Position and name of an item -> an injected error, or None."""
    charge: Charge
    """Takes the mutations of an item from the quota."""
    now: float = 0.0
    """Seconds of the cluster's clock."""
    elr: bool = False
    """True if eligible leader replicas are on (KIP-966)."""
    kafka_version: str = NEWEST
    """The Kafka release of the cluster."""

    @property
    def facts(self) -> Facts:
        """What rules have to know about the cluster."""
        return make_release_facts(self.kafka_version)


RequestResult = tuple[list[AdminAnswer], Changes]
Handler = Callable[[AdminCall, Sequence[Item]], RequestResult]
ItemVerdict = tuple[AdminAnswer, Any, int]
"""The answer to an item, the object that it makes, and how many metadata records that costs."""


class Refusal(Exception):
    """The controller refuses this item with an error code."""

    def __init__(self, code: int, message: str = "", wait: float = 0.0) -> None:
        super().__init__(message)
        self.answer = AdminAnswer(code, message, wait=wait)


def run_batch(
    call: AdminCall,
    items: Sequence[Item],
    key_of: Callable[[Item], Key],
    handle: Callable[[Item], ItemVerdict],
    twice: int | None = 42,
) -> RequestResult:
    """Handle the items of one request as one atomic batch.

    key_of: the object of an item; twice: the error code of items with the same object, None if that
    is allowed.
    """
    keys = [key_of(item) for item in items]
    doubled = {key for key, count in Counter(keys).items() if count > 1} if twice else set()
    answers, changes, records = [], Changes(), 0
    for index, (item, key) in enumerate(zip(items, keys, strict=True)):
        if key in doubled:
            answers.append(AdminAnswer(twice or 0, f"the request names {key[1]} twice"))
            continue
        vetoed = call.veto(index, key[1])
        answer, product, cost = (vetoed, None, 0) if vetoed else _handle_item(handle, item)
        answers.append(answer)
        if cost:
            changes[key] = product
            records += cost
    # Items fail on their own, but those that succeed are committed together or, over 10,000
    # records, not at all.
    if records > MAX_RECORDS:
        return refuse_all(items, 44, "The request would make too many metadata records.")
    return answers, changes


def refuse_all(items: Sequence[Item], code: int, message: str) -> RequestResult:
    """The same refusal for every item, and no change."""
    return [AdminAnswer(code, message) for _ in items], {}


def require(allowed: bool, code: int) -> None:
    """Raises Refusal with this code unless `allowed`."""
    if not allowed:
        raise Refusal(code)


def _handle_item(handle: Callable[[Item], ItemVerdict], item: Item) -> ItemVerdict:
    try:
        return handle(item)
    except Refusal as refusal:
        return refusal.answer, None, 0


class ReadScene(Struct, frozen=True):
    """One read of the simulated cluster: who reads, and what one broker shows."""

    instance: str
    user: User
    facts: Facts
    world: SimulatedWorld
    """The objects as one broker shows them to one read."""
    defaults: Mapping[str, str]
    """The brokers' topic configs."""
    live: tuple[int, ...]
    """The brokers that are up."""

    def objects(self, kind: str) -> Mapping[str, Any]:
        """The objects of a kind by key."""
        return self.world.of(kind)


class SimulatedReads(Struct, frozen=True):
    """How one kind is listed and read."""

    listing: str
    """The name of a listing in schedules of mishaps."""
    describing: str
    """The name of a read by identity in schedules; kinds with the same name share one read."""
    api: str
    """The API's name in faults."""
    sweep: Callable[[ReadScene, Depth], Sweep]
    """Never raises."""
    read: Callable[[ReadScene, Identity], Reading]
    """Never raises."""


StepCheck = Callable[[ReadScene, Step], Fault | None]
AnswerReader = Callable[[ReadScene, AdminAnswer], tuple[str | None, FrozenMap | None]]


class SimulatedKind(Struct, frozen=True):
    """The part of the simulated cluster for one kind."""

    reads: SimulatedReads
    handlers: Mapping[str, Handler] = EMPTY
    """API -> what the controller does with its requests."""
    # As on a real cluster, where these requests have no `validate_only`.
    checks: Mapping[str, StepCheck] = EMPTY
    """API without a dry run -> the check that replaces it."""
    made: Mapping[str, AnswerReader] = EMPTY
    """API -> reads the incarnation and the attributes in the answer to an applied step."""


# Not an Exception: no handler for faults may catch the death of the process.
class Killed(BaseException):
    """The process died at this point of a request."""


class Unreachable(Exception):
    """The request did not reach the cluster."""


class Lost(Exception):
    """The request was sent and no answer came: its effect is unknown."""


class Ending(Enum):
    """How a request ends for its sender."""

    ANSWER = "answer"
    UNREACHABLE = "unreachable"
    LOST = "lost"
    KILLED = "killed"


class Mishap(Struct, frozen=True):
    """What happens to one request."""

    ending: Ending = Ending.ANSWER
    delay: float | None = 0
    """Seconds until the request takes effect; None if it never does."""
    reads: int = 0
    """It takes effect earlier after this many reads; 0 if it does not."""
    code: int = 0
    """The error code of the items that match, instead of an effect; 0 for none."""
    names: str = "*"
    """A glob for the names of the items that get `code`."""
    first: int = 0
    """The position of the first item that gets `code`."""
    retry_after: float = 0.0
    """Throttle time in seconds, with code 89."""
    elsewhere: Any = None
    """The SimulatedCluster that answers at the address from now on."""
    beneath: bool = False
    """True if open connections stay open and lead to `elsewhere`."""

    @property
    def sent(self) -> bool:
        """True if the request leaves the client."""
        return self.delay is not None or self.ending in (Ending.ANSWER, Ending.LOST)


def not_sent() -> Mishap:
    """The connection fails before the request is sent."""
    return Mishap(Ending.UNREACHABLE, delay=None)


def lost_reply() -> Mishap:
    """The request takes effect, and the answer is lost."""
    return Mishap(Ending.LOST)


def late_effect(seconds: float, reads: int = 0) -> Mishap:
    """No answer comes, and the request takes effect after some seconds or some reads."""
    return Mishap(Ending.LOST, delay=seconds, reads=reads)


def lost_request() -> Mishap:
    """No answer comes, and the request never takes effect."""
    return Mishap(Ending.LOST, delay=None)


def killed_before() -> Mishap:
    """The process dies before the request is sent."""
    return Mishap(Ending.KILLED, delay=None)


def killed_after(seconds: float = 0, reads: int = 0) -> Mishap:
    """The process dies before it gets the answer; the request takes effect after some seconds or
    some reads."""
    return Mishap(Ending.KILLED, delay=seconds, reads=reads)


def replaced_cluster(cluster: Any, *, executed: bool) -> Mishap:
    """The cluster dies with this request, and another one answers at its address. done: the request
    took effect before."""
    return Mishap(Ending.LOST, delay=0 if executed else None, elsewhere=cluster)


def led_elsewhere(cluster: Any) -> Mishap:
    """A proxy leads the open connection to another cluster, which gets this request."""
    return Mishap(elsewhere=cluster, beneath=True)


def throttled_items(retry_after: float, first: int = 0) -> Mishap:
    """The mutation quota is used up from item `first` on (THROTTLING_QUOTA_EXCEEDED, KIP-599)."""
    return Mishap(code=89, first=first, retry_after=retry_after)


def refused_items(code: int, names: str = "*") -> Mishap:
    """The items whose names match get this error code; the others succeed."""
    return Mishap(code=code, names=names)


NONE = Mishap()


class _Planned(Struct):
    """A mishap for the next `times` requests of an API, after `skip` others."""

    mishap: Mishap
    api: str
    skip: int
    times: int


class Schedule:
    """The mishaps of coming requests, in the order in which they were scheduled."""

    def __init__(self) -> None:
        self._planned: list[_Planned] = []

    def schedule(self, mishap: Mishap, api: str = "*", *, skip: int = 0, times: int = 1) -> None:
        """Schedule a mishap for the next `times` requests that match, after `skip` of them.

        api: a glob for names of requests, such as `CreateTopics`, `DescribeTopics`, `ListTopics`; a
        dry run is `CreateTopics:validate`, which `CreateTopics` does not match.
        """
        self._planned.append(_Planned(mishap, api, skip, times))

    def clear(self) -> None:
        """Remove all mishaps."""
        self._planned.clear()

    @property
    def pending(self) -> int:
        """The number of mishaps that have not happened yet."""
        return sum(planned.times for planned in self._planned)

    def take(self, api: str) -> Mishap:
        """The mishap of this request: the first one that is due, or NONE."""
        mishap = None
        for planned in self._planned:
            if not fnmatchcase(api, planned.api):
                continue
            if planned.skip:
                planned.skip -= 1
            elif mishap is None:
                mishap = planned
        if mishap is None:
            return NONE
        mishap.times -= 1
        if not mishap.times:
            self._planned.remove(mishap)
        return mishap.mishap
