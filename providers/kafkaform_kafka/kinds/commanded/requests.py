"""Elects leaders and reads them from Metadata; updates the finalized levels of features and reads
them from ApiVersions (KIP-584); lists, reads, creates, renews and expires delegation tokens
(KIP-48).

Brokers leave out tokens that we may not see, without an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap

from ...protocol import keys
from ...protocol.apis import MAX_PARTITIONS_ELECTED
from ...protocol.cluster_facts import KafkaFacts, UpgradeType
from ...protocol.faults import fault_of
from ...wire import security as wire
from ...wire.answers import ItemAnswer
from ...wire.client import Wire
from ...wire.cluster import FeatureRow, Update, UpdateAnswer, read_features, update_features
from ...wire.security import TokenRow, TokenRows, describe_tokens
from ...wire.topics import (
    ANSWER_MARGIN,
    Partition,
    PartitionAnswers,
    TopicRow,
    elect_leaders,
    list_topics,
)
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt
from ..kind import CREATE_TOKEN, END_TOKEN, RENEW_TOKEN
from ..topic.replica_moves import combine_faults, make_part_fault
from ..topic.requests import read_topic_rows
from .resource_types import (
    BEFORE,
    CLOCK_SKEW,
    FEATURE,
    FEATURE_API,
    LEADERS,
    LEADERS_API,
    LONGEST,
    TOKEN,
    TOKEN_API,
    NewToken,
    find_foreign_paths,
    make_feature,
    make_leaders,
    make_token,
    parse_new,
    parse_period,
)


def sweep_leaders(_: ClusterContext, depth: Depth) -> Sweep:
    """Always empty: leaders are only read by the name of their topic."""
    return Sweep(LEADERS, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


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
    attributes = make_leaders(row.name, dict(enumerate(row.leaders)))
    return Observed(
        identity,
        attributes,
        row.topic_id,
        details=FrozenMap(preferred=FrozenMap(first), ready=tuple(ready)),
        foreign=find_foreign_paths(attributes),
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
            {
                partition: make_part_fault(LEADERS_API, partition, answers, _NOT_NEEDED)
                for partition in cut
            }
        )
    return faults


def _elect(context: ClusterContext, partitions: Sequence[Partition]) -> PartitionAnswers | Fault:
    named: dict[str, list[int]] = {}
    for name, number in partitions:
        named.setdefault(name, []).append(number)
    answers = attempt(LEADERS_API, lambda: elect_leaders(context.wire, named, context.timeout))
    if isinstance(answers, PartitionAnswers) and answers.code:
        return fault_of(LEADERS_API, answers.code, ", ".join(named), answers.message)
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
        return [Reply(step, fault_of(LEADERS_API, 31, step.payload["name"])) for step in steps]
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
    return Fault(code, message, FaultClass.DEFINITE, where=LEADERS_API, advice="plan again")


LEADERS_REQUESTS = Requests(Reads(sweep_leaders, read_leaders), {LEADERS_API: send_elections})


def sweep_levels(_: ClusterContext, depth: Depth) -> Sweep:
    """Always empty: levels are only read by the name of their feature."""
    return Sweep(FEATURE, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def read_levels(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """The levels of these features. node: the broker to ask, None for any."""
    # ApiVersions needs no right, so no level is hidden.
    row = attempt("ApiVersions", lambda: read_features(context.wire, context.timeout, node), node)
    fault = find_feature_fault(row)
    if fault is not None:
        return {identity: Failed(identity, fault) for identity in ids}
    assert isinstance(row, FeatureRow)
    return {identity: _observe_level(identity, row) for identity in ids}


def find_feature_fault(row: FeatureRow | Fault) -> Fault | None:
    """Why the levels are not known; None if they are."""
    if isinstance(row, Fault):
        return row
    # Brokers without KRaft, and brokers that have just started: an empty list says nothing then.
    if row.epoch >= 0:
        return None
    return Fault(
        "UNKNOWN_EPOCH",
        "the broker does not know the finalized features",
        FaultClass.DEFINITE,
        where="ApiVersions",
        advice="run the command again; features need Kafka 3.3 or newer, with KRaft",
    )


def _observe_level(identity: Identity, row: FeatureRow) -> Reading:
    name = identity.key
    if name not in row.supported and name not in row.finalized:
        return Absent(identity)
    # A level of 0 means that the feature is off, and is left out of the answer.
    return Observed(identity, make_feature(name, row.finalized.get(name, 0)))


def send_updates(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """One reply for each feature. All are in one request, because levels depend on each other
    (KIP-1022)."""
    updates = [Update(**{name: step.payload[name] for name in _FIELDS}) for step in order.steps]
    answer = attempt(
        FEATURE_API,
        lambda: update_features(context.wire, updates, context.timeout, validate=order.dry),
    )
    return [Reply(step, _find_fault_of_feature(step, answer)) for step in order.steps]


_FIELDS = Update.__struct_fields__


def _find_fault_of_feature(step: Step, answer: UpdateAnswer | Fault) -> Fault | None:
    if isinstance(answer, Fault):
        return answer
    name = step.payload["name"]
    item: UpdateAnswer | ItemAnswer | None = answer if answer.code else answer.items.get(name)
    if item is None or not item.code:
        return None
    fault = fault_of(FEATURE_API, item.code, name, item.message)
    advice = _ADVICE.get(step.payload["upgrade_type"]) if item.code == _INVALID else None
    return fault if advice is None else replace(fault, advice=advice)


_INVALID = 95
"""INVALID_UPDATE_VERSION"""
_ADVICE = {
    UpgradeType.SAFE_DOWNGRADE: "keep the level: Kafka refuses every downgrade that could lose "
    "metadata, unless --unsafe-downgrade asks for it, which Kafka up to 4.3 does not have for "
    "metadata.version",
    UpgradeType.UNSAFE_DOWNGRADE: "keep the level: this version of Kafka has no such downgrade",
}
"""Kind of a downgrade -> what to do if Kafka refuses it."""


FEATURE_REQUESTS = Requests(Reads(sweep_levels, read_levels), {FEATURE_API: send_updates})


_PAUSE = 0.05
"""Seconds between two looks at a token whose new time is not shown yet."""


def sweep_tokens(context: ClusterContext, depth: Depth) -> Sweep:
    """The tokens that we can see, or the fault of the request."""
    rows = list_rows(context)
    if isinstance(rows, Fault):
        return Sweep(TOKEN, depth, (), Coverage(CoverageKind.FAILED, rows))
    items = tuple(observe_row(context, row) for row in rows)
    return Sweep(TOKEN, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


def read_tokens(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These tokens, in one request. node: the broker to ask, None for any."""
    rows = list_rows(context, node)
    if isinstance(rows, Fault):
        return {identity: Failed(identity, rows) for identity in ids}
    # The lists of what exists before come first: reads of new tokens use them.
    ordered = sorted(ids, key=lambda identity: not _is_list(identity))
    return {identity: _make_reading(context, identity, rows) for identity in ordered}


def list_rows(context: ClusterContext, node: str | None = None) -> Sequence[TokenRow] | Fault:
    """The tokens that we can see, with their secrets.

    A broker acknowledges a new time of a token before every broker shows it, so the answer is
    waited for, at most for the operation timeout.
    """
    until = time.monotonic() + context.timeout
    while True:
        rows = _ask_rows(context, node)
        if isinstance(rows, Fault) or not _is_late(context, rows) or time.monotonic() >= until:
            return rows
        time.sleep(_PAUSE)


def _is_late(context: ClusterContext, rows: Sequence[TokenRow]) -> bool:
    """Whether a token still has the time that it had before this session changed it."""
    ends = ((row.expires, *context.token_ends.get(row.token_id, (0, 0))) for row in rows)
    return any(now == before != after for now, before, after in ends)


def _ask_rows(context: ClusterContext, node: str | None) -> Sequence[TokenRow] | Fault:
    answer = attempt(TOKEN_API, lambda: describe_tokens(context.wire, context.timeout, node), node)
    if isinstance(answer, TokenRows) and answer.code:
        return fault_of(TOKEN_API, answer.code, "", broker=node or "")
    return answer if isinstance(answer, Fault) else answer.rows


def observe_row(context: ClusterContext, row: TokenRow) -> Observed:
    """The token without its secret."""
    times = {"issued": row.issued, "expires": row.expires, "ends": row.ends}
    attributes = make_token(row.token_id, row.owner, row.requester, row.renewers, times)
    identity = Identity(context.instance, TOKEN, row.token_id)
    return Observed(identity, attributes, row.token_id)


def _make_reading(context: ClusterContext, identity: Identity, rows: Sequence[TokenRow]) -> Reading:
    if _is_list(identity):
        return _keep_list(context, identity, rows)
    new = parse_new(identity.key)
    if new is not None:
        row = _find_new(context, new, rows)
        # Brokers shorten a lifetime to their own limit, so what is asked for is an upper bound.
        return Absent(identity) if row is None else Observed(identity, new.attributes, row.token_id)
    token = next((row for row in rows if row.token_id == identity.key), None)
    return Absent(identity) if token is None else observe_row(context, token)


def _is_list(identity: Identity) -> bool:
    return keys.split(identity.key)[0] == BEFORE


def _keep_list(context: ClusterContext, identity: Identity, rows: Sequence[TokenRow]) -> Observed:
    """The ids of the tokens that exist before one is created, which the session keeps."""
    ids = frozenset(row.token_id for row in rows)
    context.tokens[keys.split(identity.key)[1]] = ids
    return Observed(identity, FrozenMap(), details=FrozenMap(ids=tuple(sorted(ids))))


def _find_new(context: ClusterContext, new: NewToken, rows: Sequence[TokenRow]) -> TokenRow | None:
    """The token that was created as this one, None if there is none."""
    able = [row for row in rows if new.is_asked_for(row.owner, row.requester, row.renewers)]
    earlier_ids = context.tokens.get(new.stamp)
    if earlier_ids is not None:
        able = [row for row in able if row.token_id not in earlier_ids]
    else:
        # Another session asked for it, and ended before it got an answer.
        able = [row for row in able if row.issued >= new.request_time - CLOCK_SKEW]
    token_id = context.made_tokens.get(new.stamp)
    if token_id is not None:
        able = [row for row in able if row.token_id == token_id]
    return max(able, key=lambda row: row.issued, default=None)


_NOT_FOUND = 62
End = Callable[[Wire, Secret, int, float], wire.TokenAnswer]
"""Sends a new end of a token: its HMAC, a period in milliseconds, a timeout in seconds."""


def send_creations(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """CreateDelegationToken, one request for each token."""
    # There is no dry run. A listing is refused for the same reasons, except for a missing right on
    # another owner.
    if order.dry:
        return _check_connection(context, order)
    return [_create(context, step) for step in order.steps]


def _create(context: ClusterContext, step: Step) -> Reply:
    owner, renewers = step.payload.get("owner"), step.payload["renewers"]
    lifetime = _count_milliseconds(step.payload.get("max_lifetime"), wire.BROKER_DEFAULT)
    answer = attempt(
        CREATE_TOKEN.name,
        lambda: wire.create_token(
            context.wire, owner, renewers, lifetime, context.timeout + ANSWER_MARGIN
        ),
    )
    if isinstance(answer, Fault):
        return Reply(step, answer)
    if answer.code:
        return Reply(step, fault_of(CREATE_TOKEN.name, answer.code, owner or ""))
    # If the answer is lost, `_find_new` has to tell the token by what was asked for.
    context.made_tokens[step.payload["stamp"]] = answer.token_id
    return Reply(step, incarnation=answer.token_id)


def send_renewals(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """RenewDelegationToken, one request for each token."""
    return _send_ends(context, order, wire.renew_token, wire.BROKER_DEFAULT)


def send_ends(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """ExpireDelegationToken, one request for each token."""
    return _send_ends(context, order, wire.expire_token, wire.AT_ONCE)


def _send_ends(context: ClusterContext, order: Order, send: End, usual: int) -> Sequence[Reply]:
    """usual: the period without one, in milliseconds."""
    # The requests name a token by its secret, so that whoever sends one has to know it (KIP-48).
    rows = list_rows(context)
    if isinstance(rows, Fault):
        return [Reply(step, rows) for step in order.steps]
    rows_by_id = {row.token_id: row for row in rows}
    replies = []
    for step in order.steps:
        api, token_id = step.request.name, step.payload["token_id"]
        row = rows_by_id.get(token_id)
        if row is None:
            replies.append(Reply(step, fault_of(api, _NOT_FOUND, token_id)))
        elif order.dry:
            replies.append(Reply(step))
        else:
            period = _count_milliseconds(step.payload["period"], usual)
            replies.append(Reply(step, _send_end(context, step, send, row, period)))
    return replies


def _send_end(
    context: ClusterContext, step: Step, send: End, row: wire.TokenRow, period: int
) -> Fault | None:
    api = step.request.name
    limit = context.timeout + ANSWER_MARGIN
    answer = attempt(api, lambda: send(context.wire, row.hmac, period, limit))
    if isinstance(answer, Fault):
        return answer
    if not answer.code:
        context.token_ends[row.token_id] = row.expires, answer.expires
        return None
    return fault_of(api, answer.code, step.payload["token_id"])


def _check_connection(context: ClusterContext, order: Order) -> Sequence[Reply]:
    rows = list_rows(context)
    return [Reply(step, rows if isinstance(rows, Fault) else None) for step in order.steps]


def _count_milliseconds(text: str | None, usual: int) -> int:
    """The milliseconds of a period. usual: those without one."""
    if not text or text == LONGEST:
        return usual
    return parse_period(text) or usual


TOKEN_SENDS = {
    CREATE_TOKEN.name: send_creations,
    RENEW_TOKEN.name: send_renewals,
    END_TOKEN.name: send_ends,
}
"""API -> the function that sends it."""


TOKEN_REQUESTS = Requests(Reads(sweep_tokens, read_tokens), TOKEN_SENDS)
