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
    SOME_TOPIC,
    Access,
    AccessQuestion,
    AccessVerdict,
    authorize_any,
    index_acls,
)
from kafkaform_kafka.protocol.acl import ALLOW, EVERYTHING, LITERAL, PREFIXED, Acl

from .operation_bits import ABOVE, ON_CLUSTER, make_mask

IDEMPOTENT = "IdempotentWrite"
GIVEN = make_mask((IDEMPOTENT,)) << ABOVE
"""The principal may write to some topic."""
IF_OPEN = 1 << ABOVE + 1
"""The principal may if the cluster lets everybody use what has no ACL. No operation has this
bit."""
WRITES = (ALL, "Write")
SOME_BEGUN = tuple(SOME_TOPIC[:size] for size in range(len(SOME_TOPIC) + 1))
"""The prefixes that cover the topic name that brokers ask for."""
_NOBODY, _NOWHERE = "User:\0", "\0"


def add_producers(rules: pa.Table, rows: pa.Table) -> pa.Table:
    """Return the rows, those about the cluster with GIVEN and IF_OPEN in `allow`.

    rules: as in `acl_arrays.build_rules`; at least those of topics that concern these rows.
    """
    places = np.flatnonzero(pc.equal(rows["resource_type"], "Cluster").to_numpy())
    if not len(places):
        return rows
    bits, allow = _make_bit_reader(rules), rows["allow"].to_numpy().copy()
    who, where = (rows[name].take(pa.array(places)).to_pylist() for name in ("principal", "host"))
    allow[places] |= np.array([bits(*one) for one in zip(who, where, strict=True)], np.int32)
    return rows.set_column(rows.column_names.index("allow"), "allow", pa.array(allow, pa.int32()))


def _make_bit_reader(rules: pa.Table) -> Callable[[str, str], int]:
    """Return a function from (principal, host) to its bits."""
    topics = rules.filter(pc.equal(rules["resource_type"], "Topic"))
    known = index_acls((*_list_writers(topics), *_list_closing(topics)))
    closed, opened = (Access(known, frozenset(), rule) for rule in (False, True))

    # Many rows share principal and host; each question walks through the ACLs.
    @cache
    def bits(principal: str, host: str) -> int:
        # The row of `User:*` is about principals that no ACL names: ask for one with an impossible
        # name.
        who = _NOBODY if principal == EVERYBODY else principal
        where = _NOWHERE if host == EVERYTHING else host
        question = AccessQuestion(who, where, "Write", "Topic", SOME_TOPIC)
        if authorize_any(closed, question).verdict is AccessVerdict.ALLOWED:
            return GIVEN
        return IF_OPEN if authorize_any(opened, question).verdict is AccessVerdict.ALLOWED else 0

    return bits


def _list_writers(topics: pa.Table) -> list[Acl]:
    found = topics.filter(pc.is_in(topics["operation"], pa.array(WRITES)))
    names = ("principal", "host", "operation", "permission", "resource_type", "name")
    columns = (found[name].to_pylist() for name in (*names, "pattern_type"))
    return [Acl(*fields) for fields in zip(*columns, strict=True)]


def _list_closing(topics: pa.Table) -> list[Acl]:
    """Return an ACL of nobody on the topic that brokers ask for, if any ACL is on it."""
    literal = pc.and_(
        pc.equal(topics["pattern_type"], LITERAL),
        pc.is_in(topics["name"], pa.array((SOME_TOPIC, EVERYTHING))),
    )
    begun = pc.and_(
        pc.equal(topics["pattern_type"], PREFIXED),
        pc.is_in(topics["name"], pa.array(SOME_BEGUN)),
    )
    real = pc.and_(
        pc.is_valid(topics["permission"]),
        pc.invert(pc.fill_null(pc.starts_with(topics["operation"], ON_CLUSTER), False)),
    )
    if not pc.any(pc.and_(pc.or_(literal, begun), real)).as_py():
        return []
    return [Acl(_NOBODY + "closed", EVERYTHING, "Read", ALLOW, "Topic", SOME_TOPIC, LITERAL)]
