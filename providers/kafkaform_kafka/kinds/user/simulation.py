"""SCRAM credentials of the simulated cluster.

It stores plain passwords, so that a test can check whether a login would work. Sessions never
return them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.secret import PartialRepr

from ...protocol import faults, keys
from ...protocol.apis import ALTER_USER_SCRAM_CREDENTIALS
from ...protocol.cluster_facts import NEWEST, get_release, is_before
from ..simulation import (
    CLUSTER,
    AdminAnswer,
    AdminCall,
    Item,
    ItemVerdict,
    Key,
    ReadScene,
    Refusal,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    require,
    run_batch,
)
from . import resource_type as scram

_DESCRIBE = "DescribeUserScramCredentials"


class Credential(PartialRepr, frozen=True):
    """One user's credential for one mechanism."""

    _unshown = frozenset({"password"})

    iterations: int
    password: str
    """The password of the request's payload."""


def credential_key(user: str, mechanism: str) -> Key:
    """The key of this credential in the simulated world."""
    return scram.KIND, scram.identity_key(user, mechanism)


def alter_scram(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """AlterUserScramCredentials: a user who occurs twice is refused twice (92)."""
    named = Counter(item["username"] for item in items)

    def alter(item: Item) -> ItemVerdict:
        require(named[item["username"]] == 1, 92)
        return _alter_item(call, item)

    # Keys have the mechanism, too, but Kafka counts users: a second item for one is refused, also
    # with another mechanism (KIP-554). So `alter` counts, and not `run_batch`.
    return run_batch(call, items, _key_of, alter, twice=None)


def _key_of(item: Item) -> Key:
    return credential_key(item["username"], item["mechanism"])


def _alter_item(call: AdminCall, item: Item) -> ItemVerdict:
    require(not _is_too_old(call.facts), 35)
    require(call.user.may("Alter", CLUSTER), 31)
    if item.get("delete"):
        require(call.world.get(_key_of(item)) is not None, 91)
        return AdminAnswer(), None, 1
    if not scram.FEWEST <= item["iterations"] <= scram.MOST:
        # UNACCEPTABLE_CREDENTIAL: the controller checks the iterations, and no broker the password.
        raise Refusal(93, "the number of iterations is out of bounds")
    credential = Credential(item["iterations"], item["password"])
    return AdminAnswer(), credential, 1


def _sweep(scene: ReadScene, depth: Depth) -> Sweep:
    code = 35 if _is_too_old(scene.facts) else 0 if _may_see(scene) else 31
    if code:
        coverage = Coverage(CoverageKind.FAILED, faults.fault_of(_DESCRIBE, code, ""))
        return Sweep(scram.KIND, depth, (), coverage)
    items = tuple(
        _observe_credential(Identity(scene.instance, scram.KIND, name), credential)
        for name, credential in scene.objects(scram.KIND).items()
    )
    return Sweep(scram.KIND, depth, items, Coverage(CoverageKind.COMPLETE))


def _read(scene: ReadScene, identity: Identity) -> Reading:
    if _is_too_old(scene.facts):
        return Failed(identity, faults.fault_of(_DESCRIBE, 35, ""))
    if not _may_see(scene):
        return Hidden(identity, faults.name_right(_DESCRIBE, ""))
    credential = scene.objects(scram.KIND).get(identity.key)
    return Absent(identity) if credential is None else _observe_credential(identity, credential)


def _is_too_old(facts: Facts) -> bool:
    return is_before(get_release(facts) or NEWEST, ALTER_USER_SCRAM_CREDENTIALS.since)


def _may_see(scene: ReadScene) -> bool:
    return scene.user.may("Describe", CLUSTER)


def _observe_credential(identity: Identity, credential: Credential) -> Observed:
    user, mechanism = keys.split(identity.key)
    return Observed(identity, scram.make_attributes(user, mechanism, credential.iterations))


def _check_step(scene: ReadScene, _: Step) -> Fault | None:
    may = scene.user.may("Alter", CLUSTER)
    return None if may else faults.fault_of(scram.API, 31, "")


SIMULATED = SimulatedKind(
    reads=SimulatedReads(_DESCRIBE, _DESCRIBE, _DESCRIBE, _sweep, _read),
    handlers={scram.API: alter_scram},
    checks={scram.API: _check_step},
)
