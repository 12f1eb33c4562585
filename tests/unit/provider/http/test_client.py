"""A call ends with an answer, or says whether the server can have executed it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kafkaform.core.errors import OtherSystem
from kafkaform.core.resource import Fault as CoreFault
from kafkaform.core.resource import FaultClass
from kafkaform.provider.http.client import HttpClient, Proof
from kafkaform.provider.http.exchange import (
    AnswerLost,
    Call,
    CallFailed,
    HttpAnswer,
    NotSent,
    join_path,
)

from ....kit.http.faults import FOR_EVER, Fault
from ....kit.http.proxy import Proxy
from ....kit.http.server import Request, Served, serving

Connect = Callable[..., HttpClient]
PATIENT = 60.0
"""Seconds that no test waits for."""


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def fail(call: Callable[[], Any]) -> CallFailed:
    """How a call failed; the sentence and the advice say something."""
    with pytest.raises(CallFailed) as caught:
        call()
    assert caught.value.cause and caught.value.where
    return caught.value


def test_an_answer_has_status_body_and_headers(server: Served, connect: Connect) -> None:
    """Path, query and body arrive as they were given; any status is an answer."""
    client = connect(f"{server.url}/base/")
    answer = client.ask("PUT", join_path("a", "b c"), {"n": 1}, query={"q": "ä&b"})
    assert answer.status == 200 and answer.headers["content-length"]
    assert answer.body == {"method": "PUT", "path": "/base/a/b%20c?q=%C3%A4%26b", "body": {"n": 1}}
    server.answers = lambda request: (404, {"error_code": 40401})
    assert client.ask("GET", "/x", reads=True) == HttpAnswer(
        404, {"error_code": 40401}, client.ask("GET", "/x", reads=True).headers
    )


@pytest.mark.parametrize(
    ("name", "path"),
    [("a/b", "/s/a%2Fb"), ("..", "/s/%2E%2E"), (".", "/s/%2E"), ("a?b#c%", "/s/a%3Fb%23c%25")],
)
def test_no_name_leads_to_another_path(
    name: str, path: str, server: Served, connect: Connect
) -> None:
    """A name is one segment of a path, whatever it contains."""
    connect(server.url).ask("GET", join_path("s", name), reads=True)
    assert [request.path for request in server.asked] == [path]


def test_connections_are_kept(proxy: Proxy, connect: Connect) -> None:
    """One call after another needs one connection."""
    client = connect(proxy.url)
    for _ in range(5):
        client.ask("GET", "/x", reads=True)
    assert proxy.opened == 1


@pytest.mark.parametrize("reads", [True, False])
def test_a_refused_connection_sends_nothing(reads: bool, connect: Connect) -> None:
    """It is no answer that was lost, so a write can be sent later."""
    url = f"http://127.0.0.1:{closed_port()}"
    failure = fail(lambda: connect(url).ask("PUT", "/x", {}, reads=reads))
    assert isinstance(failure, NotSent)
    assert "Connection refused" in failure.cause and url in failure.where


def test_a_name_that_nobody_knows_sends_nothing(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resolver's words are passed on."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    failure = fail(lambda: connect("http://no.such.host").ask("PUT", "/x", {}))
    assert isinstance(failure, NotSent) and "Name or service not known" in failure.cause


def test_the_next_address_is_asked_if_one_is_down(server: Served, connect: Connect) -> None:
    """Also with a write, of which nothing has left."""
    client = connect(f"http://127.0.0.1:{closed_port()}", server.url)
    assert client.ask("PUT", "/x", {}).status == 200
    assert len(server.asked) == 1


LOST = ("reset before", "reset after", "lose", "cut head", "cut", "garbage")


@pytest.mark.parametrize("kind", LOST)
def test_a_write_whose_answer_is_lost_is_sent_once(
    kind: str, proxy: Proxy, connect: Connect
) -> None:
    """From the first byte on nobody can say what happened; who can is asked, and not the
    library."""
    client = connect(proxy.url, timeout=PATIENT if kind != "lose" else 0.3)
    proxy.arm(Fault("PUT *", kind))
    failure = fail(lambda: client.ask("PUT", "/x", {}))
    assert isinstance(failure, AnswerLost)
    assert proxy.fired.wait(PATIENT)
    assert [str(one.request) for one in proxy.passed] == ["PUT /x"]


def test_a_broken_connection_is_replaced(proxy: Proxy, connect: Connect) -> None:
    """What is left of a broken answer is not taken for the answer to the next call."""
    client = connect(proxy.url)
    for kind in ("reset after", "cut", "garbage"):
        proxy.arm(Fault("PUT *", kind))
        assert isinstance(fail(lambda: client.ask("PUT", "/x", {})), AnswerLost)
        proxy.disarm()
        assert client.ask("GET", f"/{kind[:3]}", reads=True).body["path"] == f"/{kind[:3]}"


@pytest.mark.parametrize("kind", ["reset before", "reset after", "cut head", "cut"])
def test_a_read_is_sent_again(kind: str, proxy: Proxy, connect: Connect) -> None:
    """Once: a server that fails twice has failed."""
    client = connect(proxy.url)
    proxy.arm(Fault("GET *", kind))
    assert client.ask("GET", "/x", reads=True).status == 200
    assert len(proxy.passed) == 2
    proxy.arm(Fault("GET *", kind, times=2))
    assert isinstance(fail(lambda: client.ask("GET", "/x", reads=True)), AnswerLost)


def test_what_does_not_come_in_time_is_not_waited_for_twice(proxy: Proxy, connect: Connect) -> None:
    """The time-out is that of the call, also of a read."""
    client = connect(proxy.url, timeout=0.3)
    proxy.arm(Fault("GET *", "lose", times=FOR_EVER))
    failure = fail(lambda: client.ask("GET", "/x", reads=True))
    assert isinstance(failure, AnswerLost) and failure.timed_out
    assert proxy.fired.wait(PATIENT) and len(proxy.passed) == 1


def test_a_slow_answer_ends_with_its_call(proxy: Proxy, connect: Connect) -> None:
    """A byte now and then does not hold a call for ever: the whole answer has to come in time."""
    client = connect(proxy.url, timeout=0.5)
    proxy.arm(Fault("GET *", "slow", seconds=0.1, times=FOR_EVER))
    failure = fail(lambda: client.ask("GET", "/x", reads=True))
    assert isinstance(failure, AnswerLost) and failure.timed_out


def test_a_redirection_is_not_followed(server: Served, proxy: Proxy, connect: Connect) -> None:
    """The login would go to another host. The answer is handed over as it is."""
    with serving() as other:
        proxy.arm(Fault("GET *", "redirect", location=f"{other.url}/x", times=FOR_EVER))
        assert connect(proxy.url).ask("GET", "/x", reads=True).status == 307
        assert not other.asked and not server.asked


@pytest.mark.parametrize("kind", ["endless", "tamper"])
def test_an_answer_that_is_too_large_is_not_read(kind: str, proxy: Proxy, connect: Connect) -> None:
    """Neither one that says its length nor one that does not end fills the memory."""
    client = connect(proxy.url, max_bytes=100_000)
    proxy.arm(Fault("* /x", kind, body=b'"' + b"x" * 200_000 + b'"', times=FOR_EVER))
    failure = fail(lambda: client.ask("PUT", "/x", {}))
    assert isinstance(failure, AnswerLost) and "more than 100000 bytes" in failure.cause


@pytest.mark.parametrize(
    "body", [b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 5000 + b"]" * 5000, b"\xff", b"{", b"<p>"]
)
def test_an_answer_that_is_no_strict_json_is_lost(
    body: bytes, proxy: Proxy, connect: Connect
) -> None:
    """A success that cannot be read is an answer that nobody has."""
    client = connect(proxy.url)
    proxy.arm(Fault("* /x", "tamper", body=body, times=FOR_EVER))
    assert isinstance(fail(lambda: client.ask("PUT", "/x", {})), AnswerLost)


def test_a_compressed_answer_is_not_unpacked(proxy: Proxy, connect: Connect) -> None:
    """Nobody asked for it, and a kilobyte can become a gigabyte."""
    proxy.arm(Fault("PUT *", "tamper", headers=("Content-Encoding: gzip",)))
    failure = fail(lambda: connect(proxy.url).ask("PUT", "/x", {}))
    assert "compressed" in failure.cause


def test_the_page_of_a_proxy_is_an_answer_without_a_body(proxy: Proxy, connect: Connect) -> None:
    """The status says what happened; the text of the page does not matter."""
    proxy.arm(Fault("PUT *", "refuse", status=502, body=b"<html>" + b"x" * 2_000_000))
    client = connect(proxy.url)
    answer = client.ask("PUT", "/x", {})
    assert (answer.status, answer.body) == (502, None)
    assert client.ask("PUT", "/y", {}).body["path"] == "/y"


def test_an_answer_that_comes_twice_is_not_taken_for_the_next(
    proxy: Proxy, connect: Connect
) -> None:
    """What nobody asked for ends the connection."""
    client = connect(proxy.url)
    proxy.arm(Fault("GET /a", "twice"))
    assert client.ask("GET", "/a", reads=True).body["path"] == "/a"
    assert client.ask("GET", "/b", reads=True).body["path"] == "/b"


def test_calls_at_once_keep_order_and_limit(connect: Connect) -> None:
    """As many at the same time as the settings say, and the answers in the order of the calls."""
    together = threading.Barrier(3)

    def answer(request: Request) -> tuple[int, Any]:
        together.wait(PATIENT)
        return 200, request.path

    with serving(answer) as server:
        client = connect(server.url, concurrency=3)
        calls = [Call("GET", f"/{number}", reads=True) for number in range(30)]
        answers = client.ask_all(calls)
        assert [one.body for one in answers if isinstance(one, HttpAnswer)] == [
            c.path for c in calls
        ]
        assert server.most == 3


def test_one_failed_call_of_many_is_a_fault_of_its_own(proxy: Proxy, connect: Connect) -> None:
    """Its neighbours have their answers."""
    proxy.arm(Fault("PUT /1", "reset after"))
    calls = [Call("PUT", f"/{number}", {}) for number in range(3)]
    first, second, third = connect(proxy.url).ask_all(calls)
    assert isinstance(first, HttpAnswer) and isinstance(third, HttpAnswer)
    assert isinstance(second, CoreFault)
    assert (second.kind, second.code) == (FaultClass.AMBIGUOUS, "ANSWER_LOST")
    assert "PUT /1" in second.where


def test_a_closed_client_sends_nothing(server: Served, connect: Connect) -> None:
    """And says that nothing was sent; closing it twice does no harm."""
    client = connect(server.url)
    client.ask("GET", "/x", reads=True)
    client.close()
    client.close()
    (fault,) = client.ask_all([Call("PUT", "/x", {})])
    assert isinstance(fault, CoreFault) and fault.kind is FaultClass.NOT_APPLIED
    assert len(server.asked) == 1


# ── who answers ─────────────────────────────────────────────────────────────────────────


def proof_of(system: str) -> Proof:
    """Believes the server that has this id."""

    def check(answer: HttpAnswer) -> None:
        if answer.body["id"] != system:
            raise OtherSystem(f"another system: {answer.body['id']}")

    return Proof(Call("GET", "/id", reads=True), check)


def test_each_connection_proves_itself_first(proxy: Proxy, connect: Connect) -> None:
    """Reads need one proof for a connection; a write has one right before and one right after."""
    client = connect(proxy.url, proof=proof_of("one"))
    client.ask("GET", "/a", reads=True)
    client.ask("GET", "/b", reads=True)
    client.ask("PUT", "/c", {})
    asked = [one.request.target for one in proxy.passed]
    assert asked == ["/id", "/a", "/b", "/id", "/c", "/id"]


def test_another_system_gets_nothing(server: Served, proxy: Proxy, connect: Connect) -> None:
    """Once another one has answered, every call says so, also after the right one is back."""
    client = connect(proxy.url, proof=proof_of("one"))
    client.ask("GET", "/a", reads=True)
    with serving() as other:
        other.system = "two"
        proxy.lead_to(other.port)
        with pytest.raises(OtherSystem, match="two"):
            client.ask_all([Call("PUT", "/x", {}), Call("PUT", "/y", {})])
        assert not other.writes
    proxy.lead_to(server.port)
    with pytest.raises(OtherSystem):
        client.ask("GET", "/a", reads=True)


def test_a_system_that_changes_behind_an_open_connection_is_found(
    server: Served, connect: Connect
) -> None:
    """`prove` asks the connections that stand."""
    client = connect(server.url, proof=proof_of("one"))
    client.ask("GET", "/a", reads=True)
    client.prove()
    server.system = "two"
    with pytest.raises(OtherSystem):
        client.prove()


def test_without_proof_before_it_nothing_is_sent(proxy: Proxy, connect: Connect) -> None:
    """A write whose server does not say who it is has not left."""
    client = connect(proxy.url, proof=proof_of("one"))
    proxy.arm(Fault("GET /id", "refuse", status=503, times=FOR_EVER))
    failure = fail(lambda: client.ask("PUT", "/x", {}))
    assert isinstance(failure, NotSent) and "HTTP 503" in failure.cause
    assert not [one for one in proxy.passed if one.request.writes]


@pytest.mark.parametrize("kind", ["refuse", "reset before"])
def test_an_answer_without_proof_after_it_is_not_believed(
    kind: str, server: Served, proxy: Proxy, connect: Connect
) -> None:
    """Who has answered is not known, so neither is what happened."""
    client = connect(proxy.url, proof=proof_of("one"))
    proxy.arm(Fault("GET /id", kind, nth=2, times=FOR_EVER))
    failure = fail(lambda: client.ask("PUT", "/x", {}))
    assert isinstance(failure, AnswerLost) and "who answered is not known" in failure.cause
    assert len(server.writes) == 1
