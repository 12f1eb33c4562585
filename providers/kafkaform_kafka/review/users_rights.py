"""Which rights a client of the topics in a plan would lack: a worker of Kafka Connect, say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Change
from kafkaform.core.resource import CoverageKind, Depth, Facts, Sweep, Use
from kafkaform.provider.contract import MissingRight

from ..authority.acl_changes import build_access, collect_acls, is_acl_change
from ..authority.authorizer import AccessQuestion, AccessVerdict, Decision, Need, decide
from ..kinds.acl import resource_type as acls
from ..kinds.topic import resource_type as topics
from ..protocol import groups

NEEDS: Mapping[str, Depth] = {acls.KIND: Depth.FULL}
"""All ACLs of the cluster."""
_RESOURCE_TYPES = {topics.KIND: "Topic", groups.KIND: "Group"}
"""What is used -> its resource type in ACLs."""
_DOUBTS: Mapping[Need, str] = {
    Need.SUPER_USERS: "it is a super user (authorizer { super_users } in the provider block)",
    Need.ALLOW_IF_NO_ACL: "resources without ACLs are open (authorizer { allow_if_no_acl } in the "
    "provider block)",
    Need.HOST: "an ACL for single hosts permits it",
}
"""Missing fact -> what would permit it."""


def find_missing_rights(
    principal: str,
    uses: Sequence[Use],
    changes: Sequence[Change],
    sweeps: Mapping[str, Sweep],
    facts: Facts,
) -> Sequence[MissingRight]:
    """See `kafkaform.provider.contract.AccessProvider`."""
    sweep = sweeps.get(acls.KIND)
    if sweep is None or sweep.coverage.kind is not CoverageKind.COMPLETE:
        return ()
    plan = collect_acls([change for change in changes if is_acl_change(change)], sweep)
    access = build_access(plan.after, facts)
    decisions = [
        (use, inquiry, decide(access, inquiry)) for use, inquiry in _list_questions(principal, uses)
    ]
    return [
        MissingRight(use, _describe_right(question), _describe_doubt(decision))
        for use, question, decision in decisions
        if decision.verdict is not AccessVerdict.ALLOWED
    ]


def _list_questions(principal: str, uses: Sequence[Use]) -> Iterator[tuple[Use, AccessQuestion]]:
    for use in uses:
        kind = _RESOURCE_TYPES.get(use.kind)
        for right in use.rights if kind else ():
            yield use, AccessQuestion(principal, None, right, str(kind), use.key)


def _describe_right(question: AccessQuestion) -> str:
    return f"{question.operation} on {question.resource_type} {question.resource_name}"


def _describe_doubt(decision: Decision) -> str:
    if decision.verdict is AccessVerdict.DENIED:
        return ""
    return " or ".join(_DOUBTS[need] for need in decision.needs if need in _DOUBTS)
