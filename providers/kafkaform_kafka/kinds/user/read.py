"""Lists SCRAM credentials and reads them by identity: mechanism and iterations, never a password.

API: DescribeUserScramCredentials (KIP-554).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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

from ...cluster.context import ClusterContext, attempt
from ...protocol import keys
from ...protocol.faults import code_name, fault_of, name_right
from ...wire.scram import ScramRow, ScramRows, describe_scram
from . import resource_type as scram

API = "DescribeUserScramCredentials"
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
    answer = attempt(API, lambda: describe_scram(context.wire, users, context.timeout, node), node)
    if isinstance(answer, ScramRows) and answer.code:
        return fault_of(API, answer.code, "", answer.message, node or "")
    return answer if isinstance(answer, Fault) else answer.rows


def _make_reading(
    context: ClusterContext, identity: Identity, by_user: Mapping[str, ScramRow], node: str | None
) -> Reading:
    user = keys.split(identity.key)[0]
    row = by_user.get(user, ScramRow(user, -1, "it is missing in the broker's answer", {}))
    if row.code not in (0, _NO_SUCH_USER):
        return _make_unread_reading(
            identity, fault_of(API, row.code, user, row.message, node or "")
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
        return Hidden(identity, name_right(API, ""))
    return Failed(identity, fault)
