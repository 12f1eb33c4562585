"""A refusal says whether the server can have executed the call."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.resource import FaultClass
from kafkaform.core.secret import Secret, watch_secrets
from kafkaform.provider.http.exchange import (
    MAX_MESSAGE,
    AnswerLost,
    Call,
    ErrorTable,
    HttpAnswer,
    NotSent,
    make_fault,
    make_transport_fault,
    read_error_code,
)

READ, WRITE = Call("GET", "/x", reads=True), Call("PUT", "/x", {})
TABLE: ErrorTable = {
    (409, None): (FaultClass.NOT_APPLIED, "wait"),
    (422, 42201): (FaultClass.DEFINITE, "correct the schema"),
    (500, 50001): (FaultClass.DEFINITE, "look at the store"),
}


@pytest.mark.parametrize(
    ("status", "code", "call", "kind"),
    [
        (401, None, WRITE, FaultClass.PERMISSION),
        (403, 40301, WRITE, FaultClass.PERMISSION),
        (404, 40401, WRITE, FaultClass.DEFINITE),
        (409, 40901, WRITE, FaultClass.NOT_APPLIED),
        (422, 42201, WRITE, FaultClass.DEFINITE),
        (422, 42299, WRITE, FaultClass.DEFINITE),
        (429, None, WRITE, FaultClass.NOT_APPLIED),
        (307, None, WRITE, FaultClass.DEFINITE),
        (500, 50001, WRITE, FaultClass.DEFINITE),
        (500, 50002, WRITE, FaultClass.AMBIGUOUS),
        (500, None, WRITE, FaultClass.AMBIGUOUS),
        (502, None, WRITE, FaultClass.AMBIGUOUS),
        (503, None, WRITE, FaultClass.AMBIGUOUS),
        (599, None, WRITE, FaultClass.AMBIGUOUS),
        (999, None, WRITE, FaultClass.AMBIGUOUS),
        (101, None, WRITE, FaultClass.AMBIGUOUS),
        (500, None, READ, FaultClass.NOT_APPLIED),
    ],
)
def test_the_class_of_a_refusal(
    status: int, code: int | None, call: Call, kind: FaultClass
) -> None:
    """The table counts first. What nobody knows is ambiguous only if it was executed perhaps."""
    body = None if code is None else {"error_code": code, "message": "no"}
    fault = make_fault(HttpAnswer(status, body), TABLE, call)
    assert fault.kind is kind
    assert fault.advice and fault.message and str(call) in fault.where
    assert fault.code == (str(code) if code else f"HTTP_{status}")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7.0), ("", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("-1", 0.0), ("9" * 99, 0.0)],
)
def test_how_long_a_server_asks_to_wait(text: str, seconds: float) -> None:
    """Retry-After in seconds, and only of servers that have too much to do."""
    headers = {"retry-after": text}
    assert make_fault(HttpAnswer(429, None, headers), {}, WRITE).retry_after == seconds
    assert make_fault(HttpAnswer(503, None, headers), {}, WRITE).retry_after == seconds
    assert make_fault(HttpAnswer(500, None, headers), {}, WRITE).retry_after is None


def test_what_is_refused_for_now() -> None:
    """Nothing happened, and the server takes the same call later, whether it names a time or not. A
    write that met 503 can have been executed, so only reading it again shows that nothing
    happened; a read that met it fails at once unless the server names a time."""
    made = {
        (status, call.reads): make_fault(HttpAnswer(status, {"error_code": status}), TABLE, call)
        for status in (400, 409, 429, 500, 503)
        for call in (READ, WRITE)
    }
    assert {key for key, fault in made.items() if fault.is_for_now} == {
        *[(409, True), (409, False), (429, True), (429, False)]
    }
    assert made[503, False].kind is FaultClass.AMBIGUOUS
    assert made[503, False].retry_after == 0.0 and made[503, True].retry_after is None
    assert make_fault(HttpAnswer(503, None, {"retry-after": "3"}), {}, READ).is_for_now


@pytest.mark.parametrize(("status", "for_now"), [(429, True), (503, True), (500, False)])
def test_a_busy_server_that_does_not_say_who_it_is(status: int, for_now: bool) -> None:
    """The call itself was not sent, so it can be sent later."""
    unsent = NotSent("it does not say which system it is")
    unsent.answer = HttpAnswer(status)
    assert make_transport_fault(unsent).is_for_now is for_now


@pytest.mark.parametrize("body", [None, [], "x", {"error_code": True}, {"error_code": "5"}, {}])
def test_an_error_without_a_code_has_none(body: Any) -> None:
    """Whatever a proxy sends instead."""
    assert read_error_code(HttpAnswer(500, body)) is None
    assert make_fault(HttpAnswer(500, body), {}, READ).message == "HTTP 500 Internal Server Error"


def test_a_message_shows_no_secret_and_has_an_end() -> None:
    """A server can repeat what it was sent, as long as it likes."""
    with watch_secrets():
        Secret("hunter2-hunter2")
        said = "a\n" * MAX_MESSAGE
        text = make_fault(
            HttpAnswer(400, {"message": f"hunter2-hunter2 {said}"}), {}, WRITE
        ).message
    assert "hunter2" not in text and "\n" not in text and len(text) <= MAX_MESSAGE


def test_a_call_without_an_answer() -> None:
    """Nothing sent is nothing executed; a login that is refused before it is a missing right."""
    lost = make_transport_fault(AnswerLost("reset", "look", "PUT /x"))
    assert (lost.kind, lost.where, lost.advice) == (FaultClass.AMBIGUOUS, "PUT /x", "look")
    unsent = NotSent("refused")
    assert make_transport_fault(unsent).kind is FaultClass.NOT_APPLIED
    unsent.answer = HttpAnswer(401)
    assert make_transport_fault(unsent).kind is FaultClass.PERMISSION
    unsent.answer = HttpAnswer(503)
    assert make_transport_fault(unsent).kind is FaultClass.NOT_APPLIED
