"""Prove that listings are complete, for snapshots: there, an object that is missing from a complete
listing is recorded as deleted.

Kafka omits topics that we are not allowed to describe, without an error. Whether a name is hidden
depends only on the ACL patterns that it matches (StandardAuthorizer). So one made-up name for each
pattern, and one name that matches none, show what the answer for every other name would be.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.resource import Absent, Coverage, CoverageKind, Depth, Identity, Observed, Sweep
from kafkaform.provider.contract import Session

from ..cluster.context import ClusterContext, attempt
from ..kinds.config import resource_type as config_kinds
from ..kinds.topic import resource_type as topics
from ..protocol import acl as acls
from ..protocol.releases import FEATURE_MISSING, UNSUPPORTED_VERSION
from ..wire import describe as wire

SWITCHED_OFF = "SECURITY_DISABLED"
"""The cluster has no authorizer, so it has no ACLs and hides nothing."""
TOO_OLD = (UNSUPPORTED_VERSION, FEATURE_MISSING)
"""The brokers are too old to list this kind."""
_COMPLETE = Coverage(CoverageKind.COMPLETE)
_ALLOWED = re.compile(r"[A-Za-z0-9._-]*", re.ASCII)
_LONGEST = 249
"""Characters in the name of a topic."""
_TOPIC, _LITERAL, _ANY = "Topic", "Literal", "*"


def sharpen_sweeps(session: Session, sweeps: Sequence[Sweep]) -> tuple[Sweep, ...]:
    """The sweeps with everything that can be proven: complete ones where nothing is hidden, and no
    ACLs where there is no authorizer. Kinds for which the brokers are too old are left out."""
    sweep_by_kind = {sweep.kind: sweep for sweep in sweeps if _fault_code(sweep) not in TOO_OLD}
    listed = sweep_by_kind.get(acls.KIND)
    open_to_all = listed is not None and _fault_code(listed) == SWITCHED_OFF
    if listed is not None and open_to_all:
        sweep_by_kind[acls.KIND] = replace(listed, coverage=_COMPLETE)
    proofs: Mapping[str, Callable[[], bool]] = {
        topics.KIND: lambda: (
            _has_all_named(session, sweep_by_kind[topics.KIND])
            and (open_to_all or _sees_all_topics(session, listed))
        ),
        config_kinds.BROKER.kind: lambda: _are_all_live(session),
    }
    for kind, proof in proofs.items():
        sweep = sweep_by_kind.get(kind)
        if sweep is not None and sweep.coverage.kind is CoverageKind.VISIBLE_ONLY and proof():
            sweep_by_kind[kind] = replace(sweep, coverage=_COMPLETE)
    return tuple(sweep_by_kind.values())


def _fault_code(sweep: Sweep) -> str:
    return sweep.coverage.fault.code if sweep.coverage.fault is not None else ""


def _has_all_named(session: Session, listed: Sweep) -> bool:
    """Whether no topic was left out because we cannot read its configs."""
    # A topic that was created or deleted meanwhile is missing from one of the listings, too.
    # Reading it by name distinguishes that: it is there, or it is absent, but not hidden.
    named = session.sweep(topics.KIND, Depth.NAMES)
    read_identities = {item.identity for item in listed.items}
    unread = [item.identity for item in named.items if item.identity not in read_identities]
    readings = session.read(unread).values() if unread else ()
    return named.coverage.fault is None and all(isinstance(r, Absent | Observed) for r in readings)


def _sees_all_topics(session: Session, listed: Sweep | None) -> bool:
    if listed is None or listed.coverage.kind is not CoverageKind.COMPLETE:
        return False
    instance = next((item.identity.instance for item in listed.items), "")
    names = dict.fromkeys(
        _make_probe_names(acls.parse_acl(item.attributes) for item in listed.items)
    )
    probes = [Identity(instance, topics.KIND, name) for name in names]
    return all(isinstance(r, Absent | Observed) for r in session.read(probes).values())


def _make_probe_names(rules: Iterable[acls.Acl]) -> Iterator[str]:
    """A name for each way in which ACLs can apply to topics."""
    # The random part makes it certain that no topic has such a name, and that no literal ACL fits.
    made_up = secrets.token_hex(8)
    yield made_up
    for acl in rules:
        name, literal = acl.resource_name, acl.pattern_type == _LITERAL
        fits = _ALLOWED.fullmatch(name) and 0 < len(name) <= _LONGEST
        if acl.resource_type == _TOPIC and fits and (not literal or name != _ANY):
            yield name if literal else f"{name}{made_up}"[:_LONGEST]


def _are_all_live(session: Session) -> bool:
    """Whether all registered brokers are live, if the cluster says so."""
    # Brokers that are down are in no listing of brokers, so their configs would count as deleted.
    context = getattr(session, "context", None)
    if not isinstance(context, ClusterContext):
        return False
    rows = attempt("DescribeCluster", lambda: wire.describe_brokers(context.wire, context.timeout))
    return isinstance(rows, tuple) and all(row.fenced is False for row in rows)
