"""A session on the simulated cluster: the tables of all kinds, rights as the cluster reports them,
and throttles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from kafkaform.core.change import (
    Action,
    Batch,
    Change,
    Impact,
    Outcome,
    OutcomeStatus,
    Step,
    Verdict,
)
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Identity,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.core.words import Words
from kafkaform.provider.contract import Secrets

from ..authority import own_rights
from ..authority.own_rights import HeldRights
from ..connection.settings import ClusterProof
from ..data_sources import AnswerSource, answer_query
from ..kinds.config.simulation import Configs
from ..kinds.config.simulation import resource_key as config_key
from ..kinds.simulation import (
    CLUSTER,
    AdminAnswer,
    Item,
    Lost,
    ReadScene,
    SimulatedWorld,
    Unreachable,
    User,
)
from ..kinds.topic import placement, simulation
from ..kinds.topic import resource_type as topics
from ..kinds.topic.placement import ThrottlePlace, ThrottleTicket, parse_ticket, throttle_tickets
from ..kinds.topic.simulation import list_moving, topic_key
from ..protocol import faults
from ..protocol.acl import OPERATION_NAMES
from ..protocol.faults import config_fault
from ..resource_kinds import WORDS
from .cluster import SimulatedCluster, View


def list_rights(user: User, names: Iterable[str]) -> HeldRights:
    """The rights of this user on the cluster and on these topics, if he may describe them."""
    operations = OPERATION_NAMES.values()
    topics = {
        name: frozenset(operation for operation in operations if user.may_on_topic(operation, name))
        for name in names
        if user.may_on_topic("Describe", name)
    }
    cluster = frozenset(operation for operation in operations if user.may(operation, CLUSTER))
    # A real broker does not report Delete on the cluster; there the ACLs show it.
    return HeldRights(cluster, topics, "Delete" in cluster)


def read_throttle(world: SimulatedWorld, throttle_place: ThrottlePlace) -> Mapping[str, str]:
    """The throttle keys that are set at this place, with their values."""
    key = (
        topic_key(throttle_place.name)
        if throttle_place.resource == "topic"
        else config_key("broker", throttle_place.name)
    )
    configs = world.get(key) or Configs()
    return {name: configs.config[name] for name in throttle_place.keys if configs.config.get(name)}


_NOTHING_LOST = Impact(
    "Deletes no records (0 B); no active consumer groups.",
    FrozenMap({"bytes": 0, "offsets": 0, "groups": "none"}),
)
ADDRESS = "broker-1:9092"
_CLOSED = Fault(
    "CLOSED",
    "the session is closed",
    FaultClass.NOT_APPLIED,
    advice="open a new session and run the command again",
)


class MemorySession:
    """Acts as one user of the simulated cluster. It never waits."""

    def __init__(self, cluster: SimulatedCluster, instance: str, user: User, facts: Facts) -> None:
        self._cluster = cluster
        self._tables = cluster.tables
        self._instance = instance
        self._user = user
        self._facts = facts
        self._closed = False
        self._connection = cluster.connection
        self._proof = ClusterProof(instance, facts.scope_id)
        self._throttles = placement.ThrottleAccess(
            self._read_throttle, self._alter, self._read_topic_id, lambda: False, {}, set()
        )

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def words(self) -> Words:
        return WORDS

    def live_nodes(self) -> Sequence[str]:
        """All live brokers, including those that hang, as a real session reports them."""
        # Not a request, so it cannot consume a mishap that is meant for another one.
        live = () if self._closed else self._cluster.live
        return tuple(map(str, live)) or self._facts.nodes

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        """One listing, which fails as a whole if its first item has a veto."""
        reads = self._tables.reads.get(kind)
        if reads is None:
            return _make_failed_sweep(kind, depth, _unsupported_fault(kind))
        view = self._look(reads.listing, None)
        if isinstance(view, Fault):
            return _make_failed_sweep(kind, depth, view)
        # A listing without some of its objects would look complete, and they would look deleted.
        if vetoed := view.veto(0, ""):
            fault = faults.fault_of(reads.api, vetoed.code, "")
            return _make_failed_sweep(kind, depth, fault)
        return reads.sweep(self._make_scene(view), depth)

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        """Objects by identity; kinds with the same API are read together from one broker."""
        groups: dict[str, list[Identity]] = defaultdict(list)
        for identity in ids:
            kind = self._tables.reads.get(identity.kind)
            groups[kind.describing if kind else ""].append(identity)
        readings: dict[Identity, Reading] = {}
        for api, group in groups.items():
            readings.update(self._read_group(api, group, at))
        return readings

    def _read_group(
        self, api: str, ids: Sequence[Identity], at: str | None
    ) -> Mapping[Identity, Reading]:
        if not api:
            return {
                identity: Failed(identity, _unsupported_fault(identity.kind)) for identity in ids
            }
        view = self._look(api, at)
        if isinstance(view, Fault):
            return {identity: Failed(identity, view) for identity in ids}
        scene = self._make_scene(view)
        return {
            identity: self._read_one(identity, index, view, scene)
            for index, identity in enumerate(ids)
        }

    def _read_one(self, identity: Identity, index: int, view: View, scene: ReadScene) -> Reading:
        kind = self._tables.reads[identity.kind]
        if vetoed := view.veto(index, identity.key):
            return Failed(identity, faults.fault_of(kind.api, vetoed.code, identity.key))
        return kind.read(scene, identity)

    def _make_scene(self, view: View) -> ReadScene:
        cluster = self._cluster.answering
        return ReadScene(
            self._instance, self._user, self._facts, view.world, cluster.defaults, cluster.live
        )

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        """The answer of a data source, from the same reads as in a real session."""
        return answer_query(
            AnswerSource(self, self._instance, self._describe_cluster), data, arguments
        )

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        """The same impact for all topics, because simulated topics have no records."""
        doomed = (
            c for c in changes if c.action is Action.DELETE and c.identity.kind == topics.KIND
        )
        return {change.identity: _NOTHING_LOST for change in doomed}

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        """The steps for which the user lacks a right."""
        live_topics = self._cluster.answering.topics
        visible = [name for name in own_rights.list_step_topics(steps) if name in live_topics]
        rights = list_rights(self._user, visible)
        return tuple(own_rights.judge_steps(steps, rights, self._user.principal))

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        """A dry run, or where Kafka has none, the check that replaces it."""
        local = batch.request.name in self._tables.checks
        refusals = self._check(batch) if local else self._dry_run(batch)
        return [
            Verdict(step.id, step.evidence, fault)
            for step, fault in zip(batch.steps, refusals, strict=True)
        ]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        """Send one request once, after the throttles that its steps need."""
        refusals = {step.id: fault for step in batch.steps if (fault := self._set_throttle(step))}
        # A move whose throttle could not be set is not started.
        ends = {name: Outcome(name, _status(fault), fault) for name, fault in refusals.items()}
        ready = tuple(step for step in batch.steps if step.id not in refusals)
        answers = self._send(replace(batch, steps=ready), secrets) if ready else []
        if isinstance(answers, Fault):
            ends.update({step.id: Outcome(step.id, _status(answers), answers) for step in ready})
        else:
            for step, answer in zip(ready, answers, strict=True):
                ends[step.id] = self._make_outcome(batch.request.name, step, answer)
        return [ends[step.id] for step in batch.steps]

    def _set_throttle(self, step: Step) -> Fault | None:
        ticket = parse_ticket(step.owes or "")
        return (
            placement.set_throttle(self._throttles, ticket)
            if isinstance(ticket, ThrottleTicket)
            else None
        )

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        """The state of these moves and throttles, from one listing of all moves."""
        view = self._look(simulation.LISTING, None)
        limits = throttle_tickets(owed)
        if isinstance(view, Fault):
            every = [*tickets, *owed]
            return [Outcome(ticket, OutcomeStatus.UNKNOWN, view, ticket) for ticket in every]
        outcomes = {
            o.step: o
            for o in placement.report_standing(self._throttles, limits, list_moving(view.topics))
        }
        return [
            *(simulation.report_standing(text, view.topics) for text in tickets),
            *(outcomes.get(text) or simulation.report_standing(text, view.topics) for text in owed),
        ]

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        """Remove throttles, after one listing of all moves."""
        view = self._look(simulation.LISTING, None)
        moves = view if isinstance(view, Fault) else list_moving(view.topics)
        remaining = throttle_tickets(others).values()
        return list(
            placement.remove_throttles(self._throttles, throttle_tickets(tickets), remaining, moves)
        )

    def prove(self) -> None:
        if self._closed:
            return
        self._proof.refuse()
        with suppress(Unreachable, Lost):
            self._identify()

    def _identify(self) -> None:
        """Ask which cluster answers. Raises OtherSystem, Unreachable, Lost."""
        self._proof.hear(ADDRESS, self._cluster.identify())
        self._proof.refuse()
        self._connection = self._cluster.connection

    def _reach(self) -> None:
        """Ask which cluster answers if the connection is new. Raises as `_identify`."""
        self._proof.refuse()
        if self._connection != self._cluster.connection:
            self._identify()

    def close(self) -> None:
        self._closed = True

    def _dry_run(self, batch: Batch) -> list[Fault | None]:
        answers = self._send(batch, None)
        if isinstance(answers, Fault):
            return [answers for _ in batch.steps]
        return [
            _make_fault(batch.request.name, step, answer)
            for step, answer in zip(batch.steps, answers, strict=True)
        ]

    def _check(self, batch: Batch) -> list[Fault | None]:
        view = self._look("DescribeTopics", None)
        if isinstance(view, Fault):
            return [view for _ in batch.steps]
        check, scene = self._tables.checks[batch.request.name], self._make_scene(view)
        return [check(scene, step) for step in batch.steps]

    def _make_outcome(self, api: str, step: Step, answer: AdminAnswer) -> Outcome:
        fault = _make_fault(api, step, answer)
        if fault is not None:
            return Outcome(step.id, _status(fault), fault)
        if ticket := step.payload.get("ticket"):
            return Outcome(step.id, OutcomeStatus.STARTED, ticket=ticket)
        reader = self._tables.made.get(api)
        if reader is None or answer.made is None:
            return Outcome(step.id, OutcomeStatus.APPLIED)
        scene = self._make_scene(View(self._cluster.answering.world, lambda *_: None))
        incarnation, attributes = reader(scene, answer)
        return Outcome(
            step.id, OutcomeStatus.APPLIED, incarnation=incarnation, attributes=attributes
        )

    def _read_throttle(self, throttle_place: placement.ThrottlePlace) -> Mapping[str, str] | Fault:
        view = self._look("DescribeConfigs", throttle_place.node)
        return view if isinstance(view, Fault) else read_throttle(view.world, throttle_place)

    def _alter(
        self, throttle_place: placement.ThrottlePlace, put: Mapping[str, str], gone: Sequence[str]
    ) -> Fault | None:
        api = "IncrementalAlterConfigs"
        item = {
            "resource": throttle_place.resource,
            "name": throttle_place.name,
            "set": put,
            "delete": gone,
        }
        answers = self._request(api, [item], validate=False)
        return (
            answers
            if isinstance(answers, Fault)
            else _code_fault(api, throttle_place.name, answers[0])
        )

    def _read_topic_id(self, name: str) -> str | Fault | None:
        view = self._look("DescribeTopics", None)
        if isinstance(view, Fault):
            return view
        return view.topics[name].id if name in view.topics else None

    def _describe_cluster(self) -> FrozenMap | Fault:
        """The cluster's attributes. Addresses are invented; the first broker is the controller."""
        view = self._look("DescribeCluster", None)
        if isinstance(view, Fault):
            return view
        live = self._cluster.answering.live
        brokers = (FrozenMap(id=n, host=f"broker-{n}", port=9092, rack=None) for n in live)
        may = self._user.may("Describe", CLUSTER)
        return FrozenMap(
            cluster_id=self._cluster.answering.id,
            brokers=tuple(brokers),
            controller_id=live[0] if may else None,
        )

    def _look(self, api: str, at: str | None) -> View | Fault:
        if self._closed:
            return _CLOSED
        try:
            self._reach()
            return self._cluster.look(api, int(at) if at is not None else None)
        except ValueError:
            return faults.not_sent_fault("Metadata", f"there is no broker {at}")
        except Unreachable as error:
            return faults.not_sent_fault("Metadata", str(error))
        except Lost as error:
            return faults.lost_answer_fault("Metadata", str(error))

    def _send(self, batch: Batch, secrets: Secrets | None) -> list[AdminAnswer] | Fault:
        """Send one request. secrets: the values of references; None for a dry run."""
        if self._closed:
            return _CLOSED
        api = batch.request.name
        if api not in self._tables.handlers:
            return _unsupported_fault(api)
        items = [_reveal(step.payload, secrets or {}) for step in batch.steps]
        return self._request(api, items, validate=secrets is None)

    def _request(
        self, api: str, items: Sequence[Item], *, validate: bool
    ) -> list[AdminAnswer] | Fault:
        # Right before and right after a write, the cluster must prove its identity: another cluster
        # can have taken its address, or a proxy can lead an open connection to it.
        try:
            self._reach()
            self._identify()
        except (Unreachable, Lost) as error:
            return faults.not_sent_fault(api, str(error))
        try:
            answers = self._cluster.write(api, items, self._user, validate=validate)
        except Unreachable as error:
            return faults.not_sent_fault(api, str(error))
        except Lost as error:
            return faults.lost_answer_fault(api, str(error))
        self.prove()
        return answers


def _reveal(value: Any, secrets: Secrets) -> Any:
    """The payload with secrets instead of references, as far as they are known."""
    if isinstance(value, SecretRef):
        secret = secrets.get(str(value))
        return value if secret is None else secret.reveal()
    if isinstance(value, FrozenMap):
        return FrozenMap({key: _reveal(item, secrets) for key, item in value.items()})
    return value


def _make_fault(api: str, step: Step, answer: AdminAnswer) -> Fault | None:
    if answer.code and "resource" in step.payload:
        resource = (step.payload["resource"], step.payload["name"])
        return config_fault(api, *resource, answer.code, answer.message, wait=answer.wait)
    return _code_fault(api, step.identity.key, answer)


def _code_fault(api: str, name: str, answer: AdminAnswer) -> Fault | None:
    if not answer.code:
        return None
    return faults.fault_of(api, answer.code, name, answer.message, wait=answer.wait)


def _status(fault: Fault) -> OutcomeStatus:
    ambiguous = fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED


def _make_failed_sweep(kind: str, depth: Depth, fault: Fault) -> Sweep:
    return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, fault))


def _unsupported_fault(request: str) -> Fault:
    return Fault(
        code="UNSUPPORTED",
        message=f"the simulated cluster does not support {request}",
        kind=FaultClass.DEFINITE,
        advice="use a real cluster, or remove it",
    )
