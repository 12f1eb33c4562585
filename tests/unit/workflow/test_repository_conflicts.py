"""Objects that two folders of a repository have, as far as their files and states say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kafkaform.core.address import parse_address
from kafkaform.core.diagnostics import Diagnostic, Diagnostics, Range
from kafkaform.core.resource import (
    Declared,
    Desired,
    Fence,
    Identity,
    Lifecycle,
    ProviderConfig,
    Removed,
)
from kafkaform.core.value import FrozenMap
from kafkaform.provider.registry import Registry
from kafkaform.state.model import Row, State
from kafkaform.workflow.configuration.repository import FolderGroup, RepositoryFolder
from kafkaform.workflow.repository.checking import FolderClaim, find_conflicts, list_claims

KAFKA = "kafka"
PROVIDERS = {KAFKA: Registry().load(KAFKA)}
TYPES = PROVIDERS[KAFKA].types
PLAIN, SHARED = Lifecycle(), Lifecycle(adopt=True, shared=True)
PLACE = "s3://states/"
ACL = {
    "resource_type": "Topic",
    "resource_name": "orders",
    "resource_pattern_type_filter": "Literal",
    "acl_principal": "User:ci",
    "acl_host": "*",
    "acl_operation": "Read",
    "acl_permission_type": "Allow",
}


def declare(kind: str, lifecycle: Lifecycle = PLAIN, line: int = 3, **values: Any) -> Declared:
    attributes = FrozenMap({**dict.fromkeys(TYPES[kind].schema.attributes), **values})
    identity = Identity(KAFKA, kind, TYPES[kind].key(attributes))
    place = Range("main.kf.hcl", line, 1, line, 9)
    return Declared(identity, parse_address(f"{kind}.x"), attributes, place, lifecycle)


def record(item: Declared, protected: str = "no") -> Row:
    address = str(item.address)
    return Row(item.identity, (address,), 1, item.attributes, protected=protected)


def claim(
    path: str,
    *declared: Declared,
    rows: tuple[Row, ...] = (),
    removed: tuple[Removed, ...] = (),
    servers: str | None = "prod:9092",
    scope: str = "",
    recorded_scope: str = "",
    fence: Fence | None = None,
) -> list[FolderClaim]:
    """The claims of one folder."""
    folder = RepositoryFolder(
        path, path.rpartition("/")[2], FolderGroup("*", Range("", 1, 1, 1, 1), None)
    )  # type: ignore[arg-type]
    where = Range("main.kf.hcl", 1, 1, 1, 1)
    config = ProviderConfig(KAFKA, KAFKA, FrozenMap(bootstrap_servers=(servers,)), where)
    desired = Desired(declared, {} if servers is None else {KAFKA: config}, removed, fence=fence)
    bound = FrozenMap({KAFKA: recorded_scope} if recorded_scope else {})
    state = State("lineage", objects={row.identity: row for row in rows}, providers=bound)
    scopes = {KAFKA: scope} if scope else {}
    return [*list_claims(folder, desired, PROVIDERS, state, f"{PLACE}{path}", scopes)]


def texts(faults: Mapping[str, Diagnostics]) -> dict[str, list[str]]:
    return {folder: [describe(fault) for fault in items] for folder, items in faults.items()}


def describe(fault: Diagnostic) -> str:
    return f"{fault.range}: {fault.summary}"


TOPIC = declare("kafka_topic", name="orders")


def test_two_folders_that_declare_a_topic_both_fail() -> None:
    """Each names its own line and the place of the other block."""
    shop, pay = claim("teams/shop", TOPIC), claim("teams/pay", TOPIC)
    assert texts(find_conflicts([*shop, *pay])) == {
        "teams/pay": [
            "main.kf.hcl:3:1: kafka_topic orders is declared here, and another folder has it, too: "
            "teams/shop (teams/shop/main.kf.hcl:3) [object-in-two-folders]"
        ],
        "teams/shop": [
            "main.kf.hcl:3:1: kafka_topic orders is declared here, and another folder has it, too: "
            "teams/pay (teams/pay/main.kf.hcl:3) [object-in-two-folders]"
        ],
    }


def test_other_objects_and_other_systems_are_no_conflict() -> None:
    """The same name on another cluster is another topic."""
    shop = claim("teams/shop", TOPIC)
    assert not find_conflicts([*shop, *claim("teams/pay", declare("kafka_topic", name="b"))])
    assert not find_conflicts([*shop, *claim("teams/pay", TOPIC, servers="other:9092")])
    one, other = claim("a", TOPIC, scope="id-1"), claim("b", TOPIC, scope="id-2")
    assert not find_conflicts([*one, *other])


def test_the_id_of_a_cluster_counts_more_than_its_address() -> None:
    """Two addresses can be one cluster."""
    one = claim("a", TOPIC, scope="id-1")
    other = claim("b", TOPIC, scope="id-1", servers="other:9092")
    assert set(find_conflicts([*one, *other])) == {"a", "b"}


def test_a_cluster_that_did_not_answer_one_folder_is_known_by_the_others() -> None:
    """By its address, or by the id that a state has recorded."""
    one, silent = claim("a", TOPIC, scope="id-1"), claim("b", TOPIC)
    assert set(find_conflicts([*one, *silent])) == {"a", "b"}
    silent = claim("b", TOPIC, servers="other:9092", recorded_scope="id-1")
    assert set(find_conflicts([*one, *silent])) == {"a", "b"}


def test_an_object_in_the_state_of_another_folder() -> None:
    """The next plan of that folder would delete what this one declares."""
    shop, old = claim("teams/shop", TOPIC), claim("old", rows=(record(TOPIC),))
    found = find_conflicts([*shop, *old])
    assert texts(found) == {
        "old": [
            "None: kafka_topic orders is recorded in the state, and another folder has it, too: "
            "teams/shop (teams/shop/main.kf.hcl:3) [object-in-two-folders]"
        ],
        "teams/shop": [
            "main.kf.hcl:3:1: kafka_topic orders is declared here, and another folder has it, too: "
            "old (recorded in s3://states/old) [object-in-two-folders]"
        ],
    }
    advice = "Let old forget it: add a `removed` block with from = kafka_topic.x to it, or run "
    assert all(fault.advice.startswith(advice) for items in found.values() for fault in items)


def test_a_folder_without_blocks_of_the_provider_still_has_a_state() -> None:
    """The id that the state recorded says which system it is."""
    shop = claim("teams/shop", TOPIC, scope="id-1")
    old = claim("old", rows=(record(TOPIC),), servers=None, recorded_scope="id-1")
    assert set(find_conflicts([*shop, *old])) == {"old", "teams/shop"}


def test_an_object_moves_to_another_folder_in_one_step() -> None:
    """What is only forgotten is no conflict; what is deleted is one."""
    shop, rows = claim("teams/shop", TOPIC), (record(TOPIC),)
    block = Removed(TOPIC.address, False, TOPIC.range)
    assert not find_conflicts([*shop, *claim("old", rows=rows, removed=(block,))])
    deleting = replace(block, destroy=True)
    assert find_conflicts([*shop, *claim("old", rows=rows, removed=(deleting,))])


def test_what_two_states_record_and_nobody_declares() -> None:
    """Both folders want it to go."""
    rows = (record(TOPIC),)
    assert not find_conflicts([*claim("a", rows=rows), *claim("b", rows=rows)])


def test_a_topic_and_its_configs_are_one_object() -> None:
    """Both blocks manage the configs of the topic."""
    config = declare("kafka_topic_config", topic="orders", config=FrozenMap({"retention.ms": "1"}))
    found = find_conflicts([*claim("a", TOPIC), *claim("b", config)])
    assert "kafka_topic orders" in found["a"][0].summary
    assert "kafka_topic_config orders" in found["b"][0].summary


def test_a_folder_is_no_rival_of_itself() -> None:
    """Two blocks of one folder can own one object."""
    twice = (TOPIC, replace(TOPIC, address=parse_address("kafka_topic.y")))
    assert not find_conflicts(claim("a", *twice, rows=(record(TOPIC),)))


def test_what_a_boundary_refuses_is_no_conflict() -> None:
    """A pull request of one team cannot stop the plans of another one. It fails already."""
    fence = Fence("teams/pay", {"topics": ("pay.*",)}, frozenset(), "kafkaform.hcl:9", "somebody")
    owner = claim("teams/shop", TOPIC)
    assert not find_conflicts([*owner, *claim("teams/pay", TOPIC, fence=fence)])
    assert not find_conflicts([*owner, *claim("teams/pay", rows=(record(TOPIC),), fence=fence)])
    third = claim("old", TOPIC)
    assert set(find_conflicts([*owner, *claim("teams/pay", TOPIC, fence=fence), *third])) == {
        "old",
        "teams/shop",
    }
    inside = replace(fence, lists={"topics": ("*",)})
    both = find_conflicts([*owner, *claim("teams/pay", TOPIC, fence=inside)])
    assert set(both) == {"teams/pay", "teams/shop"}
    denied = replace(inside, denied=frozenset({"kafka_topic"}))
    assert not find_conflicts([*owner, *claim("teams/pay", TOPIC, fence=denied)])


# ── shared objects ──────────────────────────────────────────────────────────────────────


def test_an_acl_is_shared_if_all_blocks_say_so() -> None:
    """One that does not would delete what the others need."""
    plain, shared = declare("kafka_acl", **ACL), declare("kafka_acl", SHARED, **ACL)
    assert not find_conflicts([*claim("a", shared), *claim("b", shared)])
    for pair in ((plain, plain), (plain, shared)):
        found = find_conflicts([*claim("a", pair[0]), *claim("b", pair[1])])
        assert set(found) == {"a", "b"}
        assert "lifecycle { shared = true } in all of them" in found["a"][0].advice
    found = find_conflicts([*claim("a", shared), *claim("b", shared), *claim("c", plain)])
    assert set(found) == {"a", "b", "c"}


def test_a_shared_object_leaves_a_folder_without_a_conflict() -> None:
    """It was recorded as shared, so the folder only forgets it."""
    shared = declare("kafka_acl", SHARED, **ACL)
    left = claim("b", rows=(record(shared, "shared"),))
    assert not find_conflicts([*claim("a", shared), *left])
    assert not find_conflicts([*claim("a", declare("kafka_acl", **ACL)), *left])
    assert find_conflicts([*claim("a", shared), *claim("b", rows=(record(shared),))])


def test_shared_quotas_have_equal_values() -> None:
    """In whatever way the blocks write the entity."""
    limits = FrozenMap({"producer_byte_rate": 1048576.0})
    one = declare("kafka_quota", SHARED, user="ci", config=limits)
    same = declare("kafka_quota", SHARED, entity_type="user", entity_name="ci", config=limits)
    assert not find_conflicts([*claim("a", one), *claim("b", same)])
    more = FrozenMap({"producer_byte_rate": 1048576.0, "consumer_byte_rate": 5.0})
    other = declare("kafka_quota", SHARED, line=7, user="ci", config=more)
    assert texts(find_conflicts([*claim("a", one), *claim("b", other)]))["a"] == [
        "main.kf.hcl:3:1: kafka_quota user=ci is shared, but with other values of "
        "config.consumer_byte_rate in: b (b/main.kf.hcl:7) [object-shared-differs]"
    ]


def test_many_folders_are_named_by_the_first_few() -> None:
    """And by how many more there are."""
    claims = [item for n in range(6) for item in claim(f"f{n}", TOPIC)]
    (fault,) = find_conflicts(claims)["f0"]
    assert "other folders have it, too: f1 (f1/main.kf.hcl:3), " in fault.summary
    assert fault.summary.endswith("and 2 more [object-in-two-folders]")
