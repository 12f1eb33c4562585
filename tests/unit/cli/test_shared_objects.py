"""`lifecycle { shared = true }` on a simulated cluster: no command deletes the object."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
SHARED = "  lifecycle {\n    shared = true\n  }\n"
TOPIC = 'resource "kafka_topic" "own" {\n  name = "own"\n}\n'


def make_role(*topics: str, shared: bool = True) -> str:
    names = ", ".join(f'"{name}"' for name in topics)
    return (
        'resource "kafka_access" "a" {\n  principal = "User:ci"\n  role = "producer"\n'
        f"  topics = [{names}]\n{SHARED if shared else ''}}}\n"
    )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """An empty cluster, which every command reaches."""
    made = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(made))
    return made


@pytest.fixture
def there(here: Here, cluster: SimulatedCluster) -> Here:
    """A folder that has created a shared role."""
    here.write("provider.kf.hcl", PROVIDER)
    apply(here, make_role("orders"))
    assert len(cluster.world.of("kafka_acl")) == 2
    return here


def apply(there: Here, text: str) -> str:
    there.write("main.kf.hcl", TOPIC + text)
    return there.done("apply", "--auto-approve").out


def remove_block(there: Here) -> None:
    apply(there, "")


def shrink(there: Here) -> None:
    apply(there, make_role("other"))


def remove_and_destroy(there: Here) -> None:
    apply(there, "removed {\n  from = kafka_access.a\n  lifecycle {\n    destroy = true\n  }\n}\n")


def destroy(there: Here) -> None:
    there.done("destroy", "--target", "kafka_access.a", "--confirm", SimulatedCluster().id)


def undo(there: Here) -> None:
    there.done("undo", "--last", "--auto-approve")


def apply_saved_plan(there: Here) -> None:
    there.write("main.kf.hcl", TOPIC)
    there.done("plan", "--out", "saved.json")
    there.done("apply", "saved.json", "--auto-approve")


@pytest.mark.parametrize(
    "attempt", [remove_block, shrink, remove_and_destroy, destroy, undo, apply_saved_plan]
)
def test_a_shared_object_is_forgotten(
    there: Here, cluster: SimulatedCluster, attempt: Callable[[Here], None]
) -> None:
    """It is still there, and the state does not have it."""
    before = {*cluster.world.of("kafka_acl")}
    attempt(there)
    assert before <= {*cluster.world.of("kafka_acl")}
    assert "orders" not in there.done("state", "list").out


def test_the_last_folder_deletes_in_two_steps(there: Here, cluster: SimulatedCluster) -> None:
    """First it is shared no more, then its block goes."""
    apply(there, make_role("orders", shared=False))
    apply(there, "")
    assert not cluster.world.of("kafka_acl")


def test_the_second_folder_takes_it_over(there: Here) -> None:
    """Without a word about adoption; without `shared`, the object is in the way."""
    there.done("state", "rm", "kafka_access.a")
    there.write("main.kf.hcl", TOPIC + make_role("orders", shared=False))
    assert there.run("plan").code == 8
    apply(there, make_role("orders"))
    assert "No changes" in there.done("plan").out


def test_the_plan_says_why_it_stays(there: Here) -> None:
    """In the words of the rule, and that the protection is on."""
    assert "shared" in there.done("state", "show", "kafka_access.a").out
    there.write("main.kf.hcl", TOPIC)
    said = there.done("plan").out
    assert "it stays, because its block said that it is shared with other folders" in said


QUOTA = (
    'resource "kafka_quota" "a" {\n  user = "ci"\n  config = { producer_byte_rate = 1048576 }\n'
    f"{SHARED}}}\n"
)


@pytest.mark.parametrize(
    ("kind", "address", "text"),
    [
        ("kafka_acl", "kafka_access.a", make_role("other")),
        ("kafka_quota", "kafka_quota.a", QUOTA),
    ],
)
def test_a_plan_to_create_it_holds_if_another_folder_was_faster(
    here: Here, cluster: SimulatedCluster, kind: str, address: str, text: str
) -> None:
    """In one apply of all folders, the first one creates what both have planned to create."""
    here.write("provider.kf.hcl", PROVIDER)
    apply(here, "")
    here.write("main.kf.hcl", TOPIC + text)
    here.done("plan", "--out", "saved.json")
    apply(here, text)
    before = {*cluster.world.of(kind)}
    here.done("state", "rm", address)
    here.done("apply", "saved.json", "--auto-approve")
    assert {*cluster.world.of(kind)} == before
    assert address in here.done("state", "list").out
    assert "No changes" in here.done("plan").out
