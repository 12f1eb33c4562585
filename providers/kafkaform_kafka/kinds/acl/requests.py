"""Lists, reads, creates and deletes ACLs.

DescribeAcls returns all ACLs in one answer to anyone with Describe on Cluster, so an ACL that is
missing in it does not exist. Without that right the whole request fails.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Reading,
    Sweep,
)

from ...protocol import acl as acls
from ...protocol import apis
from ...protocol.acl import Acl
from ...protocol.cluster_facts import KafkaFacts
from ...protocol.faults import fault_of, lost_answer_fault, name_right
from ...wire.answers import ItemAnswer
from ...wire.security import AclRow, AclRows, DeletedAcls, create_acls, delete_acls, describe_acls
from ...wire.topics import ANSWER_MARGIN
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt
from .resource_type import check_already_done, make_acl_reading, make_acl_sweep

# Through kafka-python: confluent-kafka drops the error of the whole request, so a missing right
# (31) and a missing authorizer (54) look like "no ACLs"; it also crashes on very many ACLs.
API = "DescribeAcls"
FEW = 5
"""Up to this many ACLs are read one by one; for more, one listing of all ACLs is cheaper."""


def sweep_acls(context: ClusterContext, depth: Depth) -> Sweep:
    """All ACLs of the cluster, or the fault of the request."""
    rows = list_live_acls(context)
    if isinstance(rows, Fault):
        return Sweep(acls.KIND, depth, (), Coverage(CoverageKind.FAILED, rows))
    return make_acl_sweep(context.instance, depth, rows)


def read_acls(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These ACLs. node: the broker to ask, None for any."""
    if len(ids) <= FEW or KafkaFacts.of(context.facts).acls_read_singly:
        return {identity: _read_one(context, identity, node) for identity in ids}
    rows = list_live_acls(context, node)
    if isinstance(rows, Fault):
        return {identity: make_unseen_reading(identity, rows) for identity in ids}
    live_keys = {acl.key for acl in rows}
    return {identity: make_acl_reading(identity, identity.key in live_keys) for identity in ids}


def list_live_acls(
    context: ClusterContext, node: str | None = None, only: Acl | None = None
) -> tuple[Acl, ...] | Fault:
    """All ACLs, or only this one if it exists; or the fault of the request."""
    fields = encode_acl(only) if only else None
    answer = attempt(API, lambda: describe_acls(context.wire, context.timeout, fields, node), node)
    if isinstance(answer, AclRows) and answer.code:
        answer = fault_of(API, answer.code, "", answer.message, node or "")
    if isinstance(answer, Fault):
        return answer
    return tuple(_decode_acl(row) for row in answer.rows)


def make_unseen_reading(identity: Identity, fault: Fault) -> Reading:
    """The reading of an ACL after a failed request."""
    # Without Describe on Cluster nobody sees any ACL, not even his own.
    if fault.code == "CLUSTER_AUTHORIZATION_FAILED":
        return Hidden(identity, name_right(API, identity.key))
    return Failed(identity, fault)


def _read_one(context: ClusterContext, identity: Identity, node: str | None) -> Reading:
    acl = acls.parse_acl_key(identity.key)
    rows = list_live_acls(context, node, acl)
    return (
        make_unseen_reading(identity, rows)
        if isinstance(rows, Fault)
        else make_acl_reading(identity, acl in rows)
    )


def encode_acl(acl: Acl) -> AclRow:
    """The ACL in the codes of the protocol."""
    return AclRow(
        acls.RESOURCE_TYPES[acl.resource_type],
        acl.resource_name,
        acls.PATTERN_TYPES[acl.pattern_type],
        acl.principal,
        acl.host,
        acls.OPERATIONS[acl.operation],
        acls.PERMISSIONS[acl.permission],
    )


def _decode_acl(row: AclRow) -> Acl:
    return Acl(
        row.principal,
        row.host,
        _OPERATION.get(row.operation, str(row.operation)),
        _PERMISSION.get(row.permission, str(row.permission)),
        _RESOURCE.get(row.resource_type, str(row.resource_type)),
        row.resource_name,
        _PATTERN.get(row.pattern_type, str(row.pattern_type)),
    )


_RESOURCE, _OPERATION, _PERMISSION, _PATTERN = (
    {code: word for word, code in words.items()}
    for words in (acls.RESOURCE_TYPES, acls.OPERATIONS, acls.PERMISSIONS, acls.PATTERN_TYPES)
)
"""Code -> word. A code that is newer than this version stays a number, so that the ACL is shown but
never touched."""


# For each filter of DeleteAcls the controller scans all live ACLs on its only thread, and everybody
# else waits: at 50,000 ACLs, 100 filters took 2 s and 1,000 filters 15.8 s. Creating 50,000 ACLs
# took 2.8 s.
COMPARISONS = 1_000_000
"""Filters times live ACLs in one DeleteAcls."""
FILTERS = 200
"""Filters in one DeleteAcls."""
# Our own sign for a filter without a match, which Kafka reports as a success.
NOT_FOUND = 91
_FORBIDDEN = 31


def send_create_acls(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """CreateAcls, with one reply for each ACL. An ACL that exists already counts as created."""
    # The broker has no dry run for it, so fresh reads and our own rights replace one.
    if order.dry:
        return _check_steps("CreateAcls", context, order.steps)
    rows = [encode_acl(acls.parse_acl(step.payload)) for step in order.steps]
    answers = attempt(
        "CreateAcls",
        lambda: create_acls(context.wire, rows, context.timeout + ANSWER_MARGIN),
    )
    if not isinstance(answers, Fault) and len(answers) != len(rows):
        answers = lost_answer_fault("CreateAcls", f"{len(answers)} answers to {len(rows)} ACLs")
    if isinstance(answers, Fault):
        return [Reply(step, answers) for step in order.steps]
    return _make_replies("CreateAcls", order.steps, answers)


def send_delete_acls(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """DeleteAcls with exact filters, in requests of limited cost. After a request without an answer
    nothing more is sent, and the remaining steps get a fault that says so."""
    if order.dry:
        return _check_steps("DeleteAcls", context, order.steps)
    live = list_live_acls(context)
    if isinstance(live, Fault):
        # The fault of a read: without it nothing was sent, so nothing can have changed.
        fault = replace(live, kind=FaultClass.DEFINITE, retry_after=None)
        return [Reply(step, fault) for step in order.steps]
    replies: list[Reply] = []
    lost_one: Fault | None = None
    for steps in split_portions(order.steps, len(live)):
        if lost_one is not None:
            held_back = Fault(
                "HELD_BACK",
                f"it was not sent, because an earlier request got no answer ({lost_one.code})",
                FaultClass.NOT_APPLIED,
                advice="run the command again: it reads the ACLs first and continues from there",
            )
            replies += [Reply(step, held_back) for step in steps]
            continue
        answered = _delete_and_rest(context, steps)
        replies += answered
        unclear = (r.fault for r in answered if r.fault and r.fault.kind is FaultClass.AMBIGUOUS)
        lost_one = next(unclear, None)
    return replies


def split_portions(steps: Sequence[Step], live: int) -> Iterator[Sequence[Step]]:
    """The steps in requests of at most COMPARISONS and FILTERS. live: number of ACLs in the
    cluster."""
    size = max(1, min(FILTERS, COMPARISONS // max(1, live)))
    return (steps[start : start + size] for start in range(0, len(steps), size))


def _delete_and_rest(context: ClusterContext, steps: Sequence[Step]) -> Sequence[Reply]:
    """One request, and then a pause of the same length."""
    started = time.monotonic()
    replies = _delete(context, steps)
    # One request in flight and as long a rest, so that others get half of the controller's time.
    time.sleep(time.monotonic() - started)
    return replies


def _delete(context: ClusterContext, steps: Sequence[Step]) -> Sequence[Reply]:
    filters = [encode_acl(acls.parse_acl(step.payload)) for step in steps]
    deleted = attempt(
        "DeleteAcls",
        lambda: delete_acls(context.wire, filters, context.timeout + ANSWER_MARGIN),
    )
    if not isinstance(deleted, Fault) and len(deleted) != len(steps):
        deleted = lost_answer_fault("DeleteAcls", f"{len(deleted)} answers to {len(steps)} filters")
    if isinstance(deleted, Fault):
        return [Reply(step, deleted) for step in steps]
    # Filters are patterns. Ours name all seven fields, so each can match only one ACL.
    for row, row_answer in zip(filters, deleted, strict=True):
        assert all(match == row for match in row_answer.matched), (
            f"{row} deleted {row_answer.matched}"
        )
    return _make_replies(
        "DeleteAcls", steps, [_convert_answer(row_answer) for row_answer in deleted]
    )


def _convert_answer(deleted: DeletedAcls) -> ItemAnswer:
    # No match is a success for Kafka. For us it means that somebody else was faster.
    gone = not deleted.answer.code and not deleted.matched
    return ItemAnswer(NOT_FOUND) if gone else deleted.answer


def _make_replies(
    api: str, steps: Sequence[Step], answers: Sequence[ItemAnswer]
) -> Sequence[Reply]:
    return [
        Reply(step, _make_fault(api, step, answer))
        for step, answer in zip(steps, answers, strict=True)
    ]


def _make_fault(api: str, step: Step, answer: ItemAnswer) -> Fault | None:
    if answer.code == 0:
        return None
    return fault_of(api, answer.code, step.identity.key, answer.message)


# ── instead of a dry run ────────────────────────────────────────────────────────────────


def _check_steps(api: str, context: ClusterContext, steps: Sequence[Step]) -> Sequence[Reply]:
    """Check our rights and the current ACLs. The evidence of these steps is LOCAL."""
    live = list_live_acls(context)
    if isinstance(live, Fault):
        return [Reply(step, live) for step in steps]
    rights = KafkaFacts.of(context.facts).rights
    if rights and "Alter" not in rights:
        return [Reply(step, fault_of(api, _FORBIDDEN, "")) for step in steps]
    live_keys = {acl.key for acl in live}
    return [
        Reply(step, check_already_done(api, step, step.identity.key in live_keys)) for step in steps
    ]


REQUESTS = Requests(
    Reads(sweep_acls, read_acls),
    {apis.CREATE_ACLS.name: send_create_acls, apis.DELETE_ACLS.name: send_delete_acls},
)
