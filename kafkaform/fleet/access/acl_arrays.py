"""The ACLs of one cluster as arrays: what each decides, and whom it reaches.

A *target* is what rows are about: a resource, or a pattern, which stands for everything that it
covers and no narrower pattern names. A principal is reached by its own ACLs and those of `User:*`,
a host by its own and those of `*`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kafkaform_kafka.authority.authorizer import ALL, EVERYBODY
from kafkaform_kafka.protocol.acl import ALLOW, DENY, EVERYTHING, LITERAL, PREFIXED

from .operation_bits import BITS, EVERY_TOPIC, ON_CLUSTER, make_given_mask
from .pattern_cover import Ints, Pattern, Reach, Truths, spread_stretches, to_ints

Pairs = tuple[Ints, Ints]
"""(rule, target)."""
NOTHING = -1
"""In place of an index: there is none."""

_GIVEN: Mapping[tuple[str | None, str | None], int] = {
    (permission, operation): make_given_mask(operation, permission)
    for permission in (ALLOW, DENY)
    for operation in (*BITS, *(f"{ON_CLUSTER}{name}" for name in (ALL, *EVERY_TOPIC)))
}


class Rules(Struct, frozen=True):
    """ACLs of a cluster as arrays. What decides first comes first: DENY, then the most specific.

    Rows without a key are no ACLs: they only ask for an answer about their principal, or stand for
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
        rest, host = np.divmod(group, len(self.hosts))
        target, principal = np.divmod(rest, len(self.principals))
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
    that are no ACLs, operation and key are null, and permission too unless the row stands for ACLs
    of others.
    """
    acls = acls.take(_rank_acls(acls))
    # Distinct patterns first: many ACLs share one, and coverage is computed per pattern.
    numbers: dict[Pattern, int] = {}
    columns = (acls[name].to_pylist() for name in ("resource_type", "name", "pattern_type"))
    pattern = [numbers.setdefault(one, len(numbers)) for one in zip(*columns, strict=True)]
    principal, principals = _number_texts(acls["principal"], EVERYBODY)
    host, hosts = _number_texts(acls["host"], EVERYTHING)
    permissions, operations = acls["permission"].to_pylist(), acls["operation"].to_pylist()
    given = [_GIVEN.get(words, 0) for words in zip(permissions, operations, strict=True)]
    allows = np.array([permission == ALLOW for permission in permissions], dtype=bool)
    return Rules(
        patterns=tuple(numbers),
        pattern=to_ints(pattern),
        principal=principal,
        host=host,
        bit=to_ints([BITS.get(operation, 0) for operation in operations]),
        allow=np.where(allows, to_ints(given), 0),
        deny=np.where(allows, 0, to_ints(given)),
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
    found = texts.combine_chunks().dictionary_encode()
    return to_ints(found.indices.to_numpy()[:-1]), found.dictionary


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
        """Return where these groups are, or NOTHING."""
        if not len(self.group):
            return np.full_like(group, NOTHING)
        # searchsorted returns the length for values beyond the end.
        place = np.minimum(np.searchsorted(self.group, group), len(self.group) - 1)
        return np.where(self.group[place] == group, place, NOTHING)


def group_rules(rules: Rules, group: Ints, rule: Ints) -> GroupedRules:
    """Group the ACLs. rule: rising within equal groups."""
    # stable: keeps the order of rules within a group, which is the order of deciding.
    order = np.argsort(group, kind="stable")
    group, rule = group[order], rule[order]
    start = np.flatnonzero(np.diff(group, prepend=NOTHING))
    count = np.diff(np.append(start, len(group)))
    allow, deny = (
        np.bitwise_or.reduceat(bits[rule], start) if len(start) else start
        for bits in (rules.allow, rules.deny)
    )
    return GroupedRules(group[start], start, count, rule, allow, deny)


def merge_bits(rules: Rules, found: GroupedRules, group: Ints) -> tuple[Ints, Ints]:
    """Return the ALLOW and DENY bits of everything that reaches these groups."""
    allow, deny = np.zeros_like(group), np.zeros_like(group)
    for other in rules.find_reaching_groups(group):
        place = found.find(other)
        here = place != NOTHING
        allow[here] |= found.allow[place[here]]
        deny[here] |= found.deny[place[here]]
    return allow, deny


def find_covering(rules: Rules, covers: Reach, first: int = 0, end: int | None = None) -> Pairs:
    """Return every ACL from `first` up to `end` with every target that it covers, by rule."""
    pattern = rules.pattern[first:end]
    rule, place = spread_stretches(covers.start[pattern], covers.count[pattern])
    return rule + first, covers.target[place]


def split_stretches(count: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Cut the counts into pieces that add up to about `most`; yield (first, end) of each. Only its
    last count can take a piece over `most`."""
    before = np.cumsum(count) - count
    first = np.flatnonzero(np.diff(before // most, prepend=NOTHING)).tolist()
    yield from zip(first, [*first, len(count)][1:], strict=True)


def keep_distinct(rising: Ints) -> Ints:
    """Return each number once. `np.unique` takes ten times as long, because it sorts again."""
    return rising[np.diff(rising, prepend=NOTHING) > 0]
