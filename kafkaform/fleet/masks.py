"""What the ACLs of one cluster add up to, in arrays.

The rules are those of `kafkaform_providers.kafka.access`, whose `decide` the tests compare with. A
*target* is what rows are about: a resource, or a pattern, which stands for whatever it covers and
no narrower pattern names. A principal is reached by its own ACLs and by those of `User:*`, a host
by its own and by those of `*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkaform_providers.kafka.access import (
    ALL,
    ALLOW,
    DENY,
    EVERYBODY,
    EVERYTHING,
    LITERAL,
    PREFIXED,
)

from .access_bits import ASKED, BITS, asked_of, given_by
from .covering import Ints, Pattern, Reach, Truths, ints, reach, spread

VIA = 3
"""ACLs that a row about a resource names."""
NOTHING = -1
"""No place, no ACL."""

_GIVEN: Mapping[tuple[str | None, str | None], int] = {
    (permission, operation): given_by(operation, permission)
    for permission in (ALLOW, DENY)
    for operation in BITS
}
_ASKED: Mapping[str, int] = {kind: asked_of(kind) for kind in ASKED}


@dataclass(frozen=True)
class Rules:
    """ACLs of a cluster as arrays: what decides first stands first, so DENY, then the most special.

    patterns: each once; pattern: index there; principal, host: index in `principals` and `hosts`,
    where `User:*` and `*` are everybody and everywhere; bit: of the operation; allow, deny: what it
    decides; key: null for a row that is no ACL and only asks for an answer about its principal.
    """

    patterns: tuple[Pattern, ...]
    pattern: Ints
    principal: Ints
    host: Ints
    bit: Ints
    allow: Ints
    deny: Ints
    principals: pa.Array
    hosts: pa.Array
    everybody: int
    everywhere: int
    key: pa.Array

    @property
    def real(self) -> int:
        """How many are ACLs; they stand before those that are none."""
        return len(self.key) - int(self.key.null_count)

    def group(self, target: Ints, principal: Ints | int, host: Ints | int) -> Ints:
        """One number for each target, principal and host."""
        return (target * len(self.principals) + principal) * len(self.hosts) + host

    def ungroup(self, group: Ints) -> tuple[Ints, Ints, Ints]:
        rest, host = np.divmod(group, len(self.hosts))
        target, principal = np.divmod(rest, len(self.principals))
        return target, principal, host

    def reached_by(self, group: Ints) -> tuple[Ints, ...]:
        """The groups whose ACLs hold for this one, itself first; some of them can be the same."""
        target, principal, host = self.ungroup(group)
        return (
            group,
            self.group(target, principal, self.everywhere),
            self.group(target, self.everybody, host),
            self.group(target, self.everybody, self.everywhere),
        )


def rules_of(acls: pa.Table) -> Rules:
    """From the columns resource_type, name, pattern_type, principal, host, operation, permission
    and key of rows with known words only; of one that is no ACL the last three are null."""
    acls = acls.take(_ranked(acls))
    numbers: dict[Pattern, int] = {}
    columns = (acls[name].to_pylist() for name in ("resource_type", "name", "pattern_type"))
    pattern = [numbers.setdefault(one, len(numbers)) for one in zip(*columns, strict=True)]
    principal, principals = _numbered(acls["principal"], EVERYBODY)
    host, hosts = _numbered(acls["host"], EVERYTHING)
    permissions, operations = acls["permission"].to_pylist(), acls["operation"].to_pylist()
    given = [_GIVEN.get(words, 0) for words in zip(permissions, operations, strict=True)]
    allows = np.array([permission == ALLOW for permission in permissions], dtype=bool)
    return Rules(
        patterns=tuple(numbers),
        pattern=ints(pattern),
        principal=principal,
        host=host,
        bit=ints([BITS.get(operation, 0) for operation in operations]),
        allow=np.where(allows, ints(given), 0),
        deny=np.where(allows, 0, ints(given)),
        principals=principals,
        hosts=hosts,
        everybody=principals.index(EVERYBODY).as_py(),
        everywhere=hosts.index(EVERYTHING).as_py(),
        key=pc.cast(acls["key"], pa.string()).combine_chunks(),
    )


def _ranked(acls: pa.Table) -> pa.Array:
    wild = pc.and_(pc.equal(acls["pattern_type"], LITERAL), pc.equal(acls["name"], EVERYTHING))
    flags = {
        "no_acl": pc.is_null(acls["key"]),
        "allow": pc.equal(acls["permission"], ALLOW),
        "wild": wild,
        "prefixed": pc.equal(acls["pattern_type"], PREFIXED),
    }
    width = {"width": pc.negate(pc.utf8_length(acls["name"]))}
    last = {
        "everybody": pc.equal(acls["principal"], EVERYBODY),
        "everywhere": pc.equal(acls["host"], EVERYTHING),
        "all": pc.equal(acls["operation"], ALL),
    }
    ends = {"key": acls["key"], "principal": acls["principal"]}
    order = {**_bytes(flags), **width, **_bytes(last), **ends}
    return pc.sort_indices(pa.table(order), sort_keys=[(name, "ascending") for name in order])


def _bytes(flags: Mapping[str, pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
    """Arrow does not sort by truth."""
    return {name: pc.cast(flag, pa.int8()) for name, flag in flags.items()}


def _numbered(column: pa.ChunkedArray, special: str) -> tuple[Ints, pa.Array]:
    """Each text's number, and the texts; `special` is one of them even if no row has it."""
    texts = pa.chunked_array([*column.chunks, pa.array([special], column.type)])
    found = texts.combine_chunks().dictionary_encode()
    return ints(found.indices.to_numpy()[:-1]), found.dictionary


# ── ACLs by target, principal and host ──────────────────────────────────────────────────


@dataclass(frozen=True)
class Held:
    """group: rising, each once; its ACLs are rule[start[n] : start[n] + count[n]], in the order of
    `Rules`; allow, deny: theirs together."""

    group: Ints
    start: Ints
    count: Ints
    rule: Ints
    allow: Ints
    deny: Ints

    def find(self, group: Ints) -> Ints:
        """Where these groups are, or NOTHING."""
        if not len(self.group):
            return np.full_like(group, NOTHING)
        place = np.minimum(np.searchsorted(self.group, group), len(self.group) - 1)
        return np.where(self.group[place] == group, place, NOTHING)


def held(rules: Rules, group: Ints, rule: Ints) -> Held:
    """rule: rising wherever `group` is the same."""
    order = np.argsort(group, kind="stable")
    group, rule = group[order], rule[order]
    start = np.flatnonzero(np.diff(group, prepend=NOTHING))
    count = np.diff(np.append(start, len(group)))
    allow, deny = (
        np.bitwise_or.reduceat(bits[rule], start) if len(start) else start
        for bits in (rules.allow, rules.deny)
    )
    return Held(group[start], start, count, rule, allow, deny)


def _merged(rules: Rules, found: Held, group: Ints) -> tuple[Ints, Ints]:
    """ALLOW and DENY bits of everything that reaches these groups."""
    allow, deny = np.zeros_like(group), np.zeros_like(group)
    for other in rules.reached_by(group):
        place = found.find(other)
        here = place != NOTHING
        allow[here] |= found.allow[place[here]]
        deny[here] |= found.deny[place[here]]
    return allow, deny


def _covering(rules: Rules, covers: Reach) -> tuple[Ints, Ints]:
    """Every ACL with every target that it covers: (rule, target), by rule."""
    rule, place = spread(covers.start[rules.pattern], covers.count[rules.pattern])
    return rule, covers.target[place]


# ── rows about patterns ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Patterns:
    """target: of each ACL, its own pattern; own: ACLs by that; all: by every pattern that they
    cover, of those whom the ACLs of the covered one name, and of everybody."""

    targets: list[Pattern]
    target: Ints
    own: Held
    all: Held


def _by_pattern(rules: Rules) -> _Patterns:
    targets = sorted(rules.patterns)
    numbers = {pattern: number for number, pattern in enumerate(targets)}
    target = ints([numbers[pattern] for pattern in rules.patterns])[rules.pattern]
    own = held(rules, rules.group(target, rules.principal, rules.host), np.arange(len(target)))
    named = _distinct(np.sort(target * len(rules.principals) + rules.principal))
    rule, covered = _covering(rules, reach(rules.patterns, targets, pattern_level=True))
    who = rules.principal[rule]
    asked = _among(covered * len(rules.principals) + who, named) | (who == rules.everybody)
    rule, covered = rule[asked], covered[asked]
    group = rules.group(covered, rules.principal[rule], rules.host[rule])
    return _Patterns(targets, target, own, held(rules, group, rule))


def _among(values: Ints, rising: Ints) -> Truths:
    place = np.minimum(np.searchsorted(rising, values), len(rising) - 1)
    return np.equal(rising[place], values)


def pattern_masks(acls: pa.Table) -> pa.Table:
    """A row for each pattern, principal and host of the ACLs: what holds for whatever the pattern
    covers and no narrower one does. via: all ACLs with just these three."""
    rules = rules_of(acls)
    found = _by_pattern(rules)
    own = found.own
    allow, deny = _merged(rules, found.all, own.group)
    real = np.add.reduceat(own.rule < rules.real, own.start, dtype=np.int64)
    _, place = spread(own.start, real)
    return _table(rules, found.targets, own.group, allow, deny, real > 0, own.rule[place], real)


def shadows(acls: pa.Table) -> pa.Table:
    """The ACLs that decide nothing: key, reason (`given`: `by` says the same of at least as much;
    `denied`: so does a DENY of all that it allows), by (of several the broadest).

    `given` has no circles, so that all of them can go at once.
    """
    rules = rules_of(acls)
    found = _by_pattern(rules)
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
    _, deny = _merged(rules, found.all, group)
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


def resource_masks(acls: pa.Table, resources: pa.Table, principal: str | None = None) -> pa.Table:
    """A row for each resource with each principal and host that matter there; of `principal` alone
    if one is given. Who has no row has what `User:*` has, and a host without one what `*` has.

    resources: columns resource_type and name; each of its types needs a row in `acls` that reaches
    all names for `User:*`, and one for `principal`, which can be no ACLs.
    """
    rules = rules_of(acls)
    names = zip(resources["resource_type"].to_pylist(), resources["name"].to_pylist(), strict=True)
    targets = [(kind, name, LITERAL) for kind, name in sorted(set(names))]
    covers = reach(rules.patterns, targets, pattern_level=False)
    rule, target = _covering(rules, covers)
    covered = np.zeros(len(targets), bool)
    covered[target[rule < rules.real]] = True
    who = None if principal is None else rules.principals.index(principal).as_py()
    if who is not None:
        asked = np.isin(rules.principal[rule], (who, rules.everybody))
        rule, target = rule[asked], target[asked]
    found = held(rules, rules.group(target, rules.principal[rule], rules.host[rule]), rule)
    group = _complete(rules, found, who)
    allow, deny = _merged(rules, found, group)
    via, count = _first(rules, found, group)
    return _table(rules, targets, group, allow, deny, covered[rules.ungroup(group)[0]], via, count)


def _complete(rules: Rules, found: Held, who: int | None) -> Ints:
    """The groups that get a row: those with ACLs, and of each principal there every host for which
    everybody has ACLs or something that asks for them."""
    target, principal, host = rules.ungroup(found.group)
    everybody = principal == rules.everybody
    shared_target, shared_host = target[everybody], host[everybody]
    pairs = _distinct(found.group // len(rules.hosts))
    at = pairs // len(rules.principals)
    first = np.searchsorted(shared_target, at)
    owner, place = spread(first, np.searchsorted(shared_target, at, "right") - first)
    more = pairs[owner] * len(rules.hosts) + shared_host[place]
    more = more[found.find(more) == NOTHING]
    group = np.sort(np.concatenate((found.group, more)), kind="stable")
    return group if who is None else group[rules.ungroup(group)[1] == who]


def _distinct(rising: Ints) -> Ints:
    """Each number once; `np.unique` takes ten times as long, as it does not know the order."""
    return rising[np.diff(rising, prepend=NOTHING) > 0]


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
