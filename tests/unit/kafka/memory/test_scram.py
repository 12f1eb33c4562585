"""Logins of the simulated cluster: it keeps what was sent, and tells only what a real one tells."""

from __future__ import annotations

from typing import Any

from kafkaform.core.change import Batch
from kafkaform.core.resource import Absent, CoverageKind, Depth, Hidden, Observed
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka.kinds.user import resource_type as scram
from kafkaform_kafka.kinds.user.simulation import credential_key
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster, refused_items

from ..kinds.test_scram import BOTH, apply, gone, new, raised, read, statuses


def opened(cluster: SimulatedCluster, user: str = "admin") -> Any:
    """A session of this user, which the helpers for real ones take too."""
    return MemoryProvider(cluster, user).open("kafka", EMPTY, {})


def test_a_login_keeps_its_password_until_another_is_sent() -> None:
    """Both mechanisms on their own; nothing that is read or shown has the password."""
    cluster = SimulatedCluster()
    session = opened(cluster)
    assert statuses(apply(session, *(new("ci", name) for name in BOTH))) == {"applied"}
    apply(session, raised("ci", BOTH[1]), password="second")
    passwords = [cluster.world.get(credential_key("ci", name)).password for name in BOTH]
    assert passwords == ["first", "second"]
    seen = read(session, "ci", BOTH[0])
    assert isinstance(seen, Observed)
    assert seen.attributes == FrozenMap(
        username="ci", scram_mechanism=BOTH[0], scram_iterations=4096
    )
    assert "first" not in repr((seen, cluster.world.get(credential_key("ci", BOTH[0]))))


def test_a_dry_run_needs_no_password_and_leaves_none() -> None:
    """There is none before the approval."""
    cluster = SimulatedCluster()
    (step,) = scram.TYPE.steps(new("ci"), opened(cluster).facts)
    (verdict,) = opened(cluster).preflight(Batch("b", "kafka", step.request, (step,)))
    assert (verdict.evidence, verdict.fault) == ("local", None)
    assert cluster.world.get(credential_key("ci", BOTH[0])) is None


def test_a_mishap_can_be_of_one_login() -> None:
    """By its key, as for every other kind."""
    cluster = SimulatedCluster()
    cluster.faults.schedule(refused_items(93, "ci|*"), scram.API)
    good, bad = (outcome.fault for outcome in apply(opened(cluster), new("other"), new("ci")))
    assert good is None and bad is not None and bad.code == "UNACCEPTABLE_CREDENTIAL"


def test_without_the_right_logins_are_hidden() -> None:
    """And who may see them may not change them."""
    cluster = SimulatedCluster()
    cluster.grant("viewer", ("Describe", "cluster"))
    cluster.grant("nobody")
    viewer, nobody = opened(cluster, "viewer"), opened(cluster, "nobody")
    assert isinstance(read(viewer, "ci", BOTH[0]), Absent)
    assert isinstance(read(nobody, "ci", BOTH[0]), Hidden)
    assert nobody.sweep(scram.KIND, Depth.NAMES).coverage.kind is CoverageKind.FAILED
    assert statuses(apply(viewer, new("ci"), gone("ci"))) == {"failed"}
