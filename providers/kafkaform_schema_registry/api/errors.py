"""What the error codes of registries say about a request.

Sources: `Errors.java` of Confluent's registry, `SchemaErrorCodes` of Karapace, `ErrorCode` of
Apicurio, and answers of Apicurio 2.6.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kafkaform.core.resource import Fault, FaultClass
from kafkaform.provider.http.exchange import (
    Call,
    ErrorTable,
    HttpAnswer,
    make_fault,
    read_error_code,
)

from .answers import BadAnswer

T = TypeVar("T")

_D, _N, _A = FaultClass.DEFINITE, FaultClass.NOT_APPLIED, FaultClass.AMBIGUOUS
_C = FaultClass.CONVERGED
_PLAN = "plan again"

NO_SUBJECT = frozenset({40401, 40402, 40403, 40404, 40406})
"""Codes with status 404 that prove that there is no subject, version or schema. Any other 404 can
come from a proxy, or from a server that is no registry."""
NOT_SET = frozenset({40401, 40408, 40409})
"""The same for a level or a mode. Before 7.0, Confluent's registry had 40401 for these, too."""

ERRORS: ErrorTable = {
    (404, 40401): (_C, _PLAN),
    (404, 40402): (_C, _PLAN),
    (404, 40403): (_C, _PLAN),
    (404, 40404): (_C, _PLAN),
    (404, 40405): (_C, "it was registered again meanwhile; plan again"),
    # Apicurio has another status for the same code.
    (409, 40405): (_C, "it was registered again meanwhile; plan again"),
    (404, 40408): (_C, _PLAN),
    (404, 40409): (_C, _PLAN),
    (404, None): (_D, "check url: this server does not have this part of the API"),
    (405, None): (_D, "check url: this server does not have this part of the API"),
    (409, None): (
        _D,
        "change the schema so that it is compatible, or first give the subject another level",
    ),
    (422, 42201): (_D, "correct the schema or its references"),
    (422, 42205): (_D, "the subject or the registry refuses writes; set mode READWRITE first"),
    (422, 42206): (_D, "first change or delete the subjects that refer to it"),
    (422, 42209): (_D, "divide the schema, and refer to the parts with references"),
    (500, 50001): (_A, "look at the registry's log and at its Kafka"),
    (500, 50002): (_A, "look at the registry's log and at its Kafka"),
    (500, 50003): (_A, "look at the registry's leader"),
    # Only the leader writes, and nobody knew it.
    (500, 50004): (_N, "wait until the registry has a leader, and run the same command again"),
}


def is_missing(answer: HttpAnswer) -> bool:
    """True if the answer proves that there is no such subject or schema."""
    return answer.status == 404 and read_error_code(answer) in NO_SUBJECT


def is_not_set(answer: HttpAnswer) -> bool:
    """True if the answer proves that the subject has no level or mode of its own."""
    return answer.status == 404 and read_error_code(answer) in NOT_SET


def lacks_endpoint(answer: HttpAnswer) -> bool:
    """True if the server does not know the path, in whatever words."""
    return answer.status == 405 or (answer.status == 404 and not 40400 <= _code(answer) < 40500)


def judge_refusal(answer: HttpAnswer, call: Call) -> Fault:
    """The fault of an answer that is no success."""
    return make_fault(answer, ERRORS, call)


def parse_answer(answer: HttpAnswer | Fault, call: Call, read: Callable[[Any], T]) -> T | Fault:
    """What `read` makes of the body of a success; the fault of anything else."""
    if isinstance(answer, Fault):
        return answer
    if not answer.succeeded:
        return judge_refusal(answer, call)
    try:
        return read(answer.body)
    except BadAnswer as error:
        return make_bad_answer(error, call)


def make_bad_answer(error: BadAnswer, call: Call) -> Fault:
    """The fault of a success whose body nobody can read."""
    kind = FaultClass.NOT_APPLIED if call.reads else FaultClass.AMBIGUOUS
    return Fault(
        "BAD_ANSWER",
        f"the answer is not as the API has it: {error}",
        kind,
        str(call),
        "check url, and what answers there",
    )


def _code(answer: HttpAnswer) -> int:
    return read_error_code(answer) or 0
