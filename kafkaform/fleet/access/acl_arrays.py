"""The ACLs of one cluster as arrays: what each covers, what it decides, and whom it reaches.

A *target* is what rows are about: a resource, or a pattern, which means everything that it
covers and no narrower pattern names. A principal is reached by its own ACLs and those of `User:*`,
a host by its own and those of `*`.

Names are sorted by code point, so a prefix covers one stretch, which binary search finds. The work
grows with the number of patterns and results, not with their product.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray

from kafkaform_kafka.authority.authorizer import ALL, EVERYBODY
from kafkaform_kafka.protocol.acl import ALLOW, DENY, EVERY_TOPIC, EVERYTHING, LITERAL, PREFIXED

from .permission_rows import BITS, ON_CLUSTER, make_decided_mask

Ints = NDArray[np.int64]
Truths = NDArray[np.bool_]
Pattern = tuple[str, str, str]
"""Resource type, name, pattern type. A resource is written as a literal pattern."""
Pairs = tuple[Ints, Ints]
"""(rule, target)."""
NO_INDEX = -1
"""In place of an index: there is none."""
_DECIDED_MASKS: Mapping[tuple[str | None, str | None], int] = {
    (permission, operation): make_decided_mask(operation, permission)
    for permission in (ALLOW, DENY)
    for operation in (*BITS, *(f"{ON_CLUSTER}{name}" for name in (ALL, *EVERY_TOPIC)))
}


def to_ints(values: Any) -> Ints:
    """Return the values as an array of 64-bit integers."""
    return np.asarray(values, dtype=np.int64)


def spread_stretches(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return every position of every stretch: the number of its stretch, and the position."""
    # The vectorised form of two nested loops: a Python loop over millions of pairs takes minutes.
    owner = np.repeat(np.arange(len(start)), count)
    before = np.cumsum(count) - count
    return owner, np.arange(len(owner)) - before[owner] + start[owner]


class Reach(Struct, frozen=True):
    """The targets that each pattern covers: of pattern n they are target[start[n] : start[n] +
    count[n]]."""

    target: Ints
    start: Ints
    count: Ints


def compute_reach(
    patterns: Sequence[Pattern], targets: list[Pattern], *, pattern_level: bool
) -> Reach:
    """Return the targets that each pattern covers.

    targets: sorted, no two equal; pattern_level: targets are patterns, so the literal `*` means
    everything and is not a name; a pattern is covered by one that covers all that it covers.
    """
    by_type = {
        kind: _Names(first, [name for _, name, _ in targets[first:last]], targets, pattern_level)
        for kind, first, last in _split_runs(targets)
    }
    stretches = [
        (number, first, last)
        for number, (kind, name, pattern_type) in enumerate(patterns)
        if kind in by_type
        for first, last in by_type[kind].find_covered(name, pattern_type)
        if first < last
    ]
    number, first, last = to_ints(stretches).reshape(-1, 3).T
    _, target = spread_stretches(first, last - first)
    count = np.zeros(len(patterns), np.int64)
    np.add.at(count, number, last - first)
    return Reach(target, np.cumsum(count) - count, count)


def _split_runs(targets: list[Pattern]) -> Iterator[tuple[str, int, int]]:
    first = 0
    for kind, run in groupby(targets, key=lambda target: target[0]):
        last = first + sum(1 for _ in run)
        yield kind, first, last
        first = last


class _Names(Struct, frozen=True):
    """The targets of one type."""

    first: int
    """The number of the first target."""
    names: list[str]
    targets: list[Pattern]
    pattern_level: bool

    def find_covered(self, name: str, pattern_type: str) -> Iterator[tuple[int, int]]:
        """Yield the targets that this pattern covers, as stretches that do not overlap."""
        if pattern_type == PREFIXED:
            yield self._find_prefixed(name)
        elif name == EVERYTHING:
            yield from self._find_everything()
        else:
            yield self._find_equal(name)

    def _find_everything(self) -> Iterator[tuple[int, int]]:
        """Kafka's search skips the wildcard for names that begin with `*` themselves; nor does it
        cover the empty prefix, which includes such names."""
        first_star, last_star = self._find_begun(EVERYTHING)
        yield self._find_equal("")
        yield self.first + bisect_right(self.names, ""), first_star
        yield self._find_equal(EVERYTHING)
        yield last_star, self.first + len(self.names)

    def _find_prefixed(self, prefix: str) -> tuple[int, int]:
        first, last = self._find_begun(prefix)
        if self.pattern_level and prefix == EVERYTHING:
            first = self._find_equal(prefix)[1]  # the literal `*` means all names
        return first, last

    def _find_begun(self, prefix: str) -> tuple[int, int]:
        names = self.names
        first = bisect_left(names, prefix)
        # A search for the first name without the prefix: there is no greatest text with it to look
        # for.
        last = bisect_left(names, True, first, key=lambda name: not name.startswith(prefix))
        return self.first + first, self.first + last

    def _find_equal(self, name: str) -> tuple[int, int]:
        """Return the literal target of this name; the prefix of the same name follows it."""
        first = self.first + bisect_left(self.names, name)
        kind = self.targets[self.first][0]
        exists = self.targets[first : first + 1] == [(kind, name, LITERAL)]
        return first, first + exists


class Rules(Struct, frozen=True):
    """ACLs of a cluster as arrays. What decides first comes first: DENY, then the most specific.

    Rows without a key are no ACLs: they only ask for an answer about their principal, or represent
    ACLs of others. ACLs of the cluster are repeated among those of topics, which they do not close.
    """

    patterns: tuple[Pattern, ...]
    """Each pattern once."""
    pattern: Ints
    """Index into `patterns`."""
    principal: Ints
    """Index into `principals`."""
    host: Ints
    """Index into `hosts`."""
    bit: Ints
    """Of the operation."""
    allow: Ints
    """The operations that it allows, as bits."""
    deny: Ints
    """The operations that it denies, as bits."""
    closes: Truths
    """What it covers is closed to everybody without an ACL."""
    principals: pa.Array
    hosts: pa.Array
    everybody: int
    """Index of `User:*`."""
    everywhere: int
    """Index of host `*`."""
    key: pa.Array
    """Null for rows that are no ACLs."""

    @property
    def real(self) -> int:
        """How many are ACLs; they come before the others."""
        return len(self.key) - int(self.key.null_count)

    def group(self, target: Ints, principal: Ints | int, host: Ints | int) -> Ints:
        """Number each combination of target, principal and host."""
        # One 64-bit number per group, so that numpy can sort and search groups without Python
        # objects.
        return (target * len(self.principals) + principal) * len(self.hosts) + host

    def ungroup(self, group: Ints) -> tuple[Ints, Ints, Ints]:
        """Return target, principal and host of each group."""
        target_principal, host = np.divmod(group, len(self.hosts))
        target, principal = np.divmod(target_principal, len(self.principals))
        return target, principal, host

    def find_reaching_groups(self, group: Ints) -> tuple[Ints, ...]:
        """Return the groups whose ACLs apply to these ones, themselves first; some may be equal."""
        target, principal, host = self.ungroup(group)
        return (
            group,
            self.group(target, principal, self.everywhere),
            self.group(target, self.everybody, host),
            self.group(target, self.everybody, self.everywhere),
        )


def build_rules(acls: pa.Table) -> Rules:
    """Build the arrays from rows with known words only.

    acls: resource_type, name, pattern_type, principal, host, operation, permission, key. For rows
    that are no ACLs, operation and key are null, and permission too unless the row represents
    ACLs of others.
    """
    acls = acls.take(_rank_acls(acls))
    # Distinct patterns first: many ACLs share one, and coverage is computed per pattern.
    numbers: dict[Pattern, int] = {}
    columns = (acls[name].to_pylist() for name in ("resource_type", "name", "pattern_type"))
    pattern = [numbers.setdefault(triple, len(numbers)) for triple in zip(*columns, strict=True)]
    principal, principals = _number_texts(acls["principal"], EVERYBODY)
    host, hosts = _number_texts(acls["host"], EVERYTHING)
    permissions, operations = acls["permission"].to_pylist(), acls["operation"].to_pylist()
    masks = [_DECIDED_MASKS.get(words, 0) for words in zip(permissions, operations, strict=True)]
    allows = np.array([permission == ALLOW for permission in permissions], dtype=bool)
    return Rules(
        patterns=tuple(numbers),
        pattern=to_ints(pattern),
        principal=principal,
        host=host,
        bit=to_ints([BITS.get(operation, 0) for operation in operations]),
        allow=np.where(allows, to_ints(masks), 0),
        deny=np.where(allows, 0, to_ints(masks)),
        closes=np.array(
            [
                permission is not None and not (operation or "").startswith(ON_CLUSTER)
                for permission, operation in zip(permissions, operations, strict=True)
            ],
            dtype=bool,
        ),
        principals=principals,
        hosts=hosts,
        everybody=principals.index(EVERYBODY).as_py(),
        everywhere=hosts.index(EVERYTHING).as_py(),
        key=pc.cast(acls["key"], pa.string()).combine_chunks(),
    )


def _rank_acls(acls: pa.Table) -> pa.Array:
    """Return the order in which the authorizer decides."""
    wild = pc.and_(pc.equal(acls["pattern_type"], LITERAL), pc.equal(acls["name"], EVERYTHING))
    flags = {
        "no_acl": pc.is_null(acls["key"]),
        "allow": pc.equal(acls["permission"], ALLOW),
        "wild": wild,
        "prefixed": pc.equal(acls["pattern_type"], PREFIXED),
    }
    # Longer prefixes are more specific, so they come first.
    width = {"width": pc.negate(pc.utf8_length(acls["name"]))}
    last = {
        "everybody": pc.equal(acls["principal"], EVERYBODY),
        "everywhere": pc.equal(acls["host"], EVERYTHING),
        "all": pc.equal(acls["operation"], ALL),
    }
    ends = {"key": acls["key"], "principal": acls["principal"]}
    order = {**_cast_flags(flags), **width, **_cast_flags(last), **ends}
    return pc.sort_indices(pa.table(order), sort_keys=[(name, "ascending") for name in order])


def _cast_flags(flags: Mapping[str, pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
    """Arrow cannot sort by booleans."""
    return {name: pc.cast(flag, pa.int8()) for name, flag in flags.items()}


def _number_texts(column: pa.ChunkedArray, special: str) -> tuple[Ints, pa.Array]:
    """Return each text's number, and the texts; `special` is among them even if no row has it."""
    texts = pa.chunked_array([*column.chunks, pa.array([special], column.type)])
    encoded = texts.combine_chunks().dictionary_encode()
    return to_ints(encoded.indices.to_numpy()[:-1]), encoded.dictionary


# ── ACLs by target, principal and host ──────────────────────────────────────────────────


class GroupedRules(Struct, frozen=True):
    """ACLs by target, principal and host. The ACLs of group n are rule[start[n] : start[n] +
    count[n]], in the order of `Rules`."""

    group: Ints
    """Rising, each once."""
    start: Ints
    count: Ints
    rule: Ints
    allow: Ints
    """The bits of all its ACLs together."""
    deny: Ints

    def find(self, group: Ints) -> Ints:
        """Return where these groups are, or NO_INDEX."""
        if not len(self.group):
            return np.full_like(group, NO_INDEX)
        # searchsorted returns the length for values beyond the end.
        index = np.minimum(np.searchsorted(self.group, group), len(self.group) - 1)
        return np.where(self.group[index] == group, index, NO_INDEX)


def group_rules(rules: Rules, group: Ints, rule: Ints) -> GroupedRules:
    """Group the ACLs. rule: rising within equal groups."""
    # stable: keeps the order of rules within a group, which is the order of deciding.
    order = np.argsort(group, kind="stable")
    group, rule = group[order], rule[order]
    start = np.flatnonzero(np.diff(group, prepend=NO_INDEX))
    count = np.diff(np.append(start, len(group)))
    allow, deny = (
        np.bitwise_or.reduceat(bits[rule], start) if len(start) else start
        for bits in (rules.allow, rules.deny)
    )
    return GroupedRules(group[start], start, count, rule, allow, deny)


def merge_bits(rules: Rules, grouped: GroupedRules, group: Ints) -> tuple[Ints, Ints]:
    """Return the ALLOW and DENY bits of everything that reaches these groups."""
    allow, deny = np.zeros_like(group), np.zeros_like(group)
    for reaching in rules.find_reaching_groups(group):
        index = grouped.find(reaching)
        exists = index != NO_INDEX
        allow[exists] |= grouped.allow[index[exists]]
        deny[exists] |= grouped.deny[index[exists]]
    return allow, deny


def find_covering(rules: Rules, covers: Reach, first: int = 0, end: int | None = None) -> Pairs:
    """Return every ACL from `first` up to `end` with every target that it covers, by rule."""
    pattern = rules.pattern[first:end]
    rule, position = spread_stretches(covers.start[pattern], covers.count[pattern])
    return rule + first, covers.target[position]


def split_stretches(count: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Cut the counts into pieces that add up to about `most`; yield (first, end) of each. Only its
    last count can take a piece over `most`."""
    before = np.cumsum(count) - count
    first = np.flatnonzero(np.diff(before // most, prepend=NO_INDEX)).tolist()
    yield from zip(first, [*first, len(count)][1:], strict=True)


def keep_distinct(rising: Ints) -> Ints:
    """Return each number once. `np.unique` takes ten times as long, because it sorts again."""
    return rising[np.diff(rising, prepend=NO_INDEX) > 0]
