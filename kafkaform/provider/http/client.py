"""Calls to a system that speaks HTTP: several at once with a limit, each with its login, each write
sent once.

A call ends with an answer, whatever its status, or with NotSent or AnswerLost (`exchange`).
"""

from __future__ import annotations

from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import Any

from msgspec import Struct

from ...core.errors import ConnectError, OtherSystem
from ...core.resource import Fault
from ...core.secret import Secret
from .connection import ServerConnection
from .exchange import (
    NO_QUERY,
    AnswerLost,
    Call,
    CallFailed,
    HttpAnswer,
    NotSent,
    make_transport_fault,
    read_message,
    read_retry_after,
)
from .settings import LOGIN_HEADER, Auth, BasicLogin, BearerToken, HttpSettings
from .tls import CertificateFault, tls_context
from .tokens import TokenSource, fetch_token

MakeHeader = Callable[[], Secret | None]
"""The value of the header for a call that leaves now, None for no login. Raises NotSent."""


def open_login(auth: Auth | None) -> MakeHeader:
    """What makes the header. A token of OAuth is fetched with the first call, and again before it
    ends."""
    if auth is None:
        return lambda: None
    if isinstance(auth, BasicLogin):
        # RFC 7617 §2.1: UTF-8, which every server must expect that says so, and most expect anyway.
        credentials = f"{auth.username}:{auth.password.reveal()}".encode()
        basic = Secret("Basic " + b64encode(credentials).decode())
        return lambda: basic
    if isinstance(auth, BearerToken):
        bearer = Secret("Bearer " + auth.token.reveal())
        return lambda: bearer
    # Calls are made in threads of their own. Secrets are masked by context (`core.redaction`), and
    # a new token must be known in the context of the run.
    source = TokenSource(partial(copy_context().run, fetch_token, auth))
    return partial(_make_token_header, source)


def _make_token_header(source: TokenSource) -> Secret:
    try:
        return Secret("Bearer " + source.get_token().text.reveal())
    except ConnectError as error:
        raise NotSent(error.message, error.advice) from None


PROOF_SECONDS = 1.0
"""How old the proof of a connection can be when a write leaves, if nothing else came between."""

LEAST_PAUSE = 0.5
"""Seconds before a server that has too much to do is asked again, also if it names less."""


class Proof(Struct, frozen=True):
    """How a system says who it is."""

    call: Call
    """A call that reads."""
    check: Callable[[HttpAnswer], None]
    """Takes its answer (2xx). Raises OtherSystem, also for an answer that names no system."""


class HttpClient:
    """Calls one system. Any thread can use it.

    proof: asked for on each new connection before anything else, and around each write, so that
    nothing is sent to, or believed of, another system at the same address. After an OtherSystem
    every call raises it. Without proof, no answer says who gave it.
    """

    def __init__(self, settings: HttpSettings, proof: Proof | None = None) -> None:
        """Raises ConnectError for certificates that cannot be loaded. Nothing is sent yet."""
        secure = any(url.startswith("https:") for url in settings.urls)
        context = _open_context(settings) if secure else None
        self._settings = settings
        self._proof = proof
        self._login = open_login(settings.auth)
        self._slots = BoundedSemaphore(settings.concurrency)
        self._idle: dict[str, deque[ServerConnection]] = {url: deque() for url in settings.urls}
        self._stranger: OtherSystem | None = None
        self._closed = False

        def make_connection(url: str) -> ServerConnection:
            tls = context if url.startswith("https:") else None
            limits = settings.timeout, settings.max_bytes
            certified = tls is not None and settings.certificate is not None
            return ServerConnection(url, tls, *limits, certified=certified)

        self._make_connection = make_connection

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] = NO_QUERY,
        reads: bool = False,
    ) -> HttpAnswer:
        """The answer to one call; see `Call` for the arguments. Raises NotSent, AnswerLost,
        OtherSystem."""
        return self.send(Call(method, path, body, query, reads))

    def send(self, call: Call) -> HttpAnswer:
        """The same for a call that was made before."""
        if not call.reads:
            return self._send_once(call)
        deadline = monotonic() + self._settings.timeout
        while True:
            answer: HttpAnswer | None
            try:
                answer = self._send_once(call)
            except NotSent as refused:
                # The system may have refused to say who it is, in the same words.
                answer = refused.answer
                if answer is None or not _wait_as_asked(answer, deadline):
                    raise
            else:
                if not _wait_as_asked(answer, deadline):
                    return answer

    def _send_once(self, call: Call) -> HttpAnswer:
        attempts = self._list_attempts(call)
        for url in attempts[:-1]:
            try:
                return self._call_at(url, call)
            except NotSent:
                # Nothing left, so the next address can be asked, also with a write.
                continue
            except AnswerLost as lost:
                # To wait once more for what did not come in time would double the time.
                if not call.reads or lost.timed_out:
                    raise
        return self._call_at(attempts[-1], call)

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        """The answer to each call, in order; a Fault for one that got none. They are sent
        concurrently. Raises OtherSystem."""
        if len(calls) <= 1:
            return [self._answer_or_fault(call) for call in calls]
        queue, answers = iter(enumerate(calls)), dict[int, HttpAnswer | Fault]()

        def work() -> None:
            # One iterator for all threads: each call is taken by one of them.
            for number, call in queue:
                answers[number] = self._answer_or_fault(call)

        threads = min(len(calls), self._settings.concurrency)
        with ThreadPoolExecutor(threads) as pool:
            try:
                # Each thread knows the secrets of this run, and masks them.
                working = [pool.submit(copy_context().run, work) for _ in range(threads)]
                for worker in working:
                    worker.result()
            finally:
                # After a fault or Ctrl-C nobody takes another one.
                deque(queue, maxlen=0)
        return [answers[number] for number in range(len(calls))]

    def prove(self) -> None:
        """Ask for the proof on every idle connection that still stands. Raises OtherSystem."""
        if self._proof is None:
            return
        for url, idle in self._idle.items():
            for _ in range(len(idle)):
                with self._borrow(url, oldest=True) as connection:
                    if connection.connected:
                        self._prove_quietly(connection)

    def close(self) -> None:
        """End all connections. Later calls raise NotSent."""
        self._closed = True
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    # ── one call ────────────────────────────────────────────────────────────────────────

    def _answer_or_fault(self, call: Call) -> HttpAnswer | Fault:
        try:
            return self.send(call)
        except CallFailed as failure:
            return make_transport_fault(failure)

    def _list_attempts(self, call: Call) -> Sequence[str]:
        """The addresses to try one after the other; a read is tried twice at the only one."""
        urls = self._settings.urls
        return urls * 2 if call.reads and len(urls) == 1 else urls

    def _call_at(self, url: str, call: Call) -> HttpAnswer:
        with self._borrow(url) as connection:
            self._connect(connection)
            if call.reads or self._proof is None:
                return connection.send(call, self._make_headers())
            if monotonic() - connection.proven > PROOF_SECONDS:
                self._prove_before(connection)
            answer = connection.send(call, self._make_headers())
            self._prove_after(connection, call)
            return answer

    @contextmanager
    def _borrow(self, url: str, *, oldest: bool = False) -> Iterator[ServerConnection]:
        """A connection that nobody else uses meanwhile: the one that was used last, or first."""
        if self._stranger is not None:
            raise self._stranger
        with self._slots:
            if self._closed:
                raise NotSent("the session is closed")
            idle = self._idle[url]
            try:
                connection = idle.popleft() if oldest else idle.pop()
            except IndexError:
                connection = self._make_connection(url)
            try:
                yield connection
            finally:
                if self._closed or self._stranger:
                    connection.close()
                else:
                    idle.append(connection)

    def _connect(self, connection: ServerConnection) -> None:
        """A connection that stands, and has proven itself. Raises NotSent."""
        if connection.connected:
            return
        connection.connect()
        if self._proof is not None:
            self._prove_before(connection)

    def _make_headers(self) -> Mapping[str, str]:
        headers = {name: value.reveal() for name, value in self._settings.headers.items()}
        login = self._login()
        return headers if login is None else {**headers, LOGIN_HEADER: login.reveal()}

    # ── who answers ─────────────────────────────────────────────────────────────────────

    def _prove(self, connection: ServerConnection) -> None:
        """Ask the system at a connection who it is. Raises OtherSystem, NotSent, AnswerLost."""
        assert self._proof is not None
        try:
            answer = connection.send(self._proof.call, self._make_headers())
            if not answer.succeeded:
                reason = read_message(answer)
                if not reason.startswith("HTTP "):
                    reason = f"HTTP {answer.status}: {reason}"
                cause = f"the server does not say which system it is: {reason}"
                refused = NotSent(cause, "", f"{self._proof.call}")
                refused.answer = answer
                raise refused
            self._proof.check(answer)
        except BaseException as error:
            # An open connection counts as proven for the next call that takes it.
            connection.close()
            if isinstance(error, OtherSystem):
                self._stranger = error
            raise
        connection.proven = monotonic()

    def _prove_before(self, connection: ServerConnection) -> None:
        try:
            self._prove(connection)
        except AnswerLost as lost:
            cause = f"the server does not say which system it is: {lost.cause}"
            raise NotSent(cause, lost.advice, lost.where) from None

    def _prove_after(self, connection: ServerConnection, call: Call) -> None:
        try:
            if not connection.connected:
                connection.connect()
            self._prove(connection)
        except CallFailed as failure:
            # Who gave the answer is not known, so neither is what it is worth.
            cause = f"who answered is not known: {failure.cause}"
            raise AnswerLost(cause, failure.advice, f"{call}") from None

    def _prove_quietly(self, connection: ServerConnection) -> None:
        try:
            self._prove(connection)
        except CallFailed:
            connection.close()


def _wait_as_asked(answer: HttpAnswer, deadline: float) -> bool:
    """Wait as long as a server asks for that has too much to do (429, 503); False without waiting
    for every other answer, and if the time of the call is over before."""
    retry_after = read_retry_after(answer) if answer.status in (429, 503) else None
    if retry_after is None or monotonic() + (seconds := max(retry_after, LEAST_PAUSE)) >= deadline:
        return False
    sleep(seconds)
    return True


def _open_context(settings: HttpSettings) -> Any:
    key = settings.key
    try:
        context = tls_context(
            settings.ca,
            settings.certificate,
            key if isinstance(key, str | None) else key.reveal(),
            settings.passphrase.reveal() if settings.passphrase else None,
        )
    except CertificateFault as fault:
        raise ConnectError(f"{settings.urls[0]}: {fault.summary}", fault.advice) from None
    # Some servers speak only HTTP/2 with who does not say this (RFC 7301).
    context.set_alpn_protocols(["http/1.1"])
    return context
