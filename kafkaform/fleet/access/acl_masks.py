"""Merge the ACLs of one cluster into permission masks, by pattern and by resource.

The rules are those of `kafkaform_kafka.authority.authorizer`; tests compare the two. It runs in
Spark's Python workers, on one cluster at a time.

IdempotentWrite on the cluster (KIP-679) follows from the right to write to any topic. No single
resource decides this, so masks cannot express it: the provider's `authorize_any` is asked for every
principal that has a row about the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

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

from .acl_arrays import (
    NO_INDEX,
    GroupedRules,
    Ints,
    Pairs,
    Pattern,
    Rules,
    Truths,
    build_rules,
    compute_reach,
    find_covering,
    group_rules,
    keep_distinct,
    merge_bits,
    split_stretches,
    spread_stretches,
    to_ints,
)
from .permission_rows import (
    CLUSTER_SHIFT,
    ON_CLUSTER,
    SUPPORTED_OPERATIONS,
    make_mask,
    make_supported_mask,
)

VIA_ACLS = 3
"""How many ACLs a row about a resource names."""
PAIRS = 5_000_000
"""How many pairs of an ACL and what it covers are computed at a time, in arrays of some hundred
megabytes."""

_SUPPORTED_MASKS: Mapping[str, int] = {
    kind: make_supported_mask(kind) for kind in SUPPORTED_OPERATIONS
}


# ── rows about patterns ─────────────────────────────────────────────────────────────────
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


class _Patterns(Struct, frozen=True):
    """The ACLs of a cluster by pattern."""

    targets: list[Pattern]
    target: Ints
    """Of each ACL, its own pattern."""
    own: GroupedRules
    """The ACLs by their own pattern."""
    covering: GroupedRules
    """The ACLs by each pattern that they cover, of the principals that the covered pattern's ACLs
    name, and of everybody."""


def _group_by_pattern(rules: Rules, most: int) -> _Patterns:
    """most: how many pairs at a time. Most pairs concern no principal that the covered pattern's
    ACLs name, and are dropped piece by piece."""
    # Sorted by code point: a prefix then covers one stretch of names (`acl_arrays`).
    targets = sorted(rules.patterns)
    numbers = {pattern: number for number, pattern in enumerate(targets)}
    target = to_ints([numbers[pattern] for pattern in rules.patterns])[rules.pattern]
    own = group_rules(
        rules, rules.group(target, rules.principal, rules.host), np.arange(len(target))
    )
    named = keep_distinct(np.sort(target * len(rules.principals) + rules.principal))
    covers = compute_reach(rules.patterns, targets, pattern_level=True)
    pieces = [
        _select_named(rules, named, *find_covering(rules, covers, first, end))
        for first, end in split_stretches(covers.count[rules.pattern], most)
    ]
    rule, covered = (np.concatenate(column) for column in zip(*pieces, strict=True))
    group = rules.group(covered, rules.principal[rule], rules.host[rule])
    return _Patterns(targets, target, own, group_rules(rules, group, rule))


def _select_named(rules: Rules, named: Ints, rule: Ints, covered: Ints) -> Pairs:
    """Keep the pairs whose principal the covered pattern's ACLs name, and those of everybody."""
    principal = rules.principal[rule]
    values = covered * len(rules.principals) + principal
    index = np.minimum(np.searchsorted(named, values), len(named) - 1)
    matches = np.equal(named[index], values) | (principal == rules.everybody)
    return rule[matches], covered[matches]


def compute_pattern_masks(acls: pa.Table, most: int = PAIRS) -> pa.Table:
    """Return a row per pattern, principal and host of the ACLs: what applies to everything that the
    pattern covers and no narrower one does. via: all ACLs with exactly these three."""
    rules = build_rules(acls)
    grouped = _group_by_pattern(rules, most)
    own = grouped.own
    allow, deny = merge_bits(rules, grouped.covering, own.group)
    real = np.add.reduceat(own.rule < rules.real, own.start, dtype=np.int64)
    _, position = spread_stretches(own.start, real)
    closed = np.zeros(len(grouped.targets), bool)
    closed[grouped.target[rules.closes]] = True
    covered = closed[rules.ungroup(own.group)[0]]
    return _make_table(
        rules, grouped.targets, own.group, allow, deny, covered, own.rule[position], real
    )


def find_shadows(acls: pa.Table, most: int = PAIRS) -> pa.Table:
    """Return the ACLs that decide nothing: key, reason, by.

    reason: `given` if `by` says the same about at least as much, `denied` if `by` is a DENY of all
    that it allows; by: of several the broadest. `given` has no cycles, so all of these ACLs can be
    deleted at once.
    """
    rules = build_rules(acls)
    grouped = _group_by_pattern(rules, most)
    deniers, givers = _find_deniers(rules, grouped), _find_givers(rules, grouped)
    rule = np.flatnonzero((deniers != NO_INDEX) | (givers != NO_INDEX))
    by = np.where(deniers != NO_INDEX, deniers, givers)[rule]
    reason = np.where(deniers[rule] != NO_INDEX, "denied", "given")
    columns = [rules.key.take(rule), pa.array(reason, pa.string()), rules.key.take(by)]
    return pa.table(columns, names=["key", "reason", "by"])


def _find_givers(rules: Rules, grouped: _Patterns) -> Ints:
    """Return for each ACL the broadest other one that makes it redundant, or NO_INDEX."""
    by = np.full(len(rules.pattern), NO_INDEX)
    masks = rules.allow | rules.deny
    for rule, giver in _pair_rules(rules, grouped):
        same_permission = (rules.allow[rule] > 0) == (rules.allow[giver] > 0)
        # Two different ACLs never imply each other, so "redundant because of" has no cycle.
        fits = same_permission & (rule != giver) & (masks[giver] >> rules.bit[rule] & 1 == 1)
        # The greatest rank is the broadest ACL.
        np.maximum.at(by, rule[fits], giver[fits])
    return by


def _find_deniers(rules: Rules, grouped: _Patterns) -> Ints:
    """Return a DENY that restricts each ALLOW that is wholly denied, or NO_INDEX."""
    supported = to_ints([_SUPPORTED_MASKS[kind] for kind, _, _ in rules.patterns])[rules.pattern]
    group = rules.group(grouped.target, rules.principal, rules.host)
    _, deny = merge_bits(rules, grouped.covering, group)
    # Only operations that are ever asked of the type: `All` on a topic also allows what topics
    # lack.
    useful = rules.allow & supported
    dead = (useful > 0) & (useful & ~deny == 0)
    by = np.full(len(rules.pattern), NO_INDEX)
    for rule, denier in _pair_rules(rules, grouped):
        takes = dead[rule] & (rules.deny[denier] & useful[rule] > 0)
        np.maximum.at(by, rule[takes], denier[takes])
    return by


def _pair_rules(rules: Rules, grouped: _Patterns) -> Iterable[tuple[Ints, Ints]]:
    """Yield every ACL with every one that applies wherever it does: (rule, other), some pairs
    twice."""
    group = rules.group(grouped.target, rules.principal, rules.host)
    for reached in rules.find_reaching_groups(group):
        index = grouped.covering.find(reached)
        rule = np.flatnonzero(index != NO_INDEX)
        owner, position = spread_stretches(
            grouped.covering.start[index[rule]], grouped.covering.count[index[rule]]
        )
        yield rule[owner], grouped.covering.rule[position]


# ── rows about resources ────────────────────────────────────────────────────────────────


def compute_resource_masks(acls: pa.Table, resources: pa.Table) -> pa.Table:
    """Return a row per resource with each principal and host that matter there. A principal without
    a row has what `User:*` has; a host without a row has what `*` has.

    resources: resource_type and name. Each of its types needs a row in `acls` that reaches all
    names for `User:*`; it need not be an ACL.
    """
    rules, targets = build_rules(acls), _list_targets(resources)
    rule, target = find_covering(rules, compute_reach(rules.patterns, targets, pattern_level=False))
    covered = np.zeros(len(targets), bool)
    covered[target[rules.closes[rule]]] = True
    grouped = group_rules(rules, rules.group(target, rules.principal[rule], rules.host[rule]), rule)
    group = _complete_groups(rules, grouped)
    allow, deny = merge_bits(rules, grouped, group)
    # Of each group, the first ACLs that reach it.
    # int32: this array has 12 numbers per row, and rows are in the millions.
    ranks = np.full((len(group), 4, VIA_ACLS), rules.real, np.int32)
    earlier: list[Ints] = []
    for column, reaching in enumerate(rules.find_reaching_groups(group)):
        index = grouped.find(reaching)
        for earlier_group in earlier:
            index[earlier_group == reaching] = NO_INDEX
        earlier.append(reaching)
        rows = np.flatnonzero(index != NO_INDEX)
        for nth in range(VIA_ACLS):
            rows = rows[grouped.count[index[rows]] > nth]
            ranks[rows, column, nth] = grouped.rule[grouped.start[index[rows]] + nth]
    first = np.sort(ranks.reshape(len(group), 4 * VIA_ACLS), axis=1)[:, :VIA_ACLS]
    acl = first < rules.real
    via, count = to_ints(first[acl]), acl.sum(axis=1)
    return _make_table(
        rules, targets, group, allow, deny, covered[rules.ungroup(group)[0]], via, count
    )


def count_pairs(patterns: pa.Table, resources: pa.Table) -> int:
    """Return how many pairs of an ACL and a resource there are.

    patterns: resource_type, name, pattern_type and `acls`, the number of ACLs of each.
    """
    columns = (patterns[name].to_pylist() for name in ("resource_type", "name", "pattern_type"))
    covers = compute_reach(
        list(zip(*columns, strict=True)), _list_targets(resources), pattern_level=False
    )
    return int((covers.count * to_ints(patterns["acls"].to_numpy())).sum())


def _list_targets(resources: pa.Table) -> list[Pattern]:
    names = zip(resources["resource_type"].to_pylist(), resources["name"].to_pylist(), strict=True)
    return [(kind, name, LITERAL) for kind, name in sorted(set(names))]


def _complete_groups(rules: Rules, grouped: GroupedRules) -> Ints:
    """Return the groups that get a row: those with ACLs and, of each principal in them, every host
    for which everybody has ACLs or an asking row."""
    target, principal, host = rules.ungroup(grouped.group)
    everybody = principal == rules.everybody
    shared_target, shared_host = target[everybody], host[everybody]
    target_principals = keep_distinct(grouped.group // len(rules.hosts))
    pair_target = target_principals // len(rules.principals)
    first = np.searchsorted(shared_target, pair_target)
    owner, position = spread_stretches(
        first, np.searchsorted(shared_target, pair_target, "right") - first
    )
    added = target_principals[owner] * len(rules.hosts) + shared_host[position]
    added = added[grouped.find(added) == NO_INDEX]
    return np.sort(np.concatenate((grouped.group, added)), kind="stable")


def _make_table(
    rules: Rules,
    targets: list[Pattern],
    group: Ints,
    allow: Ints,
    deny: Ints,
    covered: Truths,
    via: Ints,
    count: Ints,
) -> pa.Table:
    """Return the rows as Spark gets them. via, count: ACLs, row after row."""
    target, principal, host = rules.ungroup(group)
    kinds, names, pattern_types = zip(*targets, strict=True) if targets else ((), (), ())
    ends = np.append(0, np.cumsum(count))
    columns = {
        "resource_type": pa.array(kinds, pa.string()).take(target),
        "name": pa.array(names, pa.string()).take(target),
        "pattern_type": pa.array(pattern_types, pa.string()).take(target),
        "principal": rules.principals.take(principal),
        "host": rules.hosts.take(host),
        "allow": pa.array(allow, pa.int32()),
        "deny": pa.array(deny, pa.int32()),
        "covered": pa.array(covered, pa.bool_()),
        # Built from offsets: Python lists of keys would take most of a worker's memory.
        "via": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), rules.key.take(via)),
    }
    return pa.table(columns)


def add_cluster(cluster: pa.Scalar, rows: pa.Table) -> pa.Table:
    """Put the cluster's name in front of the rows."""
    return rows.add_column(0, "cluster", pa.repeat(cluster.cast(pa.string()), len(rows)))


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
    writers = topics.filter(pc.is_in(topics["operation"], pa.array(WRITES)))
    names = ("principal", "host", "operation", "permission", "resource_type", "name")
    columns = (writers[name].to_pylist() for name in (*names, "pattern_type"))
    acls = (Acl(*fields) for fields in zip(*columns, strict=True))
    index = index_acls((*acls, *_list_closing(topics)))
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


def _list_closing(topics: pa.Table) -> list[Acl]:
    """Return an ACL of an impossible principal on the topic that brokers ask for, if any ACL is on
    it."""
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
