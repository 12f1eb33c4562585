"""Who gets a page of the window, over real connections: token, cookie, Host, methods, limits."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.core.secret import MASK, watch_secrets
from kafkaform.window import server as limits
from kafkaform.window.server import WindowServer

from .world import Window, make_folder, make_sources, open_window


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Window]:
    with open_window(make_sources(make_folder(tmp_path / "folder"))) as opened:
        yield opened


def send(window: Window, data: bytes) -> bytes:
    """The whole answer to these bytes; nothing if the connection just ends."""
    with socket.create_connection(("127.0.0.1", window.server.gate.port), timeout=60) as line:
        line.sendall(data)
        answer = b""
        try:
            while piece := line.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
        return answer


def test_the_token_becomes_a_cookie(window: Window) -> None:
    """The printed address leads to the overview, and the token is not in its address any more."""
    gate = window.server.gate
    status, headers, body = window.ask(f"/?token={gate.token}")
    assert (status, body) == (303, "")
    assert headers["location"] == gate.root and gate.token not in headers["location"]
    cookie = headers["set-cookie"]
    assert cookie == f"kafkaform={gate.cookie}; Path={gate.root}; HttpOnly; SameSite=Strict"
    assert gate.cookie != gate.token
    status, _, body = window.ask(gate.root, Cookie=cookie.partition(";")[0])
    assert status == 200 and "<h1>Overview</h1>" in body


def test_the_cookie_is_found_among_others(window: Window) -> None:
    """Browsers send the cookies of other programs on this computer, too."""
    gate = window.server.gate
    others = f'a=b; kafkaform=other; x="; y{{}}; kafkaform={gate.cookie}; z'
    assert window.ask(gate.root, Cookie=others)[0] == 200


@pytest.mark.parametrize(
    "target",
    ["/", "/?token=", "/?token=wrong", "/?token=%s&token=x", "/x?token=%s", "/?x=1&token=%s"],
)
def test_without_the_token_nobody_enters(window: Window, target: str) -> None:
    """A missing, wrong or doubled token gives no cookie and no page."""
    status, headers, body = window.ask(target.replace("%s", window.server.gate.token))
    assert status == 403 and "set-cookie" not in headers
    assert "kafkaform serve" in body and "Overview" not in body


@pytest.mark.parametrize("cookie", ["", "kafkaform=", "kafkaform=wrong", "kafkaform", "é=\x01"])
def test_without_the_cookie_there_is_no_page(window: Window, cookie: str) -> None:
    """Knowing the path is not enough, and a stranger cannot tell which paths exist."""
    for path in (window.server.gate.root, window.server.gate.root + "plans", "/x/"):
        assert window.ask(path, Cookie=cookie)[0] == 403


def test_two_windows_have_nothing_in_common(tmp_path: Path, window: Window) -> None:
    """Each start has its own token, cookie and path."""
    with open_window(make_sources(make_folder(tmp_path / "other"))) as other:
        mine, theirs = window.server.gate, other.server.gate
        assert len({mine.token, theirs.token, mine.cookie, theirs.cookie}) == 4
        assert mine.root != theirs.root
        assert other.ask(theirs.root, Cookie=f"kafkaform={mine.cookie}")[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:%d", "127.0.0.1", "127.0.0.1:1", "[::1]:%d", "", "a b"]
)
def test_other_names_of_this_computer_are_refused(window: Window, host: str) -> None:
    """A name that leads here (DNS rebinding) gets no page, even with the cookie or the token."""
    gate = window.server.gate
    host = host.replace("%d", str(gate.port))
    cookie = f"kafkaform={gate.cookie}"
    assert window.ask(gate.root, Host=host, Cookie=cookie)[0] == 421
    status, headers, _ = window.ask(f"/?token={gate.token}", Host=host)
    assert status == 421 and "set-cookie" not in headers
    assert window.ask(gate.root, Host=f"localhost:{gate.port}", Cookie=cookie)[0] == 200


def test_a_request_without_a_host_or_with_two_is_refused(window: Window) -> None:
    """HTTP/1.0 has no Host header, and of two nobody knows which one counts."""
    line = f"GET {window.server.gate.root} HTTP/1.0\r\n".encode()
    assert b" 421 " in send(window, line + b"\r\n").partition(b"\r\n")[0]
    good = f"Host: {window.host}\r\n".encode()
    assert b" 421 " in send(window, line + good + b"Host: evil\r\n\r\n").partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"]
)
def test_only_reading_methods(window: Window, method: str) -> None:
    """There is nothing to change, and no other origin is allowed to ask (CORS)."""
    gate = window.server.gate
    status, headers, _ = window.ask(gate.root, method, Cookie=f"kafkaform={gate.cookie}")
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control")]


def test_head_is_get_without_a_body(window: Window) -> None:
    """The same headers, with the length of the page."""
    gate = window.server.gate
    cookie = f"kafkaform={gate.cookie}"
    status, headers, body = window.ask(gate.root, "HEAD", Cookie=cookie)
    assert status == 200 and body == ""
    assert int(headers["content-length"]) > 1000


@pytest.mark.parametrize("site", ["cross-site", "same-site", "other"])
def test_pages_of_others_cannot_ask(window: Window, site: str) -> None:
    """Also not a page of another port of this computer, which browsers call the same site."""
    gate = window.server.gate
    cookie = f"kafkaform={gate.cookie}"
    assert window.ask(gate.root, Cookie=cookie, Sec_Fetch_Site=site)[0] == 403
    for ours in ("same-origin", "none"):
        assert window.ask(gate.root, Cookie=cookie, Sec_Fetch_Site=ours)[0] == 200


def test_every_answer_has_the_headers(window: Window) -> None:
    """Pages, refusals and the way in: nothing is kept, framed, guessed or loaded."""
    gate = window.server.gate
    answers = (
        window.open(),
        window.ask("/"),
        window.ask(f"/?token={gate.token}"),
        window.open("x"),
    )
    for _, headers, _ in answers:
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "python" not in headers["server"].lower()


def test_the_policy_names_the_style_by_its_hash(window: Window) -> None:
    """The header says what the page says, and a page of ours has no script."""
    _, headers, body = window.open()
    policy = headers["content-security-policy"]
    assert re.search(r"style-src 'sha256-[^']+'; script-src 'none'", policy)
    assert policy.partition("; frame-ancestors")[0] in body


@pytest.mark.parametrize(
    "path",
    [
        *(
            "nothing",
            "plans/",
            "plans/x",
            "plans/../state",
            "..",
            "../",
            "plans/..%2f..",
            "%2e%2e/",
        ),
        *("plans/everything.kfplan", "kafkaform.state.json", "/etc/passwd", "log/" + "0" * 20),
        *("plans/" + "0" * 20, "objects/" + "f" * 20, "plans/\x00", "plans//etc/passwd"),
    ],
)
def test_a_path_is_no_file(window: Window, path: str) -> None:
    """Only listed ids lead to something; names of files, also of saved plans, do not."""
    line = f"GET {window.server.gate.root}{path} HTTP/1.1\r\nHost: {window.host}\r\n"
    cookie = f"Cookie: kafkaform={window.server.gate.cookie}\r\n\r\n"
    answer = send(window, (line + cookie).encode())
    assert answer.split(b" ", 2)[1] in (b"404", b"400"), answer[:100]
    assert b"Traceback" not in answer and window.faults == []


@pytest.mark.parametrize(
    "target", ["http://evil.example/", "//evil.example/", "*", "evil.example:443", "\\\\x"]
)
def test_a_target_that_is_no_path(window: Window, target: str) -> None:
    """Nothing but a path is answered, and no answer leads elsewhere."""
    answer = send(window, f"GET {target} HTTP/1.1\r\nHost: {window.host}\r\n\r\n".encode())
    assert answer.split(b" ", 2)[1] in (b"400", b"403", b"505"), answer[:100]
    assert b"Location" not in answer


@pytest.mark.parametrize(
    "data",
    [b"", b"\r\n\r\n", b"\x16\x03\x01\x02\x00\n\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"],
)
def test_noise_does_no_harm(window: Window, data: bytes) -> None:
    """What is no request ends its connection and nothing else."""
    with socket.create_connection(("127.0.0.1", window.server.gate.port), timeout=60) as line:
        line.sendall(data)
        line.shutdown(socket.SHUT_WR)
        while line.recv(65536):
            pass
    assert "Overview" in window.page() and window.faults == []


def test_a_large_head_is_refused(window: Window) -> None:
    """Neither a long line nor many lines are read to their end."""
    start = f"GET / HTTP/1.1\r\nHost: {window.host}\r\n".encode()
    for data in (b"GET /" + b"x" * 200_000, start + b"A: b\r\n" * 50_000):
        answer = _try_send(window, data)
        assert answer == b"" or b" 431 " in answer
    assert "Overview" in window.page()


def _try_send(window: Window, data: bytes) -> bytes:
    try:
        return send(window, data)
    except OSError:  # it was closed while we were sending
        return b""


def test_a_body_is_refused(window: Window) -> None:
    """A request with a body could be two requests for somebody in between."""
    gate = window.server.gate
    for name, value in (("Content_Length", "5"), ("Transfer_Encoding", "chunked")):
        cookie = f"kafkaform={gate.cookie}"
        assert window.ask(gate.root, Cookie=cookie, **{name: value})[0] == 400


def test_a_slow_client_is_given_up(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then does not keep a connection: the whole head has one deadline."""
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", window.server.gate.port), timeout=60) as line:
        ended = threading.Event()

        def drip() -> None:
            try:
                while not ended.is_set():
                    line.sendall(b"x")
                    time.sleep(0.05)
            except OSError:
                pass

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert b" 431 " in line.recv(65536)
        except ConnectionResetError:
            pass
        finally:
            ended.set()
            dripping.join()
    assert "Overview" in window.page()


def test_idle_connections_are_bounded(window: Window) -> None:
    """As many as there may be get a thread; the next one is closed at once, and after they have
    left everybody is served again."""
    address = ("127.0.0.1", window.server.gate.port)
    idle = [socket.create_connection(address, timeout=60) for _ in range(limits.CONNECTIONS)]
    try:
        with socket.create_connection(address, timeout=60) as extra:
            assert extra.recv(1) == b"", "it is closed without an answer"
    finally:
        for line in idle:
            line.close()
    _eventually(lambda: window.open()[0] == 200)


def _eventually(holds: object) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if holds():  # type: ignore[operator]
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError("it never held")


def test_an_unexpected_error_has_no_traceback(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says only that it failed; the command is told the rest."""

    def fail(*_: object) -> str:
        raise ValueError("a value of the configuration")

    monkeypatch.setattr(limits, "find_page", fail)
    status, _, body = window.open()
    assert status == 500 and "failed unexpectedly" in body
    assert "a value of" not in body and "Traceback" not in body and "ValueError" not in body
    assert [type(fault) for fault in window.faults] == [ValueError]


def test_the_secrets_of_the_command_are_masked(tmp_path: Path) -> None:
    """Also in the threads that answer: what the command has read is masked wherever it occurs."""
    sources = make_sources(make_folder(tmp_path / "folder"))
    with watch_secrets() as known:
        known.add("ada@ci")
        with open_window(sources) as window:
            page = window.page("log")
    assert MASK in page and "ada@ci" not in page


def test_it_listens_on_loopback_alone(window: Window) -> None:
    """No other address of this computer leads to it."""
    assert window.server.socket.getsockname()[0] == "127.0.0.1"


def test_a_used_port_is_explained(tmp_path: Path, window: Window) -> None:
    """The error names the port and what to do."""
    with pytest.raises(UsageError) as caught:
        WindowServer(make_sources(tmp_path), window.server.gate.port, print)
    assert str(window.server.gate.port) in caught.value.message and "--port" in caught.value.advice


def test_secrets_do_not_show_in_a_repr(window: Window) -> None:
    """A debugger or a log that prints the gate shows neither token nor cookie."""
    gate = window.server.gate
    assert gate.token not in repr(gate) and gate.cookie not in repr(gate)
