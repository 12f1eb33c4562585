"""Rules of quotas: what a limit cannot be, whom a new one slows down, and whom it stops; and how
much a plan spends of the controller mutation quota (KIP-599).

A cluster does not report how much a client uses (only JMX does), so a limit is compared with the
previous one, never with the traffic.

Creating, adding or deleting one partition is one mutation. The controller keeps a token bucket that
contains up to rate x samples x seconds and fills at the rate. It accepts a request item while the
bucket is not below empty, however much the item spends, and otherwise refuses it with
THROTTLING_QUOTA_EXCEEDED (89).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from kafkaform.core.change import Action, Change, RateLimit
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Depth, Facts, Identity, Sweep
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import render_amount
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..kinds.quota.limits import (
    MUTATION_RATE,
    QUOTA_KEYS,
    USER,
    describe_clients,
    describe_scope,
    entity_text,
    find_address_faults,
    find_applying,
    find_unknown_faults,
    find_value_faults,
    is_address,
    render_limit,
    sharers_text,
)
from ..kinds.quota.resource_type import IP, KIND, get_limits, index_quotas, read_entity
from ..kinds.topic import resource_type as topics
from ..kinds.user import resource_type as users
from ..protocol import keys
from ..protocol.cluster_facts import KafkaFacts
from .names import judge_names

# ── the mutation quota ──────────────────────────────────────────────────────────────

_SPENDING = frozenset({"CreateTopics", "CreatePartitions", "DeleteTopics"})
ANONYMOUS = "ANONYMOUS"
"""The user name of every client on a listener without authentication."""


class Spending(Struct, frozen=True):
    """The mutations that one change spends."""

    dry: int
    """Mutations of its dry run."""
    real: int
    """Mutations of its real request."""
    is_exact: bool = True
    """False if the number of partitions is unknown: `dry` and `real` are then lower bounds."""


class MutationQuota(Struct, frozen=True):
    """The mutation quota that applies to our requests."""

    rate: float
    """Mutations per second."""
    window: int
    """Seconds in which an empty bucket fills."""
    assumed: bool
    """True if the window is Kafka's default because the cluster does not report its own."""
    entity: str
    """The quota's entity, in words."""
    sharers: str
    """The clients that spend from the same bucket, in words."""

    @property
    def burst(self) -> float:
        """Mutations that a full bucket lets through at once."""
        return self.rate * self.window


def compute_spending(change: Change) -> Spending | None:
    """The mutations of a change; None if it neither creates, adds nor deletes partitions."""
    if change.identity.kind != topics.KIND or not change.effective:
        return None
    before, after = ((side or EMPTY).get("partitions") for side in (change.before, change.after))
    # KIP-599 charges `validate_only` requests too, so a create and an increase pay twice. A delete
    # has no dry run.
    if change.action is Action.CREATE:
        return Spending(after or 1, after or 1, after is not None)
    if change.action is Action.DELETE:
        return Spending(0, before or 1, before is not None)
    if change.action is Action.UPDATE and before and after and after > before:
        return Spending(after - before, after - before)
    return None


def find_quota(sweep: Sweep | None, facts: Facts) -> MutationQuota | None:
    """The mutation quota of our own requests; None if there is none, or if we cannot see it."""
    # A custom client.quota.callback.class decides by itself, so the stored quotas prove nothing.
    cluster = KafkaFacts.of(facts)
    if sweep is None or not sweep.items or cluster.quota_callback:
        return None
    if facts.principal:
        # Quota entities name users without the type of the principal.
        user = facts.principal.partition(":")[2]
    elif cluster.security_protocol == "PLAINTEXT":
        user = ANONYMOUS
    else:
        return None
    limit = find_applying(MUTATION_RATE, user, cluster.client_id, index_quotas(sweep))
    # The cluster stores infinity and NaN too (KIP-546), and never throttles by them.
    if limit is None or limit.value is None or not limit.value.is_finite():
        return None
    window = cluster.mutation_window
    return MutationQuota(
        float(limit.value),
        window.samples * window.seconds,
        window.assumed,
        entity_text(limit.entity),
        sharers_text(*limit.sharers),
    )


def list_limit_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The quotas, if one of these changes spends from one."""
    return {KIND: Depth.FULL} if any(map(compute_spending, changes)) else {}


def find_limit(changes: Sequence[Change], sweep: Sweep | None, facts: Facts) -> RateLimit | None:
    """What the controller takes of these changes; None if it limits nothing, or if we cannot see
    it."""
    spent = {change.identity: item for change in changes if (item := compute_spending(change))}
    quota = find_quota(sweep, facts) if spent else None
    if quota is None or quota.rate <= 0:
        return None
    costs = {identity: item.real for identity, item in spent.items()}
    return RateLimit(_SPENDING, quota.rate, quota.burst, costs)


class Assessment(Struct, frozen=True):
    """What a plan spends that has to be told."""

    text: str
    """One sentence without its final stop."""
    figures: FrozenMap
    """`mutations` of the dry run and the apply together, `burst` that goes through at once, and
    `seconds` of the delay, 0 if there is none for certain."""


def assess_spending(
    changes: Sequence[Change], sweep: Sweep | None, facts: Facts
) -> Assessment | None:
    """What the changes spend, if that is more than half of what the quota lets through at once."""
    spent = [item for item in map(compute_spending, changes) if item is not None]
    quota = find_quota(sweep, facts) if spent else None
    if quota is None or sum(item.dry + item.real for item in spent) <= quota.burst / 2:
        return None
    dry, real = [item.dry for item in spent if item.dry], [item.real for item in spent]
    total, least = sum(dry) + sum(real), "" if all(item.is_exact for item in spent) else "at least "
    # The last item passes however large it is. Which one is last depends on the order of the
    # steps, so the smallest is assumed.
    waiting = total - min(real)
    seconds = math.ceil((waiting - quota.burst) / quota.rate) if waiting > quota.burst else 0
    assumed = " (if the window is Kafka's default)" if quota.assumed else ""
    text = (
        f"the dry run and the apply spend {least}{total:,} controller mutations, and "
        f"{MUTATION_RATE} = {_render_number(quota.rate)} of {quota.entity} lets "
        f"{_render_number(quota.burst)} through at once{assumed}: "
    )
    if seconds:
        waits = sum(dry) - min(dry, default=0) > quota.burst
        text += (
            f"the cluster delays {'the dry run and the apply' if waits else 'the apply'} by up to "
            f"{_render_duration(seconds)}, even if nobody else spends any"
        )
    else:
        text += (
            f"mutations of {quota.sharers} in the last {quota.window} s count too, so the cluster "
            "can delay the dry run and the apply"
        )
    figures = FrozenMap(mutations=total, burst=math.floor(quota.burst), seconds=seconds)
    return Assessment(text, figures)


_UNITS = ((3600, "h"), (60, "min"), (1, "s"))


def _render_duration(seconds: int) -> str:
    """`about 40 s`, `about 12 min`, rounded up."""
    size, unit = next((pair for pair in _UNITS if seconds > 2 * pair[0]), _UNITS[-1])
    return f"about {max(1, math.ceil(seconds / size)):,} {unit}"


def _render_number(value: float) -> str:
    return f"{value:,.12g}"


TYPES = (KIND,)
_SETS = (Action.CREATE, Action.UPDATE)
_PROOFS = "tests/cluster/claims/test_quotas.py"
BYTE_RATES: Mapping[str, str] = {"producer_byte_rate": "write", "consumer_byte_rate": "read"}
"""Limit of bytes -> what it limits."""
BATCH = 16_384
"""Bytes of one batch of a producer, `batch.size` of Kafka's clients."""
STANDSTILL = 1024
"""Bytes per second below which a client hardly works: one full batch takes more than 16 s."""
CUT = Decimal("0.1")
"""The share of a limit below which a cut stops clients that used the limit. Throttled time grows
with the share that is too much: at a tenth, nine of ten seconds (ClientQuotaManager)."""


# ── rows ────────────────────────────────────────────────────────────────────────────────


def _make_example(config: str, entity: str = 'user   = "orders"') -> str:
    return f'resource "kafka_quota" "orders" {{\n  {entity}\n  config = {{ {config} }}\n}}'


UNKNOWN = Rule(
    "quota-limit-unknown",
    "A limit that Kafka does not have",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Brokers refuse other keys than those of QuotaConfig.java (INVALID_REQUEST).",
    _make_example("producer_rate = 1048576"),
    block=Block.IMPOSSIBLE,
    proof=f"{_PROOFS}::test_brokers_refuse_what_is_no_limit",
)
MISPLACED = Rule(
    "quota-limit-misplaced",
    "A limit of addresses for a user, or the other way round",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Quotas of addresses have connection_creation_rate only, and no others have it (KIP-612). "
    "Brokers refuse the mixture (ClientQuotaControlManager.java, INVALID_REQUEST).",
    _make_example("connection_creation_rate = 10"),
    block=Block.IMPOSSIBLE,
    proof=f"{_PROOFS}::test_brokers_refuse_what_is_no_limit",
)
INVALID = Rule(
    "quota-limit-invalid",
    "A number that is no limit",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Limits are above 0, and rates of bytes and connections are whole numbers "
    "(ClientQuotaControlManager.java, INVALID_REQUEST). NaN would be stored and limit nothing.",
    _make_example("producer_byte_rate = 0"),
    block=Block.IMPOSSIBLE,
    proof=f"{_PROOFS}::test_brokers_refuse_what_is_no_limit",
)
WITHOUT_LIMITS = Rule(
    "quota-empty",
    "A quota without a limit",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Kafka stores limits and no entities, so a quota without a limit does not exist (KIP-546).",
    'resource "kafka_quota" "orders" {\n  user   = "orders"\n  config = {}\n}',
    "Set at least one limit, or remove the block.",
    Block.IMPOSSIBLE,
    proof=f"{_PROOFS}::test_a_quota_ends_with_its_last_limit",
)
ADDRESS = Rule(
    "quota-address-invalid",
    "An address that is none",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "A quota of an address is for exactly one, without networks and patterns (KIP-612). The "
    "controller refuses what is neither an address nor a host name (INVALID_REQUEST).",
    _make_example("connection_creation_rate = 10", 'ip     = "192.0.2.0/24"'),
    block=Block.IMPOSSIBLE,
    proof=f"{_PROOFS}::test_brokers_refuse_a_network",
)
HOST = Rule(
    "quota-host-name",
    "A host name instead of an address",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Each broker looks the name up once, when it learns of the quota (ClientQuotaMetadataManager), "
    "and limits the address that it gets then.",
    _make_example("connection_creation_rate = 10", 'ip     = "worker.example.org"'),
    "Write the IP address.",
)
STOPS = Rule(
    "quota-stops-clients",
    "A limit with which clients hardly work",
    Level.DANGER,
    Harm.AVAILABILITY,
    TYPES,
    Needs.BLOCK,
    "Brokers make a client wait until its average fits (KIP-219, ClientQuotaManager). Below "
    f"{render_amount(STANDSTILL, 'bytes/s')}, one batch of {render_amount(BATCH, 'bytes')} takes "
    "more than 16 s, and below 136 B/s longer than delivery.timeout.ms (2 min), after which a "
    "producer gives up.",
    _make_example("producer_byte_rate = 1"),
    "Write the limit in bytes per second, such as 1048576 for 1 MiB/s.",
    proof=f"{_PROOFS}::test_a_byte_a_second_stops_a_producer",
)
CUT_DEEP = Rule(
    "quota-limit-cut",
    "A limit is cut to less than a tenth",
    Level.DANGER,
    Harm.AVAILABILITY,
    TYPES,
    Needs.OBJECT,
    "A client that uses what it may now has to wait nine of ten seconds then, and its requests "
    "pile up until they time out (KIP-219, ClientQuotaManager).",
    _make_example("producer_byte_rate = 1048576  # it was 104857600"),
    "Compare the limit with what the clients use, and lower it step by step.",
    proof=f"{_PROOFS}::test_a_cut_limit_slows_a_producer_down",
)
LOWERED = Rule(
    "quota-limit-lowered",
    "A limit is lowered",
    Level.CAUTION,
    Harm.THROUGHPUT,
    TYPES,
    Needs.OBJECT,
    "Brokers make clients wait until their average fits the limit (KIP-13, KIP-124, KIP-219).",
    _make_example("producer_byte_rate = 5242880  # it was 10485760"),
    fix="Compare the limit with what the clients use now.",
    proof=f"{_PROOFS}::test_a_cut_limit_slows_a_producer_down",
)
NEW = Rule(
    "quota-limit-new",
    "A limit where there was none",
    Level.CAUTION,
    Harm.THROUGHPUT,
    TYPES,
    Needs.PLAN,
    "Brokers make clients wait until their average fits the limit (KIP-13, KIP-124, KIP-219). A "
    "user that the same plan creates has no client yet.",
    _make_example("producer_byte_rate = 1048576"),
    fix="Compare the limit with what the clients use now.",
    proof=f"{_PROOFS}::test_a_byte_rate_slows_a_producer_down",
)
CALLBACK = Rule(
    "quota-callback",
    "The brokers have a quota callback",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.PLAN,
    "With client.quota.callback.class, that class decides about limits (KIP-257), and it can "
    "ignore stored quotas.",
    _make_example("producer_byte_rate = 1048576"),
    "Ask who operates the class whether it follows these quotas.",
)
MUTATIONS = Rule(
    "quota-mutations-spent",
    "The plan spends much of the controller mutation quota",
    Level.CAUTION,
    Harm.THROUGHPUT,
    (topics.KIND,),
    Needs.PLAN,
    "The controller delays requests that create, add or delete more partitions than "
    "controller_mutation_rate allows, dry runs included (KIP-599).",
    'resource "kafka_topic" "orders" {\n  name       = "orders"\n  partitions = 5000\n}',
    "Ask for a higher controller_mutation_rate, or apply in parts.",
    proof="tests/cluster/kafka/test_quotas.py::test_a_plan_over_half_of_the_quota_says_so",
)


# ── one quota ───────────────────────────────────────────────────────────────────────────


class LimitChange(Struct, frozen=True):
    """One limit that a change sets."""

    key: str
    after: Value
    before: Value
    """None if there was none."""

    @property
    def path(self) -> tuple[str, str]:
        """Where it is in the quota."""
        return "config", self.key

    @property
    def number(self) -> Decimal | None:
        """The limit after the change; None for a text, which limits nothing."""
        return _read_number(self.after)

    @property
    def old_number(self) -> Decimal | None:
        """The limit before the change; None if there was none."""
        return _read_number(self.before)

    @property
    def falls(self) -> bool:
        """True for a number that is lower than before, or where there was none."""
        number, old = self.number, self.old_number
        return number is not None and (old is None or number < old)

    @property
    def stops(self) -> bool:
        """True if clients with this limit hardly work."""
        number = self.number
        stuck = number is not None and 0 < number < STANDSTILL
        return stuck and self.falls and self.key in BYTE_RATES


def _read_number(value: Value) -> Decimal | None:
    # Brokers can have stored `Infinity` and `NaN`, which are texts here and limit nothing.
    number = Decimal(value) if isinstance(value, int | Decimal) else None
    return number if number is not None and number.is_finite() else None


def list_limit_changes(change: Change) -> Iterator[LimitChange]:
    """The limits that a change sets, with another value than before."""
    before = get_limits(change.before)
    for key, value in get_limits(change.after).items():
        if value is not None and value != before.get(key):
            yield LimitChange(key, value, before.get(key))


def _judge_block(change: Change, facts: Facts) -> Iterator[Finding]:
    """What the block alone shows."""
    if change.action not in _SETS or change.after is None:
        return
    entity = read_entity(change.after)
    if not any(value is not None for value in get_limits(change.after).values()):
        yield WITHOUT_LIMITS.find("config is empty", ("config",))
    yield from _judge_address(entity)
    matches = not any(judge_names(change, facts))
    for limit in list_limit_changes(change):
        yield from _judge_limit(limit, entity)
        if limit.stops and limit.number and matches and IP not in entity:
            yield _make_stop(limit, entity, round(BATCH / limit.number))


def _judge_address(entity: FrozenMap) -> Iterator[Finding]:
    name = entity.get(IP)
    if name is None:
        return
    faults = tuple(find_address_faults(name))
    for text, fix in faults:
        yield ADDRESS.find(text, ("ip",), fix=fix)
    if not faults and not is_address(name):
        yield HOST.find(
            f"{name} is a host name: each broker looks it up only once, when it learns of the "
            "quota",
            ("ip",),
        )


def _judge_limit(limit: LimitChange, entity: FrozenMap) -> Iterator[Finding]:
    key = QUOTA_KEYS.get(limit.key)
    for text, fix in find_unknown_faults(limit.key):
        yield UNKNOWN.find(text, limit.path, fix=fix)
    if key is not None and key.ip != (IP in entity):
        whom = "an ip" if key.ip else "users and client ids"
        yield MISPLACED.find(
            f"{limit.key} is a limit for {whom}",
            limit.path,
            fix=f"Declare it in a kafka_quota for {whom}.",
        )
        return
    for text, fix in find_value_faults(limit.key, limit.after):
        yield INVALID.find(text, limit.path, fix=fix)


def _make_stop(limit: LimitChange, entity: FrozenMap, seconds: int) -> Finding:
    """seconds: those that one batch takes."""
    return STOPS.find(
        f"{describe_clients(entity, limit.key)} can hardly {BYTE_RATES[limit.key]}: at "
        f"{render_limit(limit.key, limit.after)}, one batch of {render_amount(BATCH, 'bytes')} "
        f"takes {render_amount(seconds, 's')}",
        limit.path,
        figures=FrozenMap(seconds=seconds),
    )


def _judge_cuts(change: Change, _: Facts) -> Iterator[Finding]:
    """Limits that are lower than they were."""
    if change.action is not Action.UPDATE or change.after is None:
        return
    entity = read_entity(change.after)
    for limit in list_limit_changes(change):
        number, old = limit.number, limit.old_number
        if limit.stops or number is None or old is None or number >= old:
            continue
        rule = CUT_DEEP if number < old * CUT else LOWERED
        yield rule.find(
            f"{describe_clients(entity, limit.key)} are slowed down to "
            f"{render_limit(limit.key, limit.after)}{describe_scope(limit.key)} "
            f"({render_limit(limit.key, limit.before)} before)",
            limit.path,
        )


# ── the whole plan ──────────────────────────────────────────────────────────────────────


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The quotas if the plan spends from one, and the users if it makes users with quotas."""
    kinds = {change.identity.kind for change in changes if change.action is Action.CREATE}
    return {
        **list_limit_needs(changes),
        **({users.KIND: Depth.NAMES} if {KIND, users.KIND} <= kinds else {}),
    }


def _survey_new_limits(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """Limits where there were none, but for users who have no client yet."""
    fresh = _list_fresh_users(scene)
    for change in scene.changes:
        if change.identity.kind != KIND or change.action not in _SETS or not change.effective:
            continue
        entity = read_entity(change.after or EMPTY)
        # A name that matches nobody slows nobody down.
        if entity.get(USER) in fresh or any(judge_names(change, scene.facts)):
            continue
        for limit in list_limit_changes(change):
            if limit.falls and not limit.stops and limit.old_number is None:
                yield (
                    change.identity,
                    NEW.find(
                        f"{describe_clients(entity, limit.key)} are slowed down to "
                        f"{render_limit(limit.key, limit.after)}{describe_scope(limit.key)} "
                        "(no limit of its own before)",
                        limit.path,
                    ),
                )


def _list_fresh_users(scene: Scene) -> set[str]:
    """Users who get their first credential in this plan."""
    listed = scene.sweeps.get(users.KIND)
    live = {keys.split(item.identity.key)[0] for item in listed.items} if listed else set()
    credentials = [change for change in scene.changes if change.identity.kind == users.KIND]
    old = {keys.split(c.identity.key)[0] for c in credentials if c.action is not Action.CREATE}
    new = {keys.split(c.identity.key)[0] for c in credentials if c.action is Action.CREATE}
    return new - old - live


def _survey_callback(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """Told once if the brokers decide by a class and not by stored quotas."""
    callback = KafkaFacts.of(scene.facts).quota_callback
    if callback and any(c.identity.kind == KIND and c.effective for c in scene.changes):
        yield (
            None,
            CALLBACK.find(
                f"the brokers have client.quota.callback.class = {callback}, which decides about "
                "limits and can ignore the quotas of this plan"
            ),
        )


def _survey_mutations(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """Told once if the changes spend more than half of what the quota lets through at once."""
    spending = assess_spending(scene.changes, scene.sweeps.get(KIND), scene.facts)
    if spending is not None:
        yield None, MUTATIONS.find(spending.text, figures=spending.figures)


_ALONE = (UNKNOWN, MISPLACED, INVALID, WITHOUT_LIMITS, ADDRESS, HOST, STOPS)
JUDGES = (
    Judge(_ALONE, TYPES, Needs.BLOCK, _judge_block),
    Judge((CUT_DEEP, LOWERED), TYPES, Needs.OBJECT, _judge_cuts),
)
SURVEYS = (
    Survey((NEW,), _survey_new_limits),
    Survey((CALLBACK,), _survey_callback),
    Survey((MUTATIONS,), _survey_mutations),
)
