"""Patterns and masks in arrays, without Spark, against going through everything."""

from __future__ import annotations

from itertools import product
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.fleet.access.acl_arrays import compute_reach, split_stretches, to_ints
from kafkaform.fleet.access.acl_masks import (
    compute_pattern_masks,
    compute_resource_masks,
    count_pairs,
    find_shadows,
)
from kafkaform.fleet.access.permission_rows import (
    BITS,
    SUPPORTED_OPERATIONS,
    list_operations,
    make_decided_mask,
    make_mask,
)
from kafkaform_kafka.authority.authorizer import Access, fits, index_acls
from kafkaform_kafka.protocol.acl import OPERATION_NAMES, Acl, parse_acl_key

from ...kit.fleet.access_worlds import (
    ELSEWHERE,
    NAMES,
    PATTERNS,
    STRANGER,
    acl,
    covers,
    table,
    verdict,
    worlds,
)


def test_bits_stay_what_they_are() -> None:
    """Tables of earlier builds hold them, and every operation that Kafka has is among them."""
    assert dict(BITS) == {
        **{"All": 2, "Read": 3, "Write": 4, "Create": 5, "Delete": 6, "Alter": 7, "Describe": 8},
        **{"ClusterAction": 9, "DescribeConfigs": 10, "AlterConfigs": 11, "IdempotentWrite": 12},
        **{"CreateTokens": 13, "DescribeTokens": 14, "TwoPhaseCommit": 15},
    }
    assert {BITS[name] for name in OPERATION_NAMES.values()} == set(OPERATION_NAMES)


@pytest.mark.parametrize("permission", ["Allow", "Deny"])
@pytest.mark.parametrize("operation", BITS)
def test_an_acls_bits_are_the_operations_that_it_fits(operation: str, permission: str) -> None:
    """One mask says of each operation what the authorizer says one by one."""
    one = Acl("User:u", "*", operation, permission, "Topic", "t", "Literal")
    mask = make_decided_mask(operation, permission)
    asked = [name for name in BITS if name != "All"]
    assert [name for name in asked if fits(one, name)] == [
        name for name in list_operations(mask) if name != "All"
    ]


def test_every_pattern_finds_its_names() -> None:
    """Stretches of sorted names are what comparing every pattern with every name gives."""
    chance = Random(1)
    for _ in range(150):
        kinds = ("Topic", "Group")
        patterns = sorted(
            {
                (chance.choice(kinds), chance.choice(PATTERNS), chance.choice(_TYPES))
                for _ in range(chance.randint(0, 12))
            }
        )
        names = sorted(
            {
                (chance.choice(kinds), chance.choice((*NAMES, "")), "Literal")
                for _ in range(chance.randint(0, 9))
            }
        )
        found = compute_reach(patterns, names, pattern_level=False)
        for number, (kind, pattern, type_) in enumerate(patterns):
            expected = [
                place
                for place, (other, name, _) in enumerate(names)
                if kind == other and _matches(pattern, type_, name)
            ]
            assert _targets(found, number) == expected, (pattern, type_, names)


_TYPES = ("Literal", "Prefixed")


def _matches(pattern: str, pattern_type: str, name: str) -> bool:
    if pattern_type == "Prefixed":
        return name.startswith(pattern)
    return name == pattern or (pattern == "*" and not name.startswith("*"))


def _targets(found: object, number: int) -> list[int]:
    start, count = found.start[number], found.count[number]  # type: ignore[attr-defined]
    return sorted(found.target[start : start + count].tolist())  # type: ignore[attr-defined]


def test_every_pattern_finds_the_narrower_ones() -> None:
    """A pattern covers those whose every name it matches, `*` and the empty prefix among them."""
    every = sorted(("Topic", name, type_) for name in PATTERNS for type_ in _TYPES)
    found = compute_reach(every, every, pattern_level=True)
    for number, (_, name, type_) in enumerate(every):
        expected = [
            place for place, (_, *other) in enumerate(every) if covers((name, type_), tuple(other))
        ]
        assert _targets(found, number) == expected, (name, type_)


def test_one_more_deny_never_widens_and_one_more_allow_never_narrows() -> None:
    """In every row that there is before and after, about patterns and about resources."""
    chance = Random(2)
    widened = 0
    for _ in range(60):
        before = [acl(chance, "Topic") for _ in range(chance.randint(1, 12))]
        more = acl(chance, "Topic")
        for permission in ("Allow", "Deny"):
            after = [*before, replace(more, permission=permission)]
            for old, new in zip(_effective(before), _effective(after), strict=True):
                for key in old.keys() & new.keys():
                    gone, come = old[key] & ~new[key], new[key] & ~old[key]
                    assert not (gone if permission == "Allow" else come)
                    widened += bool(gone or come)
    assert widened > 40  # otherwise nothing was tried


def _effective(acls: list[Acl]) -> tuple[dict[tuple[str, ...], int], ...]:
    unique = list(dict.fromkeys(acls))
    names = table([Acl("", "", "", "", "Topic", name, "") for name in NAMES])
    tables = (
        compute_pattern_masks(table(unique)),
        compute_resource_masks(table(unique, [("Topic", "User:*")]), names),
    )
    columns = ("name", "pattern_type", "principal", "host")
    return tuple(
        {tuple(row[c] for c in columns): row["allow"] & ~row["deny"] for row in rows.to_pylist()}
        for rows in tables
    )


def test_the_order_of_acls_changes_nothing() -> None:
    """Rows and the ACLs that they name are the same in whatever order ACLs come."""
    chance = Random(3)
    some = list({acl(chance, "Topic") for _ in range(40)})
    names = table([Acl("", "", "", "", "Topic", name, "") for name in NAMES])
    asking = [("Topic", "User:*")]

    def rows() -> list[list[dict[str, object]]]:
        chance.shuffle(some)
        found = (
            compute_pattern_masks(table(some)),
            compute_resource_masks(table(some, asking), names),
        )
        return [sorted(one.to_pylist(), key=str) for one in found]

    assert rows() == rows()


def test_large_clusters_are_worked_on_in_pieces() -> None:
    """Rows about patterns and what is shadowed are the same, few pairs at a time."""
    for world in worlds(seed=6, count=60):
        acls = table(world.acls)
        if world.acls:
            assert compute_pattern_masks(acls, most=3).equals(compute_pattern_masks(acls))
            assert find_shadows(acls, most=3).equals(find_shadows(acls))


@given(st.lists(st.integers(0, 9)), st.integers(1, 20))
def test_pieces_are_no_larger_than_they_must_be(count: list[int], most: int) -> None:
    """They follow each other, and more than the limit is in one only because of its last part."""
    pieces = list(split_stretches(to_ints(count), most))
    assert [n for first, end in pieces for n in range(first, end)] == list(range(len(count)))
    assert all(sum(count[first : end - 1]) < most for first, end in pieces)


def test_pairs_are_counted_without_being_made() -> None:
    """Every ACL of each pattern with every resource that it covers."""
    patterns = pa.table(
        {
            "resource_type": ["Topic"] * 3,
            "name": ["a", "*", "ab"],
            "pattern_type": ["Prefixed", "Literal", "Literal"],
            "acls": [2, 1, 5],
        }
    )
    names = pa.table({"resource_type": ["Topic"] * 4, "name": ["a", "ab", "b", "*x"]})
    assert count_pairs(patterns, names) == 2 * 2 + 3 + 5
    assert count_pairs(patterns.slice(0, 0), names) == count_pairs(patterns, names.slice(0, 0)) == 0


def test_an_empty_cluster_and_one_without_resources() -> None:
    """No resource gives no row; a resource without ACLs gives one, for everybody."""
    asking = table([], [("Topic", "User:*")])
    assert compute_resource_masks(asking, table([])).num_rows == 0
    (row,) = compute_resource_masks(
        asking, table([Acl("", "", "", "", "Topic", "t", "")])
    ).to_pylist()
    assert (row["principal"], row["host"], row["allow"], row["covered"]) == (
        "User:*",
        "*",
        0,
        False,
    )


def test_a_row_for_acls_that_are_elsewhere_closes_what_they_are_about() -> None:
    """It gives nothing, is named nowhere, and leaves the rest open."""
    (elsewhere,) = table(
        [Acl("User:*", "*", "Read", "Allow", "Topic", "a", "Prefixed")]
    ).to_pylist()
    asking = table([], [("Topic", "User:*")])
    other = pa.Table.from_pylist([{**elsewhere, "operation": None, "key": None}], asking.schema)
    names = table([Acl("", "", "", "", "Topic", name, "") for name in ("ab", "b")])
    rows = compute_resource_masks(pa.concat_tables([asking, other]), names).to_pylist()
    told = {row["name"]: (row["allow"], row["covered"], row["via"]) for row in rows}
    assert told == {"ab": (0, True, []), "b": (0, False, [])}


def test_without_what_is_shadowed_every_decision_is_the_same() -> None:
    """All ACLs that are said to decide nothing can go at once, whatever is asked then; and the ACL
    that each is said to be needless for is another one."""
    chance, gone = Random(4), dict.fromkeys(("given", "denied"), 0)
    people, hosts = ("User:u", "User:v", "Group:g", STRANGER), ("1.1.1.1", "2.2.2.2", ELSEWHERE)
    for _ in range(60):
        kind = chance.choice(("Topic", "Group", "TransactionalID", "DelegationToken"))
        some = list(dict.fromkeys(acl(chance, kind) for _ in range(chance.choice((8, 30)))))
        found = {row["key"]: row for row in find_shadows(table(some)).to_pylist()}
        for row in found.values():
            assert row["by"] in {one.key for one in some} - {row["key"]}
            gone[row["reason"]] += 1
        left = [one for one in some if one.key not in found]
        before, after = (Access(index_acls(acls), frozenset(), True) for acls in (some, left))
        questions = list(product((*NAMES, "y"), people, hosts, SUPPORTED_OPERATIONS[kind]))
        for name, who, host, operation in chance.sample(questions, 100):
            asked = (operation, kind, name, who, host)
            assert verdict(before, *asked) is verdict(after, *asked), (asked, found)
    assert min(gone.values()) > 50, gone


def test_what_is_shadowed_is_all_that_one_broader_acl_makes_needless() -> None:
    """None is missed: compared with trying every pair."""
    for world in worlds(seed=5, count=150):
        if not world.acls:
            continue
        found = find_shadows(table(world.acls)).to_pylist()
        given = {one.key for one in world.acls if any(_gives(o, one) for o in world.acls)}
        assert {row["key"] for row in found if row["reason"] == "given"} <= given
        assert {row["key"] for row in found} >= given


def _gives(wide: Acl, narrow: Acl) -> bool:
    return (
        wide != narrow
        and (wide.permission, wide.resource_type) == (narrow.permission, narrow.resource_type)
        and covers(
            (wide.resource_name, wide.pattern_type), (narrow.resource_name, narrow.pattern_type)
        )
        and wide.principal in (narrow.principal, "User:*")
        and wide.host in (narrow.host, "*")
        and (
            wide.operation == "All" or (narrow.operation != "All" and fits(wide, narrow.operation))
        )
    )


@pytest.mark.parametrize(
    ("narrow", "wide", "reason"),
    [
        ("User:u|*|Describe|Allow|Topic|a|Literal", "User:u|*|Read|Allow|Topic|a|Literal", "given"),
        ("User:u|*|Describe|Deny|Topic|a|Literal", "User:u|*|Read|Deny|Topic|a|Literal", None),
        ("User:u|*|Read|Allow|Topic|ab|Prefixed", "User:*|*|All|Allow|Topic|a|Prefixed", "given"),
        ("User:u|*|Read|Allow|Topic|a|Literal", "User:u|1.1.1.1|All|Allow|Topic|a|Literal", None),
        ("User:u|*|Read|Allow|Topic|a|Literal", "User:*|*|All|Deny|Topic|*|Literal", "denied"),
        ("User:u|*|Read|Allow|Topic|a|Literal", "User:u|*|Read|Deny|Topic|a|Literal", None),
        ("User:u|*|Write|Allow|Topic|a|Literal", "User:u|*|Read|Allow|Topic|a|Literal", None),
        (
            "User:u|*|Describe|Allow|DelegationToken|t|Literal",
            "User:u|*|All|Allow|DelegationToken|t|Literal",
            "given",
        ),
        ("User:u|*|Read|Allow|Topic|*x|Literal", "User:u|*|Read|Allow|Topic|*|Literal", None),
    ],
)
def test_what_shadows_what(narrow: str, wide: str, reason: str | None) -> None:
    """Only a whole, and never each other: DENY Read leaves Describe, `*` passes over `*x`."""
    rows = find_shadows(table([parse_acl_key(narrow), parse_acl_key(wide)])).to_pylist()
    expected = [{"key": narrow, "reason": reason, "by": wide}] if reason else []
    assert rows == expected


def test_names_of_a_mask_are_its_operations() -> None:
    assert list_operations(make_mask(["Write", "Read", "Read"])) == ("Read", "Write")
