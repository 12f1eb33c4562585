"""Sends CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault
from kafkaform.core.secret import Secret

from ...cluster.context import ClusterContext, Order, Reply, attempt
from ...protocol.faults import fault_of
from ...wire import delegation_tokens as wire
from ...wire.client import Wire
from ...wire.topics import ANSWER_MARGIN
from ..request_order import CREATE_TOKEN, END_TOKEN, RENEW_TOKEN
from .read import list_rows
from .resource_type import LONGEST, parse_period

_NOT_FOUND = 62
End = Callable[[Wire, Secret, int, float], wire.TokenAnswer]
"""Sends a new end of a token: its HMAC, a period in milliseconds, a timeout in seconds."""


def send_creations(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """CreateDelegationToken, one request for each token."""
    # There is no dry run. A listing is refused for the same reasons, except for a missing right on
    # another owner.
    if order.dry:
        return _check_connection(context, order)
    return [_create(context, step) for step in order.steps]


def _create(context: ClusterContext, step: Step) -> Reply:
    owner, renewers = step.payload.get("owner"), step.payload["renewers"]
    lifetime = _count_milliseconds(step.payload.get("max_lifetime"), wire.BROKER_DEFAULT)
    answer = attempt(
        CREATE_TOKEN.name,
        lambda: wire.create_token(
            context.wire, owner, renewers, lifetime, context.timeout + ANSWER_MARGIN
        ),
    )
    if isinstance(answer, Fault):
        return Reply(step, answer)
    if answer.code:
        return Reply(step, fault_of(CREATE_TOKEN.name, answer.code, owner or ""))
    context.made_tokens[step.payload["stamp"]] = answer.token_id
    return Reply(step, incarnation=answer.token_id)


def send_renewals(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """RenewDelegationToken, one request for each token."""
    return _send_ends(context, order, wire.renew_token, wire.BROKER_DEFAULT)


def send_ends(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """ExpireDelegationToken, one request for each token."""
    return _send_ends(context, order, wire.expire_token, wire.AT_ONCE)


def _send_ends(context: ClusterContext, order: Order, send: End, usual: int) -> Sequence[Reply]:
    """usual: the period without one, in milliseconds."""
    # The requests name a token by its secret, so that whoever sends one has to know it (KIP-48).
    rows = list_rows(context)
    if isinstance(rows, Fault):
        return [Reply(step, rows) for step in order.steps]
    rows_by_id = {row.token_id: row for row in rows}
    replies = []
    for step in order.steps:
        api, token_id = step.request.name, step.payload["token_id"]
        row = rows_by_id.get(token_id)
        if row is None:
            replies.append(Reply(step, fault_of(api, _NOT_FOUND, token_id)))
        elif order.dry:
            replies.append(Reply(step))
        else:
            period = _count_milliseconds(step.payload["period"], usual)
            replies.append(Reply(step, _send_end(context, step, send, row, period)))
    return replies


def _send_end(
    context: ClusterContext, step: Step, send: End, row: wire.TokenRow, period: int
) -> Fault | None:
    api = step.request.name
    limit = context.timeout + ANSWER_MARGIN
    answer = attempt(api, lambda: send(context.wire, row.hmac, period, limit))
    if isinstance(answer, Fault):
        return answer
    if not answer.code:
        context.token_ends[row.token_id] = row.expires, answer.expires
        return None
    return fault_of(api, answer.code, step.payload["token_id"])


def _check_connection(context: ClusterContext, order: Order) -> Sequence[Reply]:
    rows = list_rows(context)
    return [Reply(step, rows if isinstance(rows, Fault) else None) for step in order.steps]


def _count_milliseconds(text: str | None, usual: int) -> int:
    """The milliseconds of a period. usual: those without one."""
    if not text or text == LONGEST:
        return usual
    return parse_period(text) or usual


SENDS = {
    CREATE_TOKEN.name: send_creations,
    RENEW_TOKEN.name: send_renewals,
    END_TOKEN.name: send_ends,
}
"""API -> the function that sends it."""
