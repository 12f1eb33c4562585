"""Sends AlterUserScramCredentials (KIP-554), once, with one reply for each user."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault
from kafkaform.provider.contract import Secrets

from ...cluster.context import ClusterContext, Order, Reply, attempt
from ...protocol import rights
from ...protocol.faults import fault_of, lost_answer_fault
from ...protocol.scram import salt_password
from ...wire.answers import ItemAnswers
from ...wire.cluster import ClusterRow, describe_cluster
from ...wire.scram import Deletion, Upsertion, alter_scram
from ...wire.topics import ANSWER_MARGIN
from .resource_type import API, MECHANISMS

_DENIED = 31


def send_alter_scram(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """AlterUserScramCredentials; each user occurs once."""
    # The broker has no dry run for it, so our own right is checked instead.
    if order.dry:
        fault = _find_hindrance(context)
        return [Reply(step, fault) for step in order.steps]
    deletions = [_make_deletion(step) for step in order.steps if step.payload.get("delete")]
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
    salted = salt_password(password, mechanism.digest, iterations)
    return Upsertion(user, mechanism.code, iterations, salted)


def _make_deletion(step: Step) -> Deletion:
    return Deletion(step.payload["username"], MECHANISMS[step.payload["mechanism"]].code)


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
    may = "Alter" in rights.decode_operations(cluster.operations)
    return None if may else fault_of(API, _DENIED, "")
