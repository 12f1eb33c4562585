"""Compares the rights that the steps of a plan need with those that the cluster reports.

A dry run finds missing rights only of the first steps, and later steps would fail half way through
the plan. Rights that the cluster does not report are left to the dry run: on topics that do not
exist yet or are hidden, on groups, and the right to create a topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct, field

from kafkaform.core.change import Step, Verdict
from kafkaform.core.resource import Fault, FaultClass

from ..protocol import listings
from ..protocol.acl import CLUSTER
from ..protocol.apis import APIS, RightTarget
from ..protocol.faults import code_name, name_right

Right = tuple[str, str, str]
"""operation, resource type, resource name."""

_GRANTING, _EVERYBODY = "CreateAcls", "User:*"
_TOPIC_DENIED, _CLUSTER_DENIED = 29, 31


class HeldRights(Struct, frozen=True):
    """Our rights, with the operation names that ACLs use."""

    cluster: Set[str] | None
    """Operations on the cluster, None if it does not report them."""
    topics: Mapping[str, Set[str]]
    """Topic -> operations, for topics that are reported."""
    # Kafka checks Delete on the cluster first, and no broker reports that right.
    every_topic: bool | None = None
    """Whether we may delete every topic, None if that is unknown."""
    hidden: bool = False
    """True if `every_topic` follows from a missing Describe on the cluster, which can also be the
    effect of a DENY."""
    denied: Mapping[Right, str] = field(default_factory=dict)
    """Missing right -> the ACL that denies it, in words."""


def list_step_topics(steps: Sequence[Step]) -> tuple[str, ...]:
    """The topics on which these steps need rights, each once."""
    return tuple(dict.fromkeys(name for name in map(_get_topic, steps) if name is not None))


def judge_steps(
    steps: Sequence[Step], held_rights: HeldRights, principal: str | None
) -> Iterator[Verdict]:
    """A verdict for each step whose right is missing for certain. principal: ours, None if it is
    unknown."""
    # A plan that grants us rights needs only the right to do that beforehand.
    granting = any(_grants(step, principal) for step in steps)
    for step, right in find_missing(steps, held_rights):
        if _may_succeed_anyway(right, held_rights) or (granting and step.request.name != _GRANTING):
            continue
        yield Verdict(
            step.id, step.evidence, _make_fault(step.request.name, right, held_rights, principal)
        )


def find_missing(steps: Sequence[Step], held_rights: HeldRights) -> Iterator[tuple[Step, Right]]:
    """The steps with a right on their resource that we lack according to the cluster."""
    for step in steps:
        name = _get_topic(step)
        operations = held_rights.cluster if name is None else held_rights.topics.get(name)
        operation = _find_operation(step, name)
        if operations is not None and operation is not None and operation not in operations:
            yield (
                step,
                (operation, "Cluster", CLUSTER) if name is None else (operation, "Topic", name),
            )


def _may_succeed_anyway(right: Right, held_rights: HeldRights) -> bool:
    """True if the step can succeed without this right."""
    # Delete on the cluster is enough to delete a topic. While it is unknown whether we have it, the
    # broker decides.
    operation, kind, _ = right
    return kind == "Topic" and operation == "Delete" and held_rights.every_topic is not False


def _grants(step: Step, principal: str | None) -> bool:
    if step.request.name != _GRANTING or step.payload["acl_permission_type"] != "Allow":
        return False
    return principal is None or step.payload["acl_principal"] in (principal, _EVERYBODY)


def _get_topic(step: Step) -> str | None:
    """The topic on which this step needs a right; None for other objects."""
    api = APIS.get(step.request.name)
    if api is None or not api.reports_right or api.on is RightTarget.CLUSTER:
        return None
    if api.on is RightTarget.CONFIGS and step.payload.get("resource", "topic") != "topic":
        return None
    return str(step.payload["name"])


def _find_operation(step: Step, topic: str | None) -> str | None:
    """The operation that the step needs on this topic, or without a topic on the cluster; None if
    the cluster does not report it."""
    api = APIS.get(step.request.name)
    if api is None or not api.reports_right:
        return None
    if topic is None and api.on is RightTarget.CONFIGS and step.payload.get("resource") == "group":
        return None
    return api.operation or None


def _make_fault(api: str, right: Right, held_rights: HeldRights, principal: str | None) -> Fault:
    operation, kind, name = right
    resource, code = (
        ("Cluster", _CLUSTER_DENIED) if kind == "Cluster" else (f"Topic {name}", _TOPIC_DENIED)
    )
    denied = held_rights.denied.get(right)
    return Fault(
        code_name(code),
        f"{principal or 'the current user'} lacks {operation} on {resource}"
        + (f", because of the ACL {denied}" if denied else ""),
        FaultClass.PERMISSION,
        api,
        _choose_advice(denied, name_right(api, name, code)) + _explain_unseen(right, held_rights),
    )


def _choose_advice(denied: str | None, right: str) -> str:
    # No ALLOW is stronger than a DENY.
    if denied:
        return "delete that ACL, or run as a principal to which it does not apply"
    return f"grant {right}, or run as a principal that has it"


def _explain_unseen(right: Right, held_rights: HeldRights) -> str:
    """Advice for a principal with Delete on Cluster that cannot see its own right."""
    if not held_rights.hidden or right[:2] != ("Delete", "Topic"):
        return ""
    return "; if it has Delete on Cluster, grant Describe on Cluster, so that kafkaform can see it"


def name_operations(codes: Set[int] | None) -> Set[str] | None:
    """The names of these operations; None for None."""
    return None if codes is None else frozenset(listings.decode_operations(codes))
