"""What the ACLs of one cluster add up to: rows about its patterns and about its resources.

The rules are those of `kafkaform_kafka.authority.authorizer`; the tests compare both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
from msgspec import Struct

from kafkaform_kafka.authority.authorizer import LITERAL

from .acl_arrays import (
    NOTHING,
    Held,
    Pairs,
    Rules,
    covering,
    distinct,
    held,
    merged,
    rules_of,
    stretches,
)
from .operation_bits import ASKED, asked_of
from .pattern_cover import Ints, Pattern, Truths, ints, reach, spread

VIA = 3
"""ACLs that a row about a resource names."""
PAIRS = 5_000_000
"""ACLs with what they cover: so many at a time, in arrays of some hundred megabytes."""

_ASKED: Mapping[str, int] = {kind: asked_of(kind) for kind in ASKED}


# ── rows about patterns ─────────────────────────────────────────────────────────────────


class _Patterns(Struct, frozen=True):
    """target: of each ACL, its own pattern; own: ACLs by that; all: by every pattern that they
    cover, of those whom the ACLs of the covered one name, and of everybody."""

    targets: list[Pattern]
    target: Ints
    own: Held
    all: Held


def _by_pattern(rules: Rules, most: int) -> _Patterns:
    """most: pairs at a time. Most of them concern nobody whom the covered pattern's ACLs name."""
    targets = sorted(rules.patterns)
    numbers = {pattern: number for number, pattern in enumerate(targets)}
    target = ints([numbers[pattern] for pattern in rules.patterns])[rules.pattern]
    own = held(rules, rules.group(target, rules.principal, rules.host), np.arange(len(target)))
    named = distinct(np.sort(target * len(rules.principals) + rules.principal))
    covers = reach(rules.patterns, targets, pattern_level=True)
    pieces = [
        _asked(rules, named, *covering(rules, covers, first, end))
        for first, end in stretches(covers.count[rules.pattern], most)
    ]
    rule, covered = (np.concatenate(one) for one in zip(*pieces, strict=True))
    group = rules.group(covered, rules.principal[rule], rules.host[rule])
    return _Patterns(targets, target, own, held(rules, group, rule))


def _asked(rules: Rules, named: Ints, rule: Ints, covered: Ints) -> Pairs:
    """Those whose principal the ACLs of the covered pattern name, and everybody's."""
    who = rules.principal[rule]
    asked = _among(covered * len(rules.principals) + who, named) | (who == rules.everybody)
    return rule[asked], covered[asked]


def _among(values: Ints, rising: Ints) -> Truths:
    place = np.minimum(np.searchsorted(rising, values), len(rising) - 1)
    return np.equal(rising[place], values)


def pattern_masks(acls: pa.Table, most: int = PAIRS) -> pa.Table:
    """A row for each pattern, principal and host of the ACLs: what holds for whatever the pattern
    covers and no narrower one does. via: all ACLs with just these three."""
    rules = rules_of(acls)
    found = _by_pattern(rules, most)
    own = found.own
    allow, deny = merged(rules, found.all, own.group)
    real = np.add.reduceat(own.rule < rules.real, own.start, dtype=np.int64)
    _, place = spread(own.start, real)
    closed = np.zeros(len(found.targets), bool)
    closed[found.target[rules.closes]] = True
    covered = closed[rules.ungroup(own.group)[0]]
    return _table(rules, found.targets, own.group, allow, deny, covered, own.rule[place], real)


def shadows(acls: pa.Table, most: int = PAIRS) -> pa.Table:
    """The ACLs that decide nothing: key, reason (`given`: `by` says the same of at least as much;
    `denied`: so does a DENY of all that it allows), by (of several the broadest).

    `given` has no circles, so that all of them can go at once.
    """
    rules = rules_of(acls)
    found = _by_pattern(rules, most)
    denied, given = _denied_by(rules, found), _given_by(rules, found)
    rule = np.flatnonzero((denied != NOTHING) | (given != NOTHING))
    by = np.where(denied != NOTHING, denied, given)[rule]
    reason = np.where(denied[rule] != NOTHING, "denied", "given")
    columns = [rules.key.take(rule), pa.array(reason, pa.string()), rules.key.take(by)]
    return pa.table(columns, names=["key", "reason", "by"])


def _given_by(rules: Rules, found: _Patterns) -> Ints:
    """For each ACL the broadest other one that makes it needless, or NOTHING."""
    by = np.full(len(rules.pattern), NOTHING)
    given = rules.allow | rules.deny
    for rule, other in _others(rules, found):
        same = (rules.allow[rule] > 0) == (rules.allow[other] > 0)
        fits = same & (rule != other) & (given[other] >> rules.bit[rule] & 1 == 1)
        np.maximum.at(by, rule[fits], other[fits])
    return by


def _denied_by(rules: Rules, found: _Patterns) -> Ints:
    """For each ALLOW of which nothing is left a DENY that takes from it, or NOTHING."""
    asked = ints([_ASKED[kind] for kind, _, _ in rules.patterns])[rules.pattern]
    group = rules.group(found.target, rules.principal, rules.host)
    _, deny = merged(rules, found.all, group)
    useful = rules.allow & asked
    dead = (useful > 0) & (useful & ~deny == 0)
    by = np.full(len(rules.pattern), NOTHING)
    for rule, other in _others(rules, found):
        takes = dead[rule] & (rules.deny[other] & useful[rule] > 0)
        np.maximum.at(by, rule[takes], other[takes])
    return by


def _others(rules: Rules, found: _Patterns) -> Iterable[tuple[Ints, Ints]]:
    """Every ACL with every one that holds wherever it does: (rule, other), some twice."""
    group = rules.group(found.target, rules.principal, rules.host)
    for reached in rules.reached_by(group):
        place = found.all.find(reached)
        rule = np.flatnonzero(place != NOTHING)
        owner, position = spread(found.all.start[place[rule]], found.all.count[place[rule]])
        yield rule[owner], found.all.rule[position]


# ── rows about resources ────────────────────────────────────────────────────────────────


def resource_masks(acls: pa.Table, resources: pa.Table) -> pa.Table:
    """A row for each resource with each principal and host that matter there. Who has no row has
    what `User:*` has, and a host without one what `*` has.

    resources: columns resource_type and name; each of its types needs a row in `acls` that reaches
    all names for `User:*`, which can be no ACL.
    """
    rules, targets = rules_of(acls), _targets(resources)
    rule, target = covering(rules, reach(rules.patterns, targets, pattern_level=False))
    covered = np.zeros(len(targets), bool)
    covered[target[rules.closes[rule]]] = True
    found = held(rules, rules.group(target, rules.principal[rule], rules.host[rule]), rule)
    group = _complete(rules, found)
    allow, deny = merged(rules, found, group)
    via, count = _first(rules, found, group)
    return _table(rules, targets, group, allow, deny, covered[rules.ungroup(group)[0]], via, count)


def pairs(patterns: pa.Table, resources: pa.Table) -> int:
    """How many pairs of an ACL and a resource there are. patterns: columns resource_type, name,
    pattern_type and `acls`, how many there are of each."""
    columns = (patterns[name].to_pylist() for name in ("resource_type", "name", "pattern_type"))
    covers = reach(list(zip(*columns, strict=True)), _targets(resources), pattern_level=False)
    return int((covers.count * ints(patterns["acls"].to_numpy())).sum())


def _targets(resources: pa.Table) -> list[Pattern]:
    names = zip(resources["resource_type"].to_pylist(), resources["name"].to_pylist(), strict=True)
    return [(kind, name, LITERAL) for kind, name in sorted(set(names))]


def _complete(rules: Rules, found: Held) -> Ints:
    """The groups that get a row: those with ACLs, and of each principal there every host for which
    everybody has ACLs or something that asks for them."""
    target, principal, host = rules.ungroup(found.group)
    everybody = principal == rules.everybody
    shared_target, shared_host = target[everybody], host[everybody]
    pairs = distinct(found.group // len(rules.hosts))
    at = pairs // len(rules.principals)
    first = np.searchsorted(shared_target, at)
    owner, place = spread(first, np.searchsorted(shared_target, at, "right") - first)
    more = pairs[owner] * len(rules.hosts) + shared_host[place]
    more = more[found.find(more) == NOTHING]
    return np.sort(np.concatenate((found.group, more)), kind="stable")


def _first(rules: Rules, found: Held, group: Ints) -> tuple[Ints, Ints]:
    """The first ACLs that reach each group, one group after the other, and how many each has."""
    ranks = np.full((len(group), 4, VIA), rules.real, np.int32)
    earlier: list[Ints] = []
    for column, other in enumerate(rules.reached_by(group)):
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
    return ints(first[acl]), acl.sum(axis=1)


def _table(
    rules: Rules,
    targets: list[Pattern],
    group: Ints,
    allow: Ints,
    deny: Ints,
    covered: Truths,
    via: Ints,
    count: Ints,
) -> pa.Table:
    """The rows as Spark gets them. via, count: ACLs, one row's after the other's."""
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
        "via": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), rules.key.take(via)),
    }
    return pa.table(columns)


def labelled(cluster: pa.Scalar, rows: pa.Table) -> pa.Table:
    """The rows with the cluster's name in front."""
    return rows.add_column(0, "cluster", pa.repeat(cluster.cast(pa.string()), len(rows)))
