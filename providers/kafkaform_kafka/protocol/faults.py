"""Turn an error code or a broken connection into a fault: what happened to the request, the most
likely cause, and for configs the right that each kind of resource needs.

What a code means is in `tables/error_codes.tsv`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.resource import Fault, FaultClass

from .apis import APIS
from .tables import read_table


class ErrorCode(Struct, frozen=True):
    """One error code."""

    number: int
    name: str
    """The protocol's name."""
    kind: FaultClass
    """What it says about the effect of the request."""
    meaning: str
    """One clause."""
    advice: str = ""
    """What to do next, or empty."""
    cause: str = ""
    """The most likely cause."""


FOREIGN = "a broker that is newer than this kafkaform, or a proxy that is not a broker"
"""The most likely cause of a code that no admin request returns."""
_READ_FIRST = "run the command again: it reads the object first and continues from there"


@cache
def error_codes() -> Mapping[int, ErrorCode]:
    """Number -> code."""
    return {code.number: code for code in _read_codes()}


def _read_codes() -> Iterator[ErrorCode]:
    for row in read_table("error_codes"):
        number, name, meaning = int(row["number"]), row["name"], row["meaning"]
        if row["effect"]:
            effect = FaultClass(row["effect"])
            yield ErrorCode(number, name, effect, meaning, row["advice"], row["cause"])
        else:
            yield ErrorCode(number, name, FaultClass.AMBIGUOUS, meaning, _READ_FIRST, FOREIGN)


_TOO_OLD = 35
_THROTTLED = 89
_DENIED = (29, 30, 31, 53, 65)

_RESOURCES = {30: "on Group {name}", 31: "on Cluster"}
"""Code -> the resource that it is about, for APIs that serve resources of several kinds."""

# CLUSTER_AUTHORIZATION_FAILED (31) quotes the broker's own request object: it says no more than the
# code and differs each time, so that equal faults would not be shown as one.
_DUMP = "Request Request("

ANSWER_LOST = "TRANSPORT"
CLIENT_TIMEOUT = "CLIENT_TIMED_OUT"

DESCRIBE, ALTER = "DescribeConfigs", "IncrementalAlterConfigs"
LISTING = "ListConfigResources"
_RESOURCE_WORDS = {
    "topic": "Topic {name}",
    "group": "Group {name}",
    "broker": "Cluster",
    "client_metrics": "Cluster",
}


def code_name(code: int) -> str:
    """The protocol's name of a code, or `ERROR_n` for one that is newer than the table."""
    codes = error_codes()
    return codes[code].name if code in codes else f"ERROR_{code}"


def fault_class(api: str, code: int) -> FaultClass:
    """What this code, as an answer to this API, says about the effect of the request."""
    # The clients' `retriable` flag is no help: kafka-python's is False for every admin error, and
    # repeating a write is safe only where the code proves that nothing happened (NOT_APPLIED).
    if api in APIS and code in APIS[api].converged:
        return FaultClass.CONVERGED
    # A code that is newer than the table proves nothing, so the object is read.
    codes = error_codes()
    return codes[code].kind if code in codes else FaultClass.AMBIGUOUS


def fault_of(
    api: str, code: int, name: str, message: str | None = None, broker: str = "", wait: float = 0.0
) -> Fault:
    """The fault for one item of an answer.

    name: the object; message: the broker's own words; wait: the answer's throttle time in seconds,
    which becomes `retry_after` of what a quota refused.
    """
    unknown = ErrorCode(
        code,
        code_name(code),
        FaultClass.AMBIGUOUS,
        "the broker answered with an error that this version does not know",
    )
    entry = error_codes().get(code, unknown)
    kind = fault_class(api, code)
    needs = APIS[api].needs if api in APIS else ""
    meaning = entry.meaning
    if entry.number == _TOO_OLD and needs:
        meaning = f"the broker does not support {api}, which needs {needs}"
    return Fault(
        code=entry.name,
        message=_render_sentence(meaning, message, entry.cause),
        kind=kind,
        where=_where(api, broker),
        advice=f"grant {name_right(api, name, code)}, or run as a principal that has it"
        if code in _DENIED
        else entry.advice,
        # The time is 0 if the quota was refilled before the broker sent its answer (KIP-599).
        retry_after=wait if code == _THROTTLED else None,
        quota=code == _THROTTLED,
    )


def lost_answer_fault(api: str, cause: str, broker: str = "", *, timed_out: bool = False) -> Fault:
    """The fault for a request without an answer: it may have been executed."""
    return Fault(
        code=CLIENT_TIMEOUT if timed_out else ANSWER_LOST,
        message=f"no answer to {api}: {cause}",
        kind=FaultClass.AMBIGUOUS,
        where=_where(api, broker),
        advice="run the command again: it reads the object first and continues from there",
    )


def not_sent_fault(api: str, cause: str, broker: str = "", *, throttled: bool = False) -> Fault:
    """The fault for a request that never left this computer. throttled: because the broker takes
    none for now (KIP-219)."""
    return Fault(
        code="NOT_SENT",
        message=f"{api} could not be sent: {cause}",
        kind=FaultClass.NOT_APPLIED,
        where=_where(api, broker),
        advice="check the connection to the cluster and run the command again",
        retry_after=0.0 if throttled else None,
    )


def name_right(api: str, name: str, code: int = 0) -> str:
    """The right that this API needs for this object, in the words of ACLs.

    code: the error that reported it, for APIs that serve resources of several kinds.
    """
    right = APIS[api].right if api in APIS else "a right on Cluster"
    if code in _RESOURCES:
        right = right.replace("on Topic {name}", _RESOURCES[code])
    return right.format(name=name)


def _render_sentence(meaning: str, message: str | None, cause: str) -> str:
    text = (message or "").strip()
    if text.startswith(_DUMP):
        text = ""
    # What a broker says is exact. A general cause beside it would be a guess, often a wrong one.
    if text:
        return f"{meaning}: {text}"
    return f"{meaning} (likely cause: {cause})" if cause else meaning


def _where(api: str, broker: str) -> str:
    return f"{api} at {broker}" if broker else api


def right_for_configs(api: str, resource: str, name: str) -> str:
    """The right that this API needs for the configs of this resource, in the words of ACLs."""
    return f"{APIS[api].operation} on {_RESOURCE_WORDS[resource].format(name=name)}"


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
