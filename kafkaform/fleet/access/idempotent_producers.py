"""Add IdempotentWrite on the cluster for principals that may write to any topic (KIP-679).

No single resource decides this, so masks cannot express it: the provider's `authorize_any` is asked
for everyone who has a row about the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkaform_kafka.authority.authorizer import (
    ALL,
    EVERYBODY,
    LITERAL,
    PREFIXED,
    SOME_TOPIC,
    Access,
    AccessQuestion,
    AccessVerdict,
    authorize_any,
    index_acls,
)
from kafkaform_kafka.kinds.acl.resource_type import ALLOW, EVERYTHING, Acl

from .operation_bits import CLUSTER_SHIFT, ON_CLUSTER, make_mask

IDEMPOTENT = "IdempotentWrite"
WRITES_SOME_TOPIC = make_mask((IDEMPOTENT,)) << CLUSTER_SHIFT
"""The principal may write to some topic."""
WRITES_IF_OPEN = 1 << CLUSTER_SHIFT + 1
"""The principal may if the cluster lets everybody use what has no ACL. No operation has this
bit."""
WRITES = (ALL, "Write")
SOME_BEGUN = tuple(SOME_TOPIC[:size] for size in range(len(SOME_TOPIC) + 1))
"""The prefixes that cover the topic name that brokers ask for."""
_NOBODY, _NOWHERE = "User:\0", "\0"


def add_producers(rules: pa.Table, rows: pa.Table) -> pa.Table:
    """Return the rows, with WRITES_SOME_TOPIC and WRITES_IF_OPEN in `allow` of those about the
    cluster.

    rules: as in `acl_arrays.build_rules`; at least those of topics that concern these rows.
    """
    positions = np.flatnonzero(pc.equal(rows["resource_type"], "Cluster").to_numpy())
    if not len(positions):
        return rows
    bits, allow = _make_bit_reader(rules), rows["allow"].to_numpy().copy()
    principals, hosts = (
        rows[name].take(pa.array(positions)).to_pylist() for name in ("principal", "host")
    )
    allow[positions] |= np.array(
        [bits(*row) for row in zip(principals, hosts, strict=True)], np.int32
    )
    return rows.set_column(rows.column_names.index("allow"), "allow", pa.array(allow, pa.int32()))


def _make_bit_reader(rules: pa.Table) -> Callable[[str, str], int]:
    """Return a function from (principal, host) to its bits."""
    topics = rules.filter(pc.equal(rules["resource_type"], "Topic"))
    index = index_acls((*_list_writers(topics), *_list_closing(topics)))
    closed, opened = (Access(index, frozenset(), rule) for rule in (False, True))

    # Many rows share principal and host; each question walks through the ACLs.
    @cache
    def bits(principal: str, host: str) -> int:
        # The row of `User:*` is about principals that no ACL names: ask for one with an impossible
        # name.
        asking_principal = _NOBODY if principal == EVERYBODY else principal
        asking_host = _NOWHERE if host == EVERYTHING else host
        question = AccessQuestion(asking_principal, asking_host, "Write", "Topic", SOME_TOPIC)
        if authorize_any(closed, question).verdict is AccessVerdict.ALLOWED:
            return WRITES_SOME_TOPIC
        return (
            WRITES_IF_OPEN
            if authorize_any(opened, question).verdict is AccessVerdict.ALLOWED
            else 0
        )

    return bits


def _list_writers(topics: pa.Table) -> list[Acl]:
    writers = topics.filter(pc.is_in(topics["operation"], pa.array(WRITES)))
    names = ("principal", "host", "operation", "permission", "resource_type", "name")
    columns = (writers[name].to_pylist() for name in (*names, "pattern_type"))
    return [Acl(*fields) for fields in zip(*columns, strict=True)]


def _list_closing(topics: pa.Table) -> list[Acl]:
    """Return an ACL of nobody on the topic that brokers ask for, if any ACL is on it."""
    literal = pc.and_(
        pc.equal(topics["pattern_type"], LITERAL),
        pc.is_in(topics["name"], pa.array((SOME_TOPIC, EVERYTHING))),
    )
    prefixed = pc.and_(
        pc.equal(topics["pattern_type"], PREFIXED),
        pc.is_in(topics["name"], pa.array(SOME_BEGUN)),
    )
    real = pc.and_(
        pc.is_valid(topics["permission"]),
        pc.invert(pc.fill_null(pc.starts_with(topics["operation"], ON_CLUSTER), False)),
    )
    if not pc.any(pc.and_(pc.or_(literal, prefixed), real)).as_py():
        return []
    return [Acl(_NOBODY + "closed", EVERYTHING, "Read", ALLOW, "Topic", SOME_TOPIC, LITERAL)]
