"""Which rights all steps of a plan need, held against those that the cluster says we have.

The dry run finds a missing right of the steps that can go at once; those that wait for others
would meet it half way through. What the cluster does not tell is left to it: rights on topics
that are not there yet or not seen, rights on groups, the right to create a topic of one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from kafkaform.core.change import Step, Verdict
from kafkaform.core.dataclass import dataclass
from kafkaform.core.resource import Fault, FaultClass

from . import rights
from .faults import code_name, right_for

ON_TOPIC = {
    "CreatePartitions": "Alter",
    "DeleteTopics": "Delete",
    "IncrementalAlterConfigs": "AlterConfigs",
}
"""API -> operation on the topic that a step names."""

ON_CLUSTER = {
    "AlterClientQuotas": "AlterConfigs",
    "AlterPartitionReassignments": "Alter",
    "AlterUserScramCredentials": "Alter",
    "CreateAcls": "Alter",
    "DeleteAcls": "Alter",
    "ElectLeaders": "Alter",
}
"""API -> operation on the cluster."""

_GRANTING, _EVERYBODY = "CreateAcls", "User:*"
_TOPIC_DENIED, _CLUSTER_DENIED = 29, 31


@dataclass(frozen=True, slots=True)
class Held:
    """What we may do, by the names that ACLs use. cluster: None if it does not say; topics: only
    those that told it."""

    cluster: Set[str] | None
    topics: Mapping[str, Set[str]]


def topics_of(steps: Sequence[Step]) -> tuple[str, ...]:
    """The topics on which these steps need a right, each once."""
    return tuple(dict.fromkeys(name for name in map(_topic, steps) if name is not None))


def missing(steps: Sequence[Step], held: Held, principal: str | None) -> Iterator[Verdict]:
    """A verdict for every step whose right is known to be missing. principal: who we are, if
    that is known: a plan that gives us rights is held to the right to do so alone."""
    granting = any(_grants(step, principal) for step in steps)
    for step in steps:
        fault = (
            None if granting and step.request.name != _GRANTING else _fault(step, held, principal)
        )
        if fault is not None:
            yield Verdict(step.id, step.evidence, fault)


def _grants(step: Step, principal: str | None) -> bool:
    if step.request.name != _GRANTING or step.payload["acl_permission_type"] != "Allow":
        return False
    return principal is None or step.payload["acl_principal"] in (principal, _EVERYBODY)


def _topic(step: Step) -> str | None:
    """The topic that must allow this step; None if it is another kind of object."""
    if step.request.name not in ON_TOPIC or step.payload.get("resource", "topic") != "topic":
        return None
    return str(step.payload["name"])


def _fault(step: Step, held: Held, principal: str | None) -> Fault | None:
    api, name = step.request.name, _topic(step)
    known = held.cluster if name is None else held.topics.get(name)
    wanted = _on_cluster(step) if name is None else ON_TOPIC[api]
    if known is None or wanted is None or wanted in known:
        return None
    place, code = ("Cluster", _CLUSTER_DENIED) if name is None else (f"Topic {name}", _TOPIC_DENIED)
    return Fault(
        code_name(code),
        f"{principal or 'our user'} lacks {wanted} on {place}",
        FaultClass.PERMISSION,
        api,
        f"grant {right_for(api, name or '', code)}, or run as a principal that has it",
    )


def _on_cluster(step: Step) -> str | None:
    if step.request.name == "IncrementalAlterConfigs":
        group = step.payload.get("resource") == "group"
        return None if group else "AlterConfigs"
    return ON_CLUSTER.get(step.request.name)


def named(codes: Set[int] | None) -> Set[str] | None:
    """Operations by name; None for codes that were not told."""
    return None if codes is None else frozenset(rights.names(codes))
