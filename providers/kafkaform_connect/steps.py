"""The requests that change connectors, in their order.

What halts a connector leaves before its new configs, so that it does not run with them first; what
lets it run leaves after them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY, FrozenMap, Value

MAX_ITEMS = 100
"""Connectors in a batch. Each is a request of its own, and the leader of the workers takes one
after the other; the outcomes of a batch become durable together."""


def _make_request(name: str, part_number: int, phase: int) -> Request:
    return Request(name, part_number, phase, max_items=MAX_ITEMS, max_weight=MAX_ITEMS)


CREATE = _make_request("CreateConnectors", 1, 10)
HALT = _make_request("HaltConnectors", 1, 20)
CONFIGURE = _make_request("ConfigureConnectors", 1, 30)
RESUME = _make_request("ResumeConnectors", 1, 40)
RESTART = _make_request("RestartConnectors", 1, 50)
DELETE = _make_request("DeleteConnectors", 2, 10)

HALTED = ("paused", "stopped")


def make_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    """The steps of a change: one for a create and a delete, up to three for an update."""
    make = _STEPS.get(change.action)
    return make(change) if make else ()


def _create(change: Change) -> tuple[Step, ...]:
    after = change.after or EMPTY
    secrets = after.get("secret_config") or EMPTY
    payload = {
        "class": after["class"],
        "config": after["config"],
        "secrets": secrets,
        "state": after["state"],
    }
    evidence = Evidence.LOCAL if secrets else Evidence.REMOTE
    return (_make_step(change, 1, CREATE, payload, _list_paths(change), Repeat.VERIFY, evidence),)


def _delete(change: Change) -> tuple[Step, ...]:
    return (_make_step(change, 1, DELETE, EMPTY, _list_paths(change)),)


def _update(change: Change) -> tuple[Step, ...]:
    after = change.after or EMPTY
    halts = after.get("state") in HALTED
    state = _select_paths(change, "state")
    failed = _select_paths(change, "failures")
    if failed and after.get("state") == "stopped":
        # A stopped connector has no tasks that could have failed.
        state, failed = (*state, *failed), ()
    makers: list[Callable[[int], Step | None]] = []
    move = FrozenMap(state=after.get("state"))
    if state and halts:
        makers.append(lambda n: _make_step(change, n, HALT, move, state))
    makers.append(lambda n: _configure(change, n))
    if state and not halts:
        makers.append(lambda n: _make_step(change, n, RESUME, move, state))
    if failed:
        makers.append(lambda n: _make_step(change, n, RESTART, move, failed))
    steps: list[Step] = []
    for make in makers:
        if (step := make(len(steps) + 1)) is not None:
            steps.append(step)
    return tuple(steps)


def _configure(change: Change, number: int) -> Step | None:
    """The step that sets and removes configs, None if nothing is to be set."""
    before, after = change.before or EMPTY, change.after or EMPTY
    paths = _select_paths(change, "class", "config", "secret_keys")
    config, references = after.get("config") or EMPTY, after.get("secret_config") or EMPTY
    secret_keys = after.get("secret_keys") or EMPTY
    put = {path[1]: config[path[1]] for path in paths if path[0] == "config" and path[1] in config}
    removed = [
        path[1]
        for path in paths
        if (path[0] == "config" and path[1] not in config and path[1] not in secret_keys)
        or (path[0] == "secret_keys" and path[1] not in secret_keys and path[1] not in config)
    ]
    new = {path[1] for path in paths if path[0] == "secret_keys"}
    secrets = {k: r for k, r in references.items() if k in new or _sends_secrets(change)}
    if not paths and not secrets:
        return None
    payload: dict[str, Value] = {
        "class": after["class"],
        "put": FrozenMap(put),
        "gone": tuple(sorted(set(removed))),
        "secrets": FrozenMap(secrets),
        "state": after.get("state"),
        "was": before.get("class"),
    }
    # A dry run knows no secrets, and whether one was stored must not be read back.
    repeat = Repeat.NEVER if secrets else Repeat.SAFE
    evidence = Evidence.LOCAL if secrets else Evidence.REMOTE
    return _make_step(change, number, CONFIGURE, payload, paths, repeat, evidence)


def _sends_secrets(change: Change) -> bool:
    """True if a new version asks for the secrets to be sent again."""
    # An adoption keeps the secrets that are set: whether they are the declared ones is unknown.
    version = change.row_after.secret_version
    return version is not None and version != change.row_before.secret_version and not change.adopts


_STEPS: Mapping[Action, Callable[[Change], tuple[Step, ...]]] = {
    Action.CREATE: _create,
    Action.UPDATE: _update,
    Action.DELETE: _delete,
}


def _list_paths(change: Change) -> tuple[Path, ...]:
    return tuple(item.path for item in change.paths)


def _select_paths(change: Change, *heads: str) -> tuple[Path, ...]:
    """The paths below these attributes. `owner` and `labels` are in the state alone."""
    return tuple(item.path for item in change.paths if item.path[0] in heads)


def _make_step(
    change: Change,
    number: int,
    request: Request,
    payload: Mapping[str, Value],
    paths: tuple[Path, ...],
    repeat: Repeat = Repeat.SAFE,
    evidence: Evidence = Evidence.LOCAL,
) -> Step:
    identity = change.identity
    prefix = f"{identity.instance}/{identity.kind}/{identity.key}#"
    return Step(
        id=f"{prefix}{number}",
        identity=identity,
        address=change.address,
        request=request,
        payload=FrozenMap({"name": identity.key, **payload}),
        weight=1,
        after=(f"{prefix}{number - 1}",) if number > 1 else (),
        repeat=repeat,
        evidence=evidence,
        paths=paths,
    )
