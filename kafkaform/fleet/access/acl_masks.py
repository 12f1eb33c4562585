"""Merge the ACLs of one cluster into permission masks, by pattern and by resource.

The rules are those of `kafkaform_kafka.authority.authorizer`; tests compare the two. It runs in
Spark's Python workers, on one cluster at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
from msgspec import Struct

from kafkaform_kafka.protocol.acl import LITERAL

from .acl_arrays import (
    NOTHING,
    GroupedRules,
    Pairs,
    Rules,
    build_rules,
    find_covering,
    group_rules,
    keep_distinct,
    merge_bits,
    split_stretches,
)
from .operation_bits import ASKED, make_asked_mask
from .pattern_cover import Ints, Pattern, Truths, compute_reach, spread_stretches, to_ints

VIA = 3
"""How many ACLs a row about a resource names."""
PAIRS = 5_000_000
"""How many pairs of an ACL and what it covers are computed at a time, in arrays of some hundred
megabytes."""

_ASKED: Mapping[str, int] = {kind: make_asked_mask(kind) for kind in ASKED}


# ── rows about patterns ─────────────────────────────────────────────────────────────────


class _Patterns(Struct, frozen=True):
    """The ACLs of a cluster by pattern."""

    targets: list[Pattern]
    target: Ints
    """Of each ACL, its own pattern."""
    own: GroupedRules
    """The ACLs by their own pattern."""
    all: GroupedRules
    """The ACLs by each pattern that they cover, of the principals that the covered pattern's ACLs
    name, and of everybody."""


def _group_by_pattern(rules: Rules, most: int) -> _Patterns:
    """most: how many pairs at a time. Most pairs concern nobody whom the covered pattern's ACLs
    name, and are dropped piece by piece."""
    # Sorted by code point: a prefix then covers one stretch of names (`pattern_cover`).
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
    rule, covered = (np.concatenate(one) for one in zip(*pieces, strict=True))
    group = rules.group(covered, rules.principal[rule], rules.host[rule])
    return _Patterns(targets, target, own, group_rules(rules, group, rule))


def _select_named(rules: Rules, named: Ints, rule: Ints, covered: Ints) -> Pairs:
    """Keep the pairs whose principal the covered pattern's ACLs name, and those of everybody."""
    who = rules.principal[rule]
    asked = _find_among(covered * len(rules.principals) + who, named) | (who == rules.everybody)
    return rule[asked], covered[asked]


def _find_among(values: Ints, rising: Ints) -> Truths:
    place = np.minimum(np.searchsorted(rising, values), len(rising) - 1)
    return np.equal(rising[place], values)


def compute_pattern_masks(acls: pa.Table, most: int = PAIRS) -> pa.Table:
    """Return a row per pattern, principal and host of the ACLs: what applies to everything that the
    pattern covers and no narrower one does. via: all ACLs with exactly these three."""
    rules = build_rules(acls)
    found = _group_by_pattern(rules, most)
    own = found.own
    allow, deny = merge_bits(rules, found.all, own.group)
    real = np.add.reduceat(own.rule < rules.real, own.start, dtype=np.int64)
    _, place = spread_stretches(own.start, real)
    closed = np.zeros(len(found.targets), bool)
    closed[found.target[rules.closes]] = True
    covered = closed[rules.ungroup(own.group)[0]]
    return _make_table(rules, found.targets, own.group, allow, deny, covered, own.rule[place], real)


def find_shadows(acls: pa.Table, most: int = PAIRS) -> pa.Table:
    """Return the ACLs that decide nothing: key, reason, by.

    reason: `given` if `by` says the same about at least as much, `denied` if `by` is a DENY of all
    that it allows; by: of several the broadest. `given` has no cycles, so all of these ACLs can be
    deleted at once.
    """
    rules = build_rules(acls)
    found = _group_by_pattern(rules, most)
    denied, given = _find_deniers(rules, found), _find_givers(rules, found)
    rule = np.flatnonzero((denied != NOTHING) | (given != NOTHING))
    by = np.where(denied != NOTHING, denied, given)[rule]
    reason = np.where(denied[rule] != NOTHING, "denied", "given")
    columns = [rules.key.take(rule), pa.array(reason, pa.string()), rules.key.take(by)]
    return pa.table(columns, names=["key", "reason", "by"])


def _find_givers(rules: Rules, found: _Patterns) -> Ints:
    """Return for each ACL the broadest other one that makes it redundant, or NOTHING."""
    by = np.full(len(rules.pattern), NOTHING)
    given = rules.allow | rules.deny
    for rule, other in _pair_rules(rules, found):
        same = (rules.allow[rule] > 0) == (rules.allow[other] > 0)
        # Two different ACLs never imply each other, so "redundant because of" has no cycle.
        fits = same & (rule != other) & (given[other] >> rules.bit[rule] & 1 == 1)
        # The greatest rank is the broadest ACL.
        np.maximum.at(by, rule[fits], other[fits])
    return by


def _find_deniers(rules: Rules, found: _Patterns) -> Ints:
    """Return for each ALLOW of which nothing is left a DENY that takes from it, or NOTHING."""
    asked = to_ints([_ASKED[kind] for kind, _, _ in rules.patterns])[rules.pattern]
    group = rules.group(found.target, rules.principal, rules.host)
    _, deny = merge_bits(rules, found.all, group)
    # Only operations that are ever asked of the type: `All` on a topic also allows what topics
    # lack.
    useful = rules.allow & asked
    dead = (useful > 0) & (useful & ~deny == 0)
    by = np.full(len(rules.pattern), NOTHING)
    for rule, other in _pair_rules(rules, found):
        takes = dead[rule] & (rules.deny[other] & useful[rule] > 0)
        np.maximum.at(by, rule[takes], other[takes])
    return by


def _pair_rules(rules: Rules, found: _Patterns) -> Iterable[tuple[Ints, Ints]]:
    """Yield every ACL with every one that applies wherever it does: (rule, other), some pairs
    twice."""
    group = rules.group(found.target, rules.principal, rules.host)
    for reached in rules.find_reaching_groups(group):
        place = found.all.find(reached)
        rule = np.flatnonzero(place != NOTHING)
        owner, position = spread_stretches(
            found.all.start[place[rule]], found.all.count[place[rule]]
        )
        yield rule[owner], found.all.rule[position]


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
    found = group_rules(rules, rules.group(target, rules.principal[rule], rules.host[rule]), rule)
    group = _complete_groups(rules, found)
    allow, deny = merge_bits(rules, found, group)
    via, count = _find_first_rules(rules, found, group)
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


def _complete_groups(rules: Rules, found: GroupedRules) -> Ints:
    """Return the groups that get a row: those with ACLs and, of each principal in them, every host
    for which everybody has ACLs or an asking row."""
    target, principal, host = rules.ungroup(found.group)
    everybody = principal == rules.everybody
    shared_target, shared_host = target[everybody], host[everybody]
    pairs = keep_distinct(found.group // len(rules.hosts))
    at = pairs // len(rules.principals)
    first = np.searchsorted(shared_target, at)
    owner, place = spread_stretches(first, np.searchsorted(shared_target, at, "right") - first)
    more = pairs[owner] * len(rules.hosts) + shared_host[place]
    more = more[found.find(more) == NOTHING]
    return np.sort(np.concatenate((found.group, more)), kind="stable")


def _find_first_rules(rules: Rules, found: GroupedRules, group: Ints) -> tuple[Ints, Ints]:
    """Return the first ACLs that reach each group, group by group, and how many each has."""
    # int32: this array has 12 numbers per row, and rows are in the millions.
    ranks = np.full((len(group), 4, VIA), rules.real, np.int32)
    earlier: list[Ints] = []
    for column, other in enumerate(rules.find_reaching_groups(group)):
        place = found.find(other)
        for before in earlier:
            place[before == other] = NOTHING
        earlier.append(other)
        here = np.flatnonzero(place != NOTHING)
        for nth in range(VIA):
            here = here[found.count[place[here]] > nth]
            ranks[here, column, nth] = found.rule[found.start[place[here]] + nth]
    first = np.sort(ranks.reshape(len(group), 4 * VIA), axis=1)[:, :VIA]
    acl = first < rules.real
    return to_ints(first[acl]), acl.sum(axis=1)


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
