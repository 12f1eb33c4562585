"""From an error code, or a broken connection, to a fault that says what happened to the request.

The clients' own idea of "retriable" is of no use here: it is false for every admin error, and
sending a write again is safe only when nothing happened (`NOT_APPLIED`).
"""

from __future__ import annotations

from kafkaform.core.resource import Fault, FaultClass

from .error_codes import CODES, Code

CONVERGED = frozenset(
    {
        ("CreateTopics", 36),
        ("CreatePartitions", 37),
        ("DeleteTopics", 3),
        ("DeleteTopics", 100),
        ("DeleteAcls", 91),
        ("AlterUserScramCredentials", 91),
    }
)
"""(API, code): the object may already be as asked, so it is read before it counts as failed."""

RIGHTS = {
    "CreateTopics": "Create on Topic {name}, or Create on Cluster",
    "CreatePartitions": "Alter on Topic {name}",
    "DeleteTopics": "Delete on Topic {name}, or Delete on Cluster",
    "IncrementalAlterConfigs": "AlterConfigs on Topic {name}",
    "DescribeConfigs": "DescribeConfigs on Topic {name}",
    "Metadata": "Describe on Topic {name}",
    "DescribeLogDirs": "Describe on Cluster",
    "DescribeClientQuotas": "DescribeConfigs on Cluster",
    "AlterClientQuotas": "AlterConfigs on Cluster",
    "DescribeUserScramCredentials": "Describe on Cluster",
    "AlterUserScramCredentials": "Alter on Cluster",
    "DescribeAcls": "Describe on Cluster",
    "CreateAcls": "Alter on Cluster",
    "DeleteAcls": "Alter on Cluster",
    "AlterPartitionReassignments": "Alter on Cluster",
    "ListPartitionReassignments": "Describe on Cluster",
    "ElectLeaders": "Alter on Cluster",
    "ListConfigResources": "DescribeConfigs on Cluster",
}
"""API -> the right that its refusal means."""

SINCE = {
    "ListPartitionReassignments": "2.4",
    "AlterPartitionReassignments": "2.4",
    "ElectLeaders": "2.4",
    "IncrementalAlterConfigs": "2.3",
    "DescribeClientQuotas": "2.6",
    "AlterClientQuotas": "2.6",
    "DescribeUserScramCredentials": "2.7",
    "AlterUserScramCredentials": "2.7",
    "DescribeCluster": "2.8",
    "Metadata": "2.8",
    "DeleteTopics": "2.8",
    "ListConfigResources": "3.7",
}
"""API -> the Kafka version with the oldest form of it that we send (KIP-339, 455, 460, 546, 554,
700, 516, 714)."""
_TOO_OLD = 35

_RESOURCES = {30: "on Group {name}", 31: "on Cluster"}
"""Code -> the resource that it is about, for APIs that serve resources of several kinds."""

_DUMP = "Request Request("
"""How a refusal begins that prints the broker's own object: it says no more than the code does, and
differs each time."""

ANSWER_LOST = "TRANSPORT"
CLIENT_TIMEOUT = "CLIENT_TIMED_OUT"


def code_name(code: int) -> str:
    """The protocol's name of a code, or `ERROR_n` for one that is newer than the table."""
    return CODES[code].name if code in CODES else f"ERROR_{code}"


def fault_class(api: str, code: int) -> FaultClass:
    """What this code, as an answer to this API, says about the effect of the request."""
    if (api, code) in CONVERGED:
        return FaultClass.CONVERGED
    return CODES[code].kind if code in CODES else FaultClass.AMBIGUOUS


def fault_of(
    api: str, code: int, name: str, message: str | None = None, broker: str = "", wait: float = 0.0
) -> Fault:
    """The fault for one item of an answer. name: the object; message: the broker's own words;
    wait: the answer's throttle time in seconds, which counts only where nothing happened."""
    unknown = Code(code, code_name(code), FaultClass.AMBIGUOUS, "the broker's error is unknown")
    entry = CODES.get(code, unknown)
    kind = fault_class(api, code)
    return Fault(
        code=entry.name,
        message=_sentence(_meaning(api, entry), message, entry.cause),
        kind=kind,
        where=_where(api, broker),
        advice=_advice(api, code, name, entry),
        retry_after=wait if kind is FaultClass.NOT_APPLIED else 0.0,
    )


def lost(api: str, cause: str, broker: str = "", *, timed_out: bool = False) -> Fault:
    """The fault for a request whose answer never came: it may have been carried out."""
    return Fault(
        code=CLIENT_TIMEOUT if timed_out else ANSWER_LOST,
        message=f"no answer to {api}: {cause}",
        kind=FaultClass.AMBIGUOUS,
        where=_where(api, broker),
        advice="run the command again: it reads the object first and goes on from there",
    )


def not_sent(api: str, cause: str, broker: str = "") -> Fault:
    """The fault for a request that never left this computer."""
    return Fault(
        code="NOT_SENT",
        message=f"{api} could not be sent: {cause}",
        kind=FaultClass.NOT_APPLIED,
        where=_where(api, broker),
        advice="check the connection to the cluster and run the command again",
    )


def right_for(api: str, name: str, code: int = 0) -> str:
    """The right that this API needs for this object, as ACLs call it. code: the error that says
    so, where the API serves resources of several kinds."""
    right = RIGHTS.get(api, "a right on Cluster")
    if code in _RESOURCES:
        right = right.replace("on Topic {name}", _RESOURCES[code])
    return right.format(name=name)


def _meaning(api: str, entry: Code) -> str:
    if entry.number != _TOO_OLD or api not in SINCE:
        return entry.meaning
    return f"the broker does not support {api}, which needs Kafka {SINCE[api]}"


def _sentence(meaning: str, message: str | None, cause: str) -> str:
    text = (message or "").strip()
    if text.startswith(_DUMP):
        text = ""
    said = f"{meaning}: {text}" if text else meaning
    return f"{said} (likely cause: {cause})" if cause else said


def _advice(api: str, code: int, name: str, entry: Code) -> str:
    if code in (29, 30, 31):
        return f"grant {right_for(api, name, code)}, or run as a principal that has it"
    return entry.advice


def _where(api: str, broker: str) -> str:
    return f"{api} at {broker}" if broker else api
