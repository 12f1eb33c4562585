"""Faults of config requests, which name the right that each kind of resource needs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kafkaform.core.resource import Fault, FaultClass

from .apis import APIS
from .faults import fault_of

DESCRIBE, ALTER = "DescribeConfigs", "IncrementalAlterConfigs"
LISTING = "ListConfigResources"
_PLACES = {
    "topic": "Topic {name}",
    "group": "Group {name}",
    "broker": "Cluster",
    "client_metrics": "Cluster",
}


def right_for_configs(api: str, resource: str, name: str) -> str:
    """The right that this API needs for the configs of this resource, in the words of ACLs."""
    return f"{APIS[api].operation} on {_PLACES[resource].format(name=name)}"


def config_fault(
    api: str,
    resource: str,
    name: str,
    code: int,
    message: str | None,
    *,
    broker: str = "",
    wait: float = 0.0,
) -> Fault:
    """The fault for one resource of an answer. wait: the answer's throttle time in seconds."""
    fault = fault_of(api, code, name, message, broker, wait)
    if fault.kind is not FaultClass.PERMISSION:
        return fault
    # One API serves topics, groups and brokers, so its row of `APIS` cannot name the right.
    right = right_for_configs(api, resource, name)
    return replace(fault, advice=f"grant {right}, or run as a principal that has it")


def not_live_fault(broker: str, live: Sequence[str]) -> Fault:
    """The fault of a read that only this broker can answer."""
    return Fault(
        "BROKER_NOT_AVAILABLE",
        f"broker {broker} is not live, and only that broker can report its configs",
        FaultClass.NOT_APPLIED,
        DESCRIBE,
        f"start it and plan again; the live brokers are {', '.join(live)}",
    )
