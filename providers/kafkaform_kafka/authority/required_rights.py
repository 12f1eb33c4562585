"""Which rights all steps of a plan need, held against those that the cluster says we have.

The dry run finds a missing right of the steps that can go at once; those that wait for others
would meet it half way through. What the cluster does not tell is left to it: rights on topics
that are not there yet or not seen, rights on groups, the right to create a topic of one name.
Whether we may delete every topic is not told either, but the ACLs say it (`Held.every_topic`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct, field

from kafkaform.core.change import Step, Verdict
from kafkaform.core.resource import Fault, FaultClass

from ..kinds.acl.resource_type import CLUSTER
from ..protocol import rights
from ..protocol.apis import APIS, RightTarget
from ..protocol.faults import code_name, name_right

Right = tuple[str, str, str]
"""operation, resource type, resource name."""

_GRANTING, _EVERYBODY = "CreateAcls", "User:*"
_TOPIC_DENIED, _CLUSTER_DENIED = 29, 31


class HeldRights(Struct, frozen=True):
    """What we may do, by the names that ACLs use. cluster: None if it does not say; topics: only
    those that told it; every_topic: whether we may delete any topic, because the cluster is asked
    for that before the topic, None if that is not known; hidden: that is concluded from a missing
    Describe on the cluster, which a DENY would hide as well; denied: missing right -> the ACL that
    denies it, in words."""

    cluster: Set[str] | None
    topics: Mapping[str, Set[str]]
    every_topic: bool | None = None
    hidden: bool = False
    denied: Mapping[Right, str] = field(default_factory=dict)


def list_step_topics(steps: Sequence[Step]) -> tuple[str, ...]:
    """The topics on which these steps need a right, each once."""
    return tuple(dict.fromkeys(name for name in map(_get_topic, steps) if name is not None))


def judge_steps(
    steps: Sequence[Step], held: HeldRights, principal: str | None
) -> Iterator[Verdict]:
    """A verdict for every step whose right is known to be missing. principal: who we are, if
    that is known: a plan that gives us rights is held to the right to do so alone."""
    granting = any(_grants(step, principal) for step in steps)
    for step, right in find_missing(steps, held):
        if _may_succeed_anyway(right, held) or (granting and step.request.name != _GRANTING):
            continue
        yield Verdict(
            step.id, step.evidence, _make_fault(step.request.name, right, held, principal)
        )


def find_missing(steps: Sequence[Step], held: HeldRights) -> Iterator[tuple[Step, Right]]:
    """The steps with a right on their own resource that the cluster says we lack."""
    for step in steps:
        name = _get_topic(step)
        known = held.cluster if name is None else held.topics.get(name)
        wanted = _find_operation(step, name)
        if known is not None and wanted is not None and wanted not in known:
            yield step, (wanted, "Cluster", CLUSTER) if name is None else (wanted, "Topic", name)


def _may_succeed_anyway(right: Right, held: HeldRights) -> bool:
    """Whether the step may succeed without this right: nobody is stopped on a guess."""
    operation, kind, _ = right
    return kind == "Topic" and operation == "Delete" and held.every_topic is not False


def _grants(step: Step, principal: str | None) -> bool:
    if step.request.name != _GRANTING or step.payload["acl_permission_type"] != "Allow":
        return False
    return principal is None or step.payload["acl_principal"] in (principal, _EVERYBODY)


def _get_topic(step: Step) -> str | None:
    """The topic that must allow this step; None if it is another kind of object."""
    api = APIS.get(step.request.name)
    if api is None or not api.reports_right or api.on is RightTarget.CLUSTER:
        return None
    if api.on is RightTarget.CONFIGS and step.payload.get("resource", "topic") != "topic":
        return None
    return str(step.payload["name"])


def _find_operation(step: Step, topic: str | None) -> str | None:
    """What must be allowed on this topic or, without one, on the cluster; None where the cluster
    does not tell."""
    api = APIS.get(step.request.name)
    if api is None or not api.reports_right:
        return None
    if topic is None and api.on is RightTarget.CONFIGS and step.payload.get("resource") == "group":
        return None
    return api.operation or None


def _make_fault(api: str, right: Right, held: HeldRights, principal: str | None) -> Fault:
    operation, kind, name = right
    place, code = (
        ("Cluster", _CLUSTER_DENIED) if kind == "Cluster" else (f"Topic {name}", _TOPIC_DENIED)
    )
    denied = held.denied.get(right)
    return Fault(
        code_name(code),
        f"{principal or 'our user'} lacks {operation} on {place}"
        + (f", because of the ACL {denied}" if denied else ""),
        FaultClass.PERMISSION,
        api,
        _choose_advice(denied, name_right(api, name, code)) + _explain_unseen(right, held),
    )


def _choose_advice(denied: str | None, right: str) -> str:
    """A DENY has to go: no ALLOW is stronger."""
    if denied:
        return "delete that ACL, or run as a principal that it does not concern"
    return f"grant {right}, or run as a principal that has it"


def _explain_unseen(right: Right, held: HeldRights) -> str:
    """How to go on for who may delete every topic, and is denied to see that."""
    if not held.hidden or right[:2] != ("Delete", "Topic"):
        return ""
    return "; if it has Delete on Cluster, grant Describe on Cluster, so that this can be seen"


def name_operations(codes: Set[int] | None) -> Set[str] | None:
    """Operations by name; None for codes that were not told."""
    return None if codes is None else frozenset(rights.decode_operations(codes))
