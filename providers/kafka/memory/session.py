"""A session over the simulated cluster, under the same resource types as a real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets

from .. import configs, faults, quotas, topics
from ..data import Source, answer
from .cluster import SimulatedCluster, View
from .controller import HANDLERS, Answer, Topic
from .rights import CLUSTER, User
from .schedule import Lost, Unreachable

_KINDS = frozenset({topics.KIND, configs.KIND})
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_NOTHING_LOST = Impact(
    "destroys 0 bytes in 0 offsets; live groups: none",
    FrozenMap({"bytes": 0, "offsets": 0, "groups": "none"}),
)
_CLOSED = Fault(
    "CLOSED",
    "the session is closed",
    FaultClass.NOT_APPLIED,
    advice="open a new session and run the command again",
)


class MemorySession:
    """Acts as one user of the cluster. Nothing blocks: what a real session waits for, this one
    does not get."""

    def __init__(self, cluster: SimulatedCluster, instance: str, user: User, facts: Facts) -> None:
        self._cluster = cluster
        self._instance = instance
        self._user = user
        self._facts = facts
        self._closed = False

    @property
    def facts(self) -> Facts:
        return self._facts

    def sweep(self, kind: str, depth: Depth) -> Sweep:
        """The topics that the user may see; config overrides are only ever read by name."""
        if kind == quotas.KIND:
            return self._quotas(depth)
        if kind not in _KINDS:
            return _failed_sweep(kind, depth, _unsupported(kind))
        view = self._look("ListTopics", None)
        if isinstance(view, Fault):
            return _failed_sweep(kind, depth, view)
        if vetoed := view.veto(0, ""):
            return _failed_sweep(kind, depth, faults.fault_of("Metadata", vetoed.code, ""))
        names = sorted(view.topics) if kind == topics.KIND else ()
        ids = (Identity(self._instance, kind, name) for name in names)
        found = (self._topic(identity, view, depth) for identity in ids)
        items = tuple(reading for reading in found if isinstance(reading, Observed))
        return Sweep(kind, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))

    def read(self, ids: Sequence[Identity], *, at: str | None = None) -> Mapping[Identity, Reading]:
        """Objects by name, all from one look at one broker."""
        view = self._look("DescribeTopics", at)
        if isinstance(view, Fault):
            return {identity: Failed(identity, view) for identity in ids}
        return {
            identity: self._reading(identity, index, view) for index, identity in enumerate(ids)
        }

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        """As a real session answers, from the same reads."""
        return answer(Source(self, self._instance, self._describe), data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        """Topics of the simulated cluster hold no records."""
        doomed = (
            c for c in changes if c.action is Action.DELETE and c.identity.kind == topics.KIND
        )
        return {change.identity: _NOTHING_LOST for change in doomed}

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        """What the controller would answer. It has no dry run for a delete, so a fresh look
        stands in, as with a real cluster."""
        deletes = batch.request.name == topics.DELETE_TOPICS.name
        found = self._check_deletes(batch) if deletes else self._faults(batch)
        return [
            Verdict(step.id, step.evidence, fault)
            for step, fault in zip(batch.steps, found, strict=True)
        ]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        """One request, sent once."""
        answers = self._send(batch, validate=False)
        if isinstance(answers, Fault):
            return [Outcome(step.id, _status(answers), answers) for step in batch.steps]
        return [
            self._outcome(batch.request.name, step, answer)
            for step, answer in zip(batch.steps, answers, strict=True)
        ]

    def progress(self, tickets: Sequence[str]) -> Sequence[Outcome]:
        """No work runs long here, so no ticket is known."""
        return [self.cancel(ticket) for ticket in tickets]

    def cancel(self, ticket: str) -> Outcome:
        """No work runs long here, so no ticket is known."""
        fault = Fault("NO_SUCH_TICKET", f"no work runs as {ticket}", FaultClass.DEFINITE)
        return Outcome(ticket, OutcomeStatus.FAILED, fault, ticket)

    def close(self) -> None:
        self._closed = True

    def _faults(self, batch: Batch) -> list[Fault | None]:
        answers = self._send(batch, validate=True)
        if isinstance(answers, Fault):
            return [answers for _ in batch.steps]
        return [
            _fault(batch.request.name, step, answer)
            for step, answer in zip(batch.steps, answers, strict=True)
        ]

    def _check_deletes(self, batch: Batch) -> list[Fault | None]:
        view = self._look("DescribeTopics", None)
        if isinstance(view, Fault):
            return [view for _ in batch.steps]
        return [self._delete_fault(step, view) for step in batch.steps]

    def _delete_fault(self, step: Step, view: View) -> Fault | None:
        name = step.identity.key
        if not self._user.may_on_topic("Describe", name):
            return faults.fault_of("Metadata", 29, name)
        topic = view.topics.get(name)
        if topic is None:
            return faults.fault_of("DeleteTopics", 3, name)
        if topic.id != step.payload["topic_id"]:
            return _recreated(name)
        allowed = self._user.may_on_topic("Delete", name)
        return None if allowed else faults.fault_of("DeleteTopics", 29, name)

    def _outcome(self, api: str, step: Step, answer: Answer) -> Outcome:
        fault = _fault(api, step, answer)
        if fault is not None:
            return Outcome(step.id, _status(fault), fault)
        topic = answer.topic
        if api != topics.CREATE_TOPICS.name or topic is None:
            return Outcome(step.id, OutcomeStatus.APPLIED)
        made = _attributes(topic).without(["replica_assignment"])
        if not self._user.may_on_topic("DescribeConfigs", topic.name):
            made = FrozenMap({"name": topic.name})
        return Outcome(step.id, OutcomeStatus.APPLIED, incarnation=topic.id, attributes=made)

    def _quotas(self, depth: Depth) -> Sweep:
        """All of them, or the fault, as a real cluster tells them."""
        api = "DescribeClientQuotas"
        view = self._look(api, None)
        if isinstance(view, Fault):
            return _failed_sweep(quotas.KIND, depth, view)
        vetoed = view.veto(0, "")
        may = self._user.may("DescribeConfigs", CLUSTER)
        if code := vetoed.code if vetoed else 0 if may else 31:
            return _failed_sweep(quotas.KIND, depth, faults.fault_of(api, code, ""))
        rows = self._cluster.mutations.quotas.items()
        return quotas.listing(self._instance, depth, rows)

    def _describe(self) -> FrozenMap | Fault:
        """Brokers have made-up addresses; the first one leads."""
        view = self._look("DescribeCluster", None)
        if isinstance(view, Fault):
            return view
        live = self._cluster.live
        brokers = (FrozenMap(id=n, host=f"broker-{n}", port=9092, rack=None) for n in live)
        may = self._user.may("Describe", CLUSTER)
        return FrozenMap(
            cluster_id=self._cluster.id,
            brokers=tuple(brokers),
            controller_id=live[0] if may else None,
        )

    def _look(self, api: str, at: str | None) -> View | Fault:
        if self._closed:
            return _CLOSED
        try:
            return self._cluster.look(api, int(at) if at is not None else None)
        except ValueError:
            return faults.not_sent("Metadata", f"there is no broker {at}")
        except Unreachable as error:
            return faults.not_sent("Metadata", str(error))
        except Lost as error:
            return faults.lost("Metadata", str(error))

    def _send(self, batch: Batch, *, validate: bool) -> list[Answer] | Fault:
        if self._closed:
            return _CLOSED
        api, items = batch.request.name, [step.payload for step in batch.steps]
        if api not in HANDLERS:
            return _unsupported(api)
        try:
            return self._cluster.write(api, items, self._user, validate=validate)
        except Unreachable as error:
            return faults.not_sent(api, str(error))
        except Lost as error:
            return faults.lost(api, str(error))

    def _reading(self, identity: Identity, index: int, view: View) -> Reading:
        if identity.kind not in _KINDS:
            return Failed(identity, _unsupported(identity.kind))
        if vetoed := view.veto(index, identity.key):
            return Failed(identity, faults.fault_of("Metadata", vetoed.code, identity.key))
        if identity.kind == topics.KIND:
            return self._topic(identity, view, Depth.FULL)
        return self._config(identity, view)

    def _topic(self, identity: Identity, view: View, depth: Depth) -> Reading:
        name = identity.key
        if not self._user.may_on_topic("Describe", name):
            return Hidden(identity, faults.right_for("Metadata", name))
        topic = view.topics.get(name)
        if topic is None:
            return Absent(identity)
        whole = _attributes(topic)
        details = FrozenMap({"internal": name in _INTERNAL, "leaderless": 0})
        if depth is Depth.NAMES:
            listed = whole.without(["replica_assignment", "config"])
            return Observed(identity, listed, topic.id, details=details)
        if not self._user.may_on_topic("DescribeConfigs", name):
            return Hidden(identity, faults.right_for("DescribeConfigs", name))
        fallbacks = self._fallbacks(topic)
        return Observed(identity, whole, topic.id, fallbacks=fallbacks, details=details)

    def _config(self, identity: Identity, view: View) -> Reading:
        """The overrides of a topic; a topic without any of its own has no such object."""
        name = identity.key
        if not self._user.may_on_topic("DescribeConfigs", name):
            return Hidden(identity, faults.right_for("DescribeConfigs", name))
        topic = view.topics.get(name)
        if topic is None or all(configs.untouched(key, self._facts) for key in topic.config):
            return Absent(identity)
        attributes = FrozenMap({"topic": name, "config": topic.config})
        return Observed(identity, attributes, fallbacks=self._fallbacks(topic))

    def _fallbacks(self, topic: Topic) -> FrozenMap:
        defaults = self._cluster.defaults
        return FrozenMap({f"config.{key}": defaults[key] for key in topic.config})


def _attributes(topic: Topic) -> FrozenMap:
    return FrozenMap(
        {
            "name": topic.name,
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "replica_assignment": topic.assignment,
            "config": topic.config,
        }
    )


def _fault(api: str, step: Step, answer: Answer) -> Fault | None:
    if not answer.code:
        return None
    name = step.identity.key
    return faults.fault_of(api, answer.code, name, answer.message, wait=answer.wait)


def _status(fault: Fault) -> OutcomeStatus:
    ambiguous = fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED


def _recreated(name: str) -> Fault:
    return Fault(
        code="RECREATED",
        message=f"{name} was recreated outside",
        kind=FaultClass.DEFINITE,
        where="Metadata",
        advice="plan again and review what is there now",
    )


def _failed_sweep(kind: str, depth: Depth, fault: Fault) -> Sweep:
    return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, fault))


def _unsupported(what: str) -> Fault:
    return Fault(
        code="UNSUPPORTED",
        message=f"the simulated cluster does not know {what}",
        kind=FaultClass.DEFINITE,
        advice="use a real cluster, or leave it out",
    )
