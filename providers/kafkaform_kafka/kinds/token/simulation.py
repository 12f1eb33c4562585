"""Delegation tokens of the simulated cluster. Everybody sees all of them, and none expires."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap

from ...protocol import faults, keys
from ..kind import CREATE_TOKEN, END_TOKEN, RENEW_TOKEN
from ..simulation import (
    AdminAnswer,
    AdminCall,
    Item,
    ItemVerdict,
    Key,
    ReadScene,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    require,
    run_batch,
)
from . import resource_type as tokens

_DAY = 86_400_000


class SimulatedToken(Struct, frozen=True):
    """One token. Times are in milliseconds of the cluster's clock."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expires: int
    ends: int


def create_token(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """CreateDelegationToken: the id follows from when the token was asked for."""

    def create(item: Item) -> ItemVerdict:
        now = int(call.now * 1000)
        requester = call.user.principal
        ends = now + (tokens.parse_period(item.get("max_lifetime") or "") or 7 * _DAY)
        token = SimulatedToken(
            item.get("owner") or requester,
            requester,
            tuple(item["renewers"]),
            now,
            min(now + _DAY, ends),
            ends,
        )
        return AdminAnswer(made=_name(item["stamp"])), token, 1

    return run_batch(call, items, lambda item: (tokens.KIND, _name(item["stamp"])), create)


def move_end(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """RenewDelegationToken and ExpireDelegationToken of tokens that exist."""

    def move(item: Item) -> ItemVerdict:
        token: SimulatedToken | None = call.world.get(_key_of(item))
        require(token is not None, 62)
        assert token is not None
        period = tokens.parse_period(item["period"])
        if not period and item["period"] != tokens.LONGEST:
            return AdminAnswer(), None, 1
        expires = min(int(call.now * 1000) + (period or _DAY), token.ends)
        moved = SimulatedToken(
            token.owner, token.requester, token.renewers, token.issued, expires, token.ends
        )
        return AdminAnswer(made=moved), moved, 1

    return run_batch(call, items, _key_of, move)


def _key_of(item: Item) -> Key:
    return tokens.KIND, item["token_id"]


def _name(stamp: str) -> str:
    return f"token-{stamp}"


def _sweep(scene: ReadScene, depth: Depth) -> Sweep:
    items = tuple(
        _observe(Identity(scene.instance, tokens.KIND, name), token)
        for name, token in scene.objects(tokens.KIND).items()
    )
    return Sweep(tokens.KIND, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


def _read(scene: ReadScene, identity: Identity) -> Reading:
    stored = scene.objects(tokens.KIND)
    if keys.split(identity.key)[0] == tokens.BEFORE:
        return Observed(identity, FrozenMap(), details=FrozenMap(ids=tuple(sorted(stored))))
    new = tokens.parse_new(identity.key)
    if new is not None:
        name = _name(new.stamp)
        return Observed(identity, new.attributes, name) if name in stored else Absent(identity)
    token = stored.get(identity.key)
    return Absent(identity) if token is None else _observe(identity, token)


def _observe(identity: Identity, token: SimulatedToken) -> Observed:
    times = {"issued": token.issued, "expires": token.expires, "ends": token.ends}
    attributes = tokens.make_attributes(
        identity.key, token.owner, token.requester, token.renewers, times
    )
    return Observed(identity, attributes, identity.key)


def _check_step(scene: ReadScene, step: Step) -> Fault | None:
    token_id = step.payload.get("token_id")
    if token_id is None or token_id in scene.objects(tokens.KIND):
        return None
    return faults.fault_of(step.request.name, 62, token_id)


_SENT = (RENEW_TOKEN.name, END_TOKEN.name)
SIMULATED = SimulatedKind(
    reads=SimulatedReads(tokens.API, tokens.API, tokens.API, _sweep, _read),
    handlers={CREATE_TOKEN.name: create_token, **dict.fromkeys(_SENT, move_end)},
    checks=dict.fromkeys((CREATE_TOKEN.name, *_SENT), _check_step),
    made={CREATE_TOKEN.name: lambda _, answer: (answer.made, None)},
)
