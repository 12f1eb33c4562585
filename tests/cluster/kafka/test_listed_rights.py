"""What the cluster says that we may do, as a listing for reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.resource import Absent, Depth, Identity, Observed, Sweep
from kafkaform.core.value import EMPTY
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.memory.session import MemorySession
from kafkaform_kafka.protocol.acl import (
    HELD_OPERATIONS,
    LISTED_RIGHTS,
    SUPPORTED,
    list_reported_operations,
)
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.sessions import apply, eventually, new, read

CLUSTER = "Cluster|kafka-cluster"


def held(sweep: Sweep) -> Mapping[str, Sequence[str]]:
    """Key -> operations."""
    return {item.identity.key: item.attributes[HELD_OPERATIONS] for item in sweep.items}


def test_a_super_user_may_do_everything(admin: KafkaSession, prefix: str) -> None:
    """The cluster and every topic are listed with all operations that there are."""
    apply(admin, new(prefix))
    eventually(lambda: read(admin, prefix), lambda found: isinstance(found, Observed))
    found = held(admin.sweep(LISTED_RIGHTS, Depth.FULL))
    assert set(found[CLUSTER]) == set(list_reported_operations("Cluster"))
    assert set(found[f"Topic|{prefix}"]) == set(SUPPORTED["Topic"])


def test_one_resource_is_read_by_name(admin: KafkaSession) -> None:
    """A resource that is not listed is absent."""
    here, nowhere = (Identity("kafka", LISTED_RIGHTS, key) for key in (CLUSTER, "Topic|nowhere"))
    found = admin.read([here, nowhere])
    assert isinstance(found[here], Observed)
    assert found[nowhere] == Absent(nowhere)


def test_who_may_see_nothing_is_told_nothing(ci: KafkaSession, prefix: str) -> None:
    """Without Describe the cluster lists no right, and no topic."""
    found = held(ci.sweep(LISTED_RIGHTS, Depth.FULL))
    assert found.get(CLUSTER) == ()
    assert f"Topic|{prefix}" not in found


def simulated(*grants: tuple[str, str]) -> MemorySession:
    """A session of a user with these rights in a simulated cluster."""
    cluster = SimulatedCluster(brokers=1)
    cluster.grant("ci", *grants)
    return MemoryProvider(cluster, "ci").open("kafka", EMPTY, {})


def test_the_simulated_cluster_tells_as_the_real_one_does() -> None:
    """Rights are listed with what they imply, and only to those who may describe."""
    some = held(simulated(("Alter", "cluster")).sweep(LISTED_RIGHTS, Depth.FULL))
    assert some == {CLUSTER: ("Alter", "Describe")}
    none = held(simulated(("Create", "cluster")).sweep(LISTED_RIGHTS, Depth.FULL))
    assert none == {CLUSTER: ()}
