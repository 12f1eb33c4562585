"""Lists delegation tokens and reads them by id (DescribeDelegationToken, KIP-48).

Brokers leave out tokens that we may not see, without an error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

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
from kafkaform.core.value import FrozenMap

from ...cluster.context import ClusterContext, attempt
from ...protocol import keys
from ...protocol.faults import fault_of
from ...wire.delegation_tokens import TokenRow, TokenRows, describe_tokens
from . import resource_type as tokens

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
