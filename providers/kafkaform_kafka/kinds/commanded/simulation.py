"""What only commands change, in the simulated cluster, and its groups with the logs that they read.

A leader stays until an election, unless its broker is down. Features have the levels that Kafka 4.3
starts with. Everybody sees all delegation tokens, and none expires. A test makes groups and logs:
nobody produces or consumes there. The records of a log have times at equal distances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol import faults, keys
from ...protocol.cluster_facts import METADATA_VERSION, UpgradeType
from ...protocol.faults import name_right
from ..kind import (
    ALTER_SHARE_OFFSETS,
    COMMIT_OFFSETS,
    CREATE_TOKEN,
    DELETE_GROUP,
    DELETE_OFFSETS,
    DELETE_SHARE_OFFSETS,
    END_TOKEN,
    RENEW_TOKEN,
)
from ..simulation import (
    CLUSTER,
    AdminAnswer,
    AdminCall,
    Item,
    ItemVerdict,
    Key,
    ReadScene,
    Refusal,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    require,
    run_batch,
)
from ..topic import resource_type as topics
from ..topic.simulation import SimulatedTopic, topic_key
from .group_offsets import (
    GROUP_OFFSETS,
    GROUP_POSITIONS,
    OFFSETS,
    SHARE,
    GroupMember,
    LogRange,
    Place,
    find_foreign_offsets,
    make_group,
    make_position,
    parse_partition,
    parse_reset,
    render_partition,
)
from .group_requests import find_hurdle
from .resource_types import (
    BEFORE,
    FEATURE,
    FEATURE_API,
    LEADERS,
    LEADERS_API,
    LONGEST,
    TOKEN,
    TOKEN_API,
    find_foreign_paths,
    make_feature,
    make_leaders,
    make_token,
    parse_new,
    parse_period,
)


class SimulatedGroup(Struct, frozen=True):
    """A group."""

    type: str = "classic"
    offsets: FrozenMap = EMPTY
    """Partition (`orders:0`) -> the next offset."""
    members: tuple[GroupMember, ...] = ()


class SimulatedLog(Struct, frozen=True):
    """The log of one partition. Times are in milliseconds since 1970."""

    start: int = 0
    end: int = 0
    first_time: int = 0
    """Of the record at `start`."""
    last_time: int = 0
    """Of the record before `end`."""

    def find_time(self, offset: int) -> int | None:
        """The time of a record; None if there is none."""
        if not self.start <= offset < self.end:
            return None
        steps = max(1, self.end - 1 - self.start)
        return self.first_time + (self.last_time - self.first_time) * (offset - self.start) // steps

    def find_offset(self, moment: int) -> int | None:
        """The first record from this time on; None if all are older."""
        times = ((offset, self.find_time(offset)) for offset in range(self.start, self.end))
        return next((offset for offset, time in times if time is not None and time >= moment), None)


def group_key(name: str) -> Key:
    """The key of a group in the simulated world."""
    return GROUP_OFFSETS, name


def log_key(partition: Place) -> Key:
    """The key of the log of a partition in the simulated world."""
    return GROUP_POSITIONS, render_partition(partition)


# ── reads ───────────────────────────────────────────────────────────────────────────────


def _sweep(kind: str, _: ReadScene, depth: Depth) -> Sweep:
    return Sweep(kind, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read_group(scene: ReadScene, identity: Identity) -> Reading:
    name = identity.key
    if not scene.user.may("Describe", f"group:{name}"):
        return Hidden(identity, name_right("DescribeGroups", name))
    group: SimulatedGroup | None = scene.objects(GROUP_OFFSETS).get(name)
    if group is None:
        return Absent(identity)
    offsets = {parse_partition(text): offset for text, offset in group.offsets.items()}
    attributes = make_group(name, group.type, offsets, group.members)
    return Observed(
        identity,
        attributes,
        details=FrozenMap(state="Stable" if group.members else "Empty"),
        foreign=find_foreign_offsets(attributes),
    )


def _read_position(scene: ReadScene, identity: Identity) -> Reading:
    reset = parse_reset(identity.key)
    reading = _read_group(scene, Identity(identity.instance, GROUP_OFFSETS, reset.group))
    if isinstance(reading, Hidden):
        return replace(reading, identity=identity)
    offsets = reading.attributes[OFFSETS] if isinstance(reading, Observed) else EMPTY
    current = {parse_partition(text): offset for text, offset in offsets.items()}
    stored: Mapping[str, SimulatedTopic] = scene.objects(topics.KIND)
    counts = {name: topic.partitions for name, topic in stored.items()}
    named = tuple(reset.list_topics()) or tuple(dict.fromkeys(topic for topic, _ in current))
    problems = [f"there is no topic {name}" for name in named if name not in counts]
    rows = []
    for partition in dict.fromkeys(reset.select_partitions(current, counts)):
        topic, number = partition
        if number >= counts.get(topic, 0):
            problems += [f"topic {topic} has no partition {number}"] if topic in counts else []
            continue
        log: SimulatedLog = scene.objects(GROUP_POSITIONS).get(
            render_partition(partition), SimulatedLog()
        )
        at_time = log.find_offset(reset.value) if reset.mode == "to-datetime" else None
        row = LogRange(
            partition,
            current.get(partition),
            log.start,
            log.end,
            at_time,
            reset.listed.get(partition),
        )
        rows.append(make_position(row, reset, log.find_time))
    details = FrozenMap(rows=tuple(rows), problems=tuple(problems))
    return Observed(identity, FrozenMap(), details=details)


# ── requests ────────────────────────────────────────────────────────────────────────────


def _change(api: str, call: AdminCall, items: Sequence[Item]) -> RequestResult:
    return run_batch(
        call,
        items,
        lambda item: group_key(item["group"]),
        lambda item: _HANDLERS[api](call, item, call.world.get(group_key(item["group"]))),
    )


def _may(call: AdminCall, operation: str, item: Item, group: SimulatedGroup | None) -> None:
    """Raises Refusal without the right, and for a group that is missing or has members."""
    require(call.user.may(operation, f"group:{item['group']}"), 30)
    require(group is not None, 69)


def _commit(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    # A commit creates the group that it names, so a missing one is no error.
    _may(call, "Read", item, group or SimulatedGroup())
    group = group or SimulatedGroup()
    # UNKNOWN_MEMBER_ID, and not NON_EMPTY_GROUP (68) as for deletions: the coordinator takes the
    # commit for one of a member, which ours is not.
    require(not group.members, 25)
    return AdminAnswer(), replace(group, offsets=group.offsets.with_items(item[OFFSETS])), 1


def _alter_share(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    group = group or SimulatedGroup(SHARE)
    _may(call, "Read", item, group)
    require(group.type == SHARE, 69)
    require(not group.members, 68)
    return AdminAnswer(), replace(group, offsets=group.offsets.with_items(item[OFFSETS])), 1


def _delete_offsets(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    _may(call, "Delete", item, group)
    assert group is not None
    require(not group.members, 68)
    return AdminAnswer(), replace(group, offsets=group.offsets.without(item["partitions"])), 1


def _delete_share(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    _may(call, "Delete", item, group)
    assert group is not None
    require(group.type == SHARE, 69)
    require(not group.members, 68)
    # A share group forgets whole topics, never single partitions (KIP-932).
    gone = [text for text in group.offsets if parse_partition(text)[0] in item["topics"]]
    return AdminAnswer(), replace(group, offsets=group.offsets.without(gone)), 1


def _delete(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    _may(call, "Delete", item, group)
    assert group is not None
    require(not group.members, 68)
    return AdminAnswer(), None, 1


_HANDLERS = {
    COMMIT_OFFSETS.name: _commit,
    ALTER_SHARE_OFFSETS.name: _alter_share,
    DELETE_OFFSETS.name: _delete_offsets,
    DELETE_SHARE_OFFSETS.name: _delete_share,
    DELETE_GROUP.name: _delete,
}
"""API -> what the coordinator does with one item."""


def _check(scene: ReadScene, step: Step) -> Fault | None:
    return find_hurdle(step, _read_group(scene, step.identity))


SIMULATED_GROUP = SimulatedKind(
    reads=SimulatedReads(
        "ListGroups",
        "DescribeGroups",
        "DescribeGroups",
        partial(_sweep, GROUP_OFFSETS),
        _read_group,
    ),
    handlers={api: partial(_change, api) for api in _HANDLERS},
    checks=dict.fromkeys(_HANDLERS, _check),
)
SIMULATED_POSITIONS = SimulatedKind(
    reads=SimulatedReads(
        "ListOffsets",
        "ListOffsets",
        "ListOffsets",
        partial(_sweep, GROUP_POSITIONS),
        _read_position,
    )
)


def elect_leaders(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """ElectLeaders: the first replica of each named partition becomes its leader if its broker is
    up; partitions are independent of each other."""
    return run_batch(
        call, items, lambda item: topic_key(item["name"]), lambda item: _elect_topic(call, item)
    )


def _elect_topic(call: AdminCall, item: Item) -> ItemVerdict:
    require(call.user.may("Alter", CLUSTER), 31)
    topic: SimulatedTopic | None = call.world.of(topics.KIND).get(item["name"])
    named = [int(number) for number in item["leaders"]]
    if topic is None or any(number >= topic.partitions for number in named):
        raise Refusal(3)
    able = [n for n in named if topic.assignment[n][0] in call.brokers]
    led = replace(topic, leaders=topic.leaders.without(map(str, able)))
    code = 0 if able == named else 80
    return AdminAnswer(code, made=led), led, int(led != topic)


def _check_step_of_leaders(scene: ReadScene, step: Step) -> Fault | None:
    """The check that replaces a dry run: right, topic and first replicas."""
    name = step.payload["name"]
    topic = scene.objects(topics.KIND).get(name)
    if not scene.user.may("Alter", CLUSTER):
        return faults.fault_of(LEADERS_API, 31, name)
    if topic is None:
        return faults.fault_of("Metadata", 3, name)
    first = {str(number): row[0] for number, row in enumerate(topic.assignment)}
    targets = step.payload["leaders"]
    if topic.id == step.payload["topic_id"] and all(first.get(n) == targets[n] for n in targets):
        return None
    cause = f"{name} was recreated or moved outside kafkaform"
    return Fault("MOVED", cause, FaultClass.DEFINITE, where=LEADERS_API, advice="plan again")


def _sweep_leaders(_: ReadScene, depth: Depth) -> Sweep:
    return Sweep(LEADERS, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read_leaders(scene: ReadScene, identity: Identity) -> Reading:
    name = identity.key
    if not scene.user.may_on_topic("Describe", name):
        return Hidden(identity, faults.name_right("Metadata", name))
    topic: SimulatedTopic | None = scene.objects(topics.KIND).get(name)
    if topic is None:
        return Absent(identity)
    first = {str(number): row[0] for number, row in enumerate(topic.assignment)}
    now = {n: _find_leader(topic, n, scene.live) for n in range(topic.partitions)}
    attributes = make_leaders(name, now)
    return Observed(
        identity,
        attributes,
        topic.id,
        details=FrozenMap(
            preferred=FrozenMap(first),
            ready=tuple(n for n, broker in first.items() if broker in scene.live),
        ),
        foreign=find_foreign_paths(attributes),
    )


def _find_leader(topic: SimulatedTopic, number: int, live: Sequence[int]) -> int:
    choices = (topic.led[number], *topic.assignment[number])
    return next((broker for broker in choices if broker in live), -1)


SIMULATED_LEADERS = SimulatedKind(
    reads=SimulatedReads("ListTopics", "DescribeTopics", "Metadata", _sweep_leaders, _read_leaders),
    handlers={LEADERS_API: elect_leaders},
    checks={LEADERS_API: _check_step_of_leaders},
)


SUPPORTED: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 30),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
}
"""Feature -> lowest and highest level, at which it starts."""
LOSSLESS = 29
"""The lowest level of metadata.version to which a safe downgrade is possible."""


def feature_key(name: str) -> Key:
    """The key of a feature in the simulated world."""
    return FEATURE, name


def update_features(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """UpdateFeatures: all features of a request succeed, or none (KIP-1022)."""
    answers, changes = run_batch(
        call, items, lambda item: feature_key(item["name"]), lambda item: _update(call, item)
    )
    refused = next((answer for answer in answers if answer.code), None)
    return (answers, changes) if refused is None else ([refused for _ in items], type(changes)())


def _update(call: AdminCall, item: Item) -> ItemVerdict:
    require(call.user.may("Alter", CLUSTER), 31)
    name, level, kind = item["name"], item["level"], item["upgrade_type"]
    low, high = SUPPORTED.get(name, (0, 0))
    if not low <= level <= high:
        raise Refusal(95, f"Broker 1 only supports versions {low}-{high}")
    now = call.world.get(feature_key(name))
    now = high if now is None else now
    if level < now and kind == UpgradeType.UPGRADE:
        raise Refusal(95, "Can't downgrade without setting the upgrade type.")
    if level > now and kind != UpgradeType.UPGRADE:
        raise Refusal(95, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION and level < min(now, LOSSLESS):
        raise Refusal(95, "Refusing to perform the requested downgrade.")
    return AdminAnswer(), level, 1


def _sweep_feature(_: ReadScene, depth: Depth) -> Sweep:
    return Sweep(FEATURE, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read_feature(scene: ReadScene, identity: Identity) -> Reading:
    if identity.key not in SUPPORTED:
        return Absent(identity)
    level = scene.objects(FEATURE).get(identity.key, SUPPORTED[identity.key][1])
    return Observed(identity, make_feature(identity.key, level))


SIMULATED_FEATURE = SimulatedKind(
    reads=SimulatedReads(
        "ApiVersions", "ApiVersions", "ApiVersions", _sweep_feature, _read_feature
    ),
    handlers={FEATURE_API: update_features},
)


# The defaults of brokers: a token expires after a day (delegation.token.expiry.time.ms), and lives
# for 7 days at most (delegation.token.max.lifetime.ms).
_DAY = 86_400_000


class SimulatedToken(Struct, frozen=True):
    """One token. Times are in milliseconds of the cluster's clock."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expires: int
    ends: int


def create_token(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """CreateDelegationToken: the id follows from when the token was asked for."""

    def create(item: Item) -> ItemVerdict:
        now = int(call.now * 1000)
        requester = call.user.principal
        ends = now + (parse_period(item.get("max_lifetime") or "") or 7 * _DAY)
        token = SimulatedToken(
            item.get("owner") or requester,
            requester,
            tuple(item["renewers"]),
            now,
            min(now + _DAY, ends),
            ends,
        )
        return AdminAnswer(made=_name(item["stamp"])), token, 1

    return run_batch(call, items, lambda item: (TOKEN, _name(item["stamp"])), create)


def move_end(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """RenewDelegationToken and ExpireDelegationToken of tokens that exist."""

    def move(item: Item) -> ItemVerdict:
        token: SimulatedToken | None = call.world.get(_key_of(item))
        require(token is not None, 62)
        assert token is not None
        period = parse_period(item["period"])
        # Brokers remove a token that is to expire at once, so no listing shows it as expired.
        if not period and item["period"] != LONGEST:
            return AdminAnswer(), None, 1
        expires = min(int(call.now * 1000) + (period or _DAY), token.ends)
        moved = SimulatedToken(
            token.owner, token.requester, token.renewers, token.issued, expires, token.ends
        )
        return AdminAnswer(made=moved), moved, 1

    return run_batch(call, items, _key_of, move)


def _key_of(item: Item) -> Key:
    return TOKEN, item["token_id"]


def _name(stamp: str) -> str:
    return f"token-{stamp}"


def _sweep_token(scene: ReadScene, depth: Depth) -> Sweep:
    items = tuple(
        _observe_token(Identity(scene.instance, TOKEN, name), token)
        for name, token in scene.objects(TOKEN).items()
    )
    return Sweep(TOKEN, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


def _read_token(scene: ReadScene, identity: Identity) -> Reading:
    stored = scene.objects(TOKEN)
    if keys.split(identity.key)[0] == BEFORE:
        return Observed(identity, FrozenMap(), details=FrozenMap(ids=tuple(sorted(stored))))
    new = parse_new(identity.key)
    if new is not None:
        name = _name(new.stamp)
        return Observed(identity, new.attributes, name) if name in stored else Absent(identity)
    token = stored.get(identity.key)
    return Absent(identity) if token is None else _observe_token(identity, token)


def _observe_token(identity: Identity, token: SimulatedToken) -> Observed:
    times = {"issued": token.issued, "expires": token.expires, "ends": token.ends}
    attributes = make_token(identity.key, token.owner, token.requester, token.renewers, times)
    return Observed(identity, attributes, identity.key)


def _check_step_of_token(scene: ReadScene, step: Step) -> Fault | None:
    token_id = step.payload.get("token_id")
    if token_id is None or token_id in scene.objects(TOKEN):
        return None
    return faults.fault_of(step.request.name, 62, token_id)


_SENT = (RENEW_TOKEN.name, END_TOKEN.name)
SIMULATED_TOKEN = SimulatedKind(
    reads=SimulatedReads(TOKEN_API, TOKEN_API, TOKEN_API, _sweep_token, _read_token),
    handlers={CREATE_TOKEN.name: create_token, **dict.fromkeys(_SENT, move_end)},
    checks=dict.fromkeys((CREATE_TOKEN.name, *_SENT), _check_step_of_token),
    made={CREATE_TOKEN.name: lambda _, answer: (answer.made, None)},
)
