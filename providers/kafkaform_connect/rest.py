"""The calls of the REST API, and what their refusals mean.

Sources: Kafka Connect's ConnectorsResource, ConnectorPluginsResource, RootResource,
HerderRequestHandler and ConnectExceptionMapper; KIP-26, KIP-477 (PATCH), KIP-507, KIP-745
(restart), KIP-769 (plugins), KIP-875 (stop), KIP-980 (initial state).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from kafkaform.core.resource import Fault, FaultClass
from kafkaform.provider.http.exchange import (
    Call,
    ErrorTable,
    HttpAnswer,
    join_path,
    make_fault,
    read_error_code,
    read_message,
)

RETRY_SECONDS = 1.0
"""Pause before a worker is asked again that refused because of a rebalance."""

SERVER = Call("GET", "/", reads=True)
NAMES = Call("GET", "/connectors", reads=True)
# A query with the same name twice (KIP-465), which a mapping cannot hold.
CONNECTORS = Call("GET", "/connectors?expand=info&expand=status", reads=True)
PLUGINS = Call("GET", "/connector-plugins", query={"connectorsOnly": "false"}, reads=True)

TABLE: ErrorTable = {
    (400, None): (FaultClass.DEFINITE, "correct the configuration of the connector"),
    (404, None): (FaultClass.CONVERGED, "plan again and look at what is there now"),
    # Nothing was executed: the worker knows no leader, or was asked by a worker that did not know
    # that the leader has changed (HerderRequestHandler.completeOrForwardRequest).
    (409, None): (FaultClass.NOT_APPLIED, "run the same command again after the rebalance"),
}
_EXISTS = re.compile(r"\balready exists\b")
# RebalanceNeededException where nothing makes 409 of it, as for a connector by its name (4.3). That
# a write was refused because of it cannot be told from this text alone.
_REBALANCES = re.compile(r"\bbecause a rebalance is expected\b")
_NOT_FOUND = re.compile(r"\bconnector\b.*\bnot found\b", re.IGNORECASE)


class WorkersClient(Protocol):
    """What is needed of `kafkaform.provider.http.client.HttpClient`."""

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        """The answer to each call, in order; a Fault for one that got none."""

    def prove(self) -> None:
        """Ask every open connection where it leads. Raises OtherSystem."""

    def close(self) -> None:
        """End all connections."""


class RequestFailed(Exception):
    """A read without a useful answer."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


# ── calls ───────────────────────────────────────────────────────────────────────────────


def get_connector(name: str) -> Call:
    return Call("GET", join_path("connectors", name), reads=True)


def get_status(name: str) -> Call:
    return Call("GET", join_path("connectors", name, "status"), reads=True)


def get_definition(class_: str) -> Call:
    return Call("GET", join_path("connector-plugins", class_, "config"), reads=True)


def validate(class_: str, config: Mapping[str, str]) -> Call:
    """A check without an effect. config: with `name` and `connector.class`."""
    path = join_path("connector-plugins", class_, "config", "validate")
    return Call("PUT", path, dict(config), reads=True)


def create(name: str, config: Mapping[str, str], state: str) -> Call:
    body: dict[str, Any] = {"name": name, "config": dict(config)}
    if state != "running":
        # Workers before 3.7 refuse a member that they do not know.
        body["initial_state"] = state.upper()
    return Call("POST", "/connectors", body)


def patch_config(name: str, changes: Mapping[str, str | None]) -> Call:
    """Set configs, and remove those that are None; all others stay."""
    return Call("PATCH", join_path("connectors", name, "config"), dict(changes))


def put_config(name: str, config: Mapping[str, str]) -> Call:
    """Replace all configs."""
    return Call("PUT", join_path("connectors", name, "config"), dict(config))


def put_state(name: str, state: str) -> Call:
    """Resume, pause or stop. state: running, paused or stopped."""
    verb = {"running": "resume", "paused": "pause", "stopped": "stop"}[state]
    return Call("PUT", join_path("connectors", name, verb))


def restart_failed(name: str) -> Call:
    """Restart the connector and its tasks as far as they have failed, once."""
    query = {"includeTasks": "true", "onlyFailed": "true"}
    return Call("POST", join_path("connectors", name, "restart"), query=query)


def delete(name: str) -> Call:
    return Call("DELETE", join_path("connectors", name))


# ── answers ─────────────────────────────────────────────────────────────────────────────


def find_fault(answer: HttpAnswer | Fault, call: Call) -> Fault | None:
    """Why a call failed, None if it did not."""
    if isinstance(answer, Fault):
        return answer
    if answer.succeeded:
        return None
    fault = make_fault(answer, TABLE, call)
    if answer.status == 409:
        if _EXISTS.search(fault.message):
            advice = "plan again; --adopt takes the connector over"
            return replace(fault, kind=FaultClass.CONVERGED, advice=advice)
        return replace(fault, retry_after=fault.retry_after or RETRY_SECONDS)
    if answer.status == 500 and call.reads and _REBALANCES.search(fault.message):
        kind, advice = TABLE[409, None]
        return replace(fault, kind=kind, advice=advice, retry_after=RETRY_SECONDS)
    return fault


def get_body(answer: HttpAnswer | Fault, call: Call) -> Any:
    """The JSON value of a success. Raises RequestFailed."""
    fault = find_fault(answer, call)
    if fault is not None:
        raise RequestFailed(fault)
    assert isinstance(answer, HttpAnswer)
    return answer.body


def proves_absence(answer: HttpAnswer | Fault, name: str) -> bool:
    """True if a worker says that it knows no connector of this name."""
    # A wrong path, or a proxy, answers 404 as well. Only a worker names the connector.
    if not isinstance(answer, HttpAnswer) or answer.status != 404 or read_error_code(answer) != 404:
        return False
    message = read_message(answer)
    return name in message and _NOT_FOUND.search(message) is not None


def make_bad_answer(call: Call, cause: str) -> Fault:
    """The fault of an answer that no worker gives."""
    return Fault(
        "BAD_ANSWER",
        f"the answer is not that of a Connect worker: {cause}",
        FaultClass.AMBIGUOUS if not call.reads else FaultClass.NOT_APPLIED,
        f"{call}",
        "check url: it has to lead to the REST API of the workers",
    )
