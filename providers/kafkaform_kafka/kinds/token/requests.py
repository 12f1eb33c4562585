"""Lists, reads, creates, renews and expires delegation tokens (KIP-48).

Brokers leave out tokens that we may not see, without an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap

from ...protocol import keys
from ...protocol.faults import fault_of
from ...wire import security as wire
from ...wire.client import Wire
from ...wire.security import TokenRow, TokenRows, describe_tokens
from ...wire.topics import ANSWER_MARGIN
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt
from ..kind import CREATE_TOKEN, END_TOKEN, RENEW_TOKEN
from . import resource_type as tokens
from .resource_type import LONGEST, parse_period

_PAUSE = 0.05
"""Seconds between two looks at a token whose new time is not shown yet."""


def sweep_tokens(context: ClusterContext, depth: Depth) -> Sweep:
    """The tokens that we can see, or the fault of the request."""
    rows = list_rows(context)
    if isinstance(rows, Fault):
        return Sweep(tokens.KIND, depth, (), Coverage(CoverageKind.FAILED, rows))
    items = tuple(observe_row(context, row) for row in rows)
    return Sweep(tokens.KIND, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


def read_tokens(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These tokens, in one request. node: the broker to ask, None for any."""
    rows = list_rows(context, node)
    if isinstance(rows, Fault):
        return {identity: Failed(identity, rows) for identity in ids}
    # The lists of what exists before come first: reads of new tokens use them.
    ordered = sorted(ids, key=lambda identity: not _is_list(identity))
    return {identity: _make_reading(context, identity, rows) for identity in ordered}


def list_rows(context: ClusterContext, node: str | None = None) -> Sequence[TokenRow] | Fault:
    """The tokens that we can see, with their secrets.

    A broker acknowledges a new time of a token before every broker shows it, so the answer is
    waited for, at most for the operation timeout.
    """
    until = time.monotonic() + context.timeout
    while True:
        rows = _ask_rows(context, node)
        if isinstance(rows, Fault) or not _is_late(context, rows) or time.monotonic() >= until:
            return rows
        time.sleep(_PAUSE)


def _is_late(context: ClusterContext, rows: Sequence[TokenRow]) -> bool:
    """Whether a token still has the time that it had before this session changed it."""
    ends = ((row.expires, *context.token_ends.get(row.token_id, (0, 0))) for row in rows)
    return any(now == before != after for now, before, after in ends)


def _ask_rows(context: ClusterContext, node: str | None) -> Sequence[TokenRow] | Fault:
    answer = attempt(tokens.API, lambda: describe_tokens(context.wire, context.timeout, node), node)
    if isinstance(answer, TokenRows) and answer.code:
        return fault_of(tokens.API, answer.code, "", broker=node or "")
    return answer if isinstance(answer, Fault) else answer.rows


def observe_row(context: ClusterContext, row: TokenRow) -> Observed:
    """The token without its secret."""
    times = {"issued": row.issued, "expires": row.expires, "ends": row.ends}
    attributes = tokens.make_attributes(row.token_id, row.owner, row.requester, row.renewers, times)
    identity = Identity(context.instance, tokens.KIND, row.token_id)
    return Observed(identity, attributes, row.token_id)


def _make_reading(context: ClusterContext, identity: Identity, rows: Sequence[TokenRow]) -> Reading:
    if _is_list(identity):
        return _keep_list(context, identity, rows)
    new = tokens.parse_new(identity.key)
    if new is not None:
        row = _find_new(context, new, rows)
        return Absent(identity) if row is None else _observe_new(identity, new, row)
    token = next((row for row in rows if row.token_id == identity.key), None)
    return Absent(identity) if token is None else observe_row(context, token)


def _is_list(identity: Identity) -> bool:
    return keys.split(identity.key)[0] == tokens.BEFORE


def _keep_list(context: ClusterContext, identity: Identity, rows: Sequence[TokenRow]) -> Observed:
    """The ids of the tokens that exist before one is created, which the session keeps."""
    ids = frozenset(row.token_id for row in rows)
    context.tokens[keys.split(identity.key)[1]] = ids
    return Observed(identity, FrozenMap(), details=FrozenMap(ids=tuple(sorted(ids))))


def _find_new(
    context: ClusterContext, new: tokens.NewToken, rows: Sequence[TokenRow]
) -> TokenRow | None:
    """The token that was created as this one, None if there is none."""
    able = [row for row in rows if new.is_asked_for(row.owner, row.requester, row.renewers)]
    earlier_ids = context.tokens.get(new.stamp)
    if earlier_ids is not None:
        able = [row for row in able if row.token_id not in earlier_ids]
    else:
        # Another session asked for it, and ended before it got an answer.
        able = [row for row in able if row.issued >= new.request_time - tokens.CLOCK_SKEW]
    token_id = context.made_tokens.get(new.stamp)
    if token_id is not None:
        able = [row for row in able if row.token_id == token_id]
    return max(able, key=lambda row: row.issued, default=None)


def _observe_new(identity: Identity, new: tokens.NewToken, row: TokenRow) -> Observed:
    # Brokers shorten a lifetime to their own limit, so what is asked for is an upper bound.
    return Observed(identity, new.attributes, row.token_id)


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


REQUESTS = Requests(Reads(sweep_tokens, read_tokens), SENDS)
