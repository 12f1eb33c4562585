"""Lists, reads and alters SCRAM credentials (KIP-554).

A read returns mechanism and iterations, never a password.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.provider.contract import Secrets

from ...protocol import keys
from ...protocol.acl import decode_operations
from ...protocol.faults import code_name, fault_of, lost_answer_fault, name_right
from ...wire.answers import ItemAnswers
from ...wire.cluster import ClusterRow, describe_cluster
from ...wire.security import (
    Deletion,
    ScramRow,
    ScramRows,
    Upsertion,
    alter_scram,
    describe_scram,
    salt_password,
)
from ...wire.topics import ANSWER_MARGIN
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt
from . import resource_type as scram
from .resource_type import API, MECHANISMS

_READ_API = "DescribeUserScramCredentials"
_DENIED = 31
_NO_SUCH_USER = 91
_NAMES = {item.code: name for name, item in scram.MECHANISMS.items()}


def sweep_scram(context: ClusterContext, depth: Depth) -> Sweep:
    """All credentials, or the fault of the request."""
    # Describe on Cluster shows all users, without it none, so a listing is complete.
    rows = _read_rows(context, None, None)
    if isinstance(rows, Fault):
        return Sweep(scram.KIND, depth, (), Coverage(CoverageKind.FAILED, rows))
    items = tuple(item for row in rows for item in _observe_credentials(context, row))
    return Sweep(scram.KIND, depth, items, Coverage(CoverageKind.COMPLETE))


def read_scram(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These credentials, in one request. node: the broker to ask, None for any."""
    # Each user once: a request that names one twice fails with DUPLICATE_RESOURCE (92).
    users = list(dict.fromkeys(keys.split(identity.key)[0] for identity in ids))
    rows = _read_rows(context, users, node)
    if isinstance(rows, Fault):
        return {identity: _make_unread_reading(identity, rows) for identity in ids}
    by_user = {row.user: row for row in rows}
    return {identity: _make_reading(context, identity, by_user, node) for identity in ids}


def _read_rows(
    context: ClusterContext, users: Sequence[str] | None, node: str | None
) -> Sequence[ScramRow] | Fault:
    answer = attempt(
        _READ_API, lambda: describe_scram(context.wire, users, context.timeout, node), node
    )
    if isinstance(answer, ScramRows) and answer.code:
        return fault_of(_READ_API, answer.code, "", answer.message, node or "")
    return answer if isinstance(answer, Fault) else answer.rows


def _make_reading(
    context: ClusterContext, identity: Identity, by_user: Mapping[str, ScramRow], node: str | None
) -> Reading:
    user = keys.split(identity.key)[0]
    row = by_user.get(user, ScramRow(user, -1, "it is missing in the broker's answer", {}))
    if row.code not in (0, _NO_SUCH_USER):
        return _make_unread_reading(
            identity, fault_of(_READ_API, row.code, user, row.message, node or "")
        )
    credentials = {item.identity: item for item in _observe_credentials(context, row)}
    return credentials.get(identity, Absent(identity))


def _observe_credentials(context: ClusterContext, row: ScramRow) -> Iterator[Observed]:
    for code, iterations in row.iterations.items():
        # A mechanism that is newer than this version is left out, and so never touched.
        if name := _NAMES.get(code):
            identity = Identity(context.instance, scram.KIND, scram.identity_key(row.user, name))
            yield Observed(identity, scram.make_attributes(row.user, name, iterations))


def _make_unread_reading(identity: Identity, fault: Fault) -> Reading:
    if fault.code == code_name(_DENIED):
        return Hidden(identity, name_right(_READ_API, ""))
    return Failed(identity, fault)


def send_alter_scram(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """AlterUserScramCredentials; each user occurs once."""
    # The broker has no dry run for it, so our own right is checked instead.
    if order.dry:
        fault = _find_hindrance(context)
        return [Reply(step, fault) for step in order.steps]
    deletions = [
        Deletion(step.payload["username"], MECHANISMS[step.payload["mechanism"]].code)
        for step in order.steps
        if step.payload.get("delete")
    ]
    upsertions = [
        _make_upsertion(step, order.secrets)
        for step in order.steps
        if not step.payload.get("delete")
    ]
    answers = attempt(
        API,
        lambda: alter_scram(context.wire, upsertions, deletions, context.timeout + ANSWER_MARGIN),
    )
    if isinstance(answers, Fault):
        return [Reply(step, answers) for step in order.steps]
    return [Reply(step, _make_fault(step, answers)) for step in order.steps]


def _make_upsertion(step: Step, secrets: Secrets) -> Upsertion:
    user, name, iterations = (step.payload[key] for key in ("username", "mechanism", "iterations"))
    password = secrets[str(step.payload["password"])].reveal()
    mechanism = MECHANISMS[name]
    # Salted here: neither the password nor a text that can be turned back into it is sent
    # (KIP-554).
    salted = salt_password(password, mechanism.digest, iterations)
    return Upsertion(user, mechanism.code, iterations, salted)


def _make_fault(step: Step, answers: ItemAnswers) -> Fault | None:
    user = step.payload["username"]
    answer = answers.items.get(user)
    if answer is None:
        return lost_answer_fault(API, f"{user} is missing in the broker's answer")
    if answer.code == 0:
        return None
    return fault_of(API, answer.code, user, answer.message, wait=answers.throttle)


def _find_hindrance(context: ClusterContext) -> Fault | None:
    """The fault if a request would be refused."""
    cluster = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    if isinstance(cluster, ClusterRow) and cluster.code:
        return fault_of("DescribeCluster", cluster.code, "", cluster.message)
    if isinstance(cluster, Fault):
        return cluster
    # Without Describe the cluster reports no rights at all. Alter implies Describe, so an empty
    # report means that Alter is missing, too.
    may = "Alter" in decode_operations(cluster.operations)
    return None if may else fault_of(API, _DENIED, "")


REQUESTS = Requests(Reads(sweep_scram, read_scram), {API: send_alter_scram})
