"""The native client (librdkafka). Only this module and `publishing` import confluent-kafka.

It connects first, because it names the cause of a refused login or a TLS fault. It sends nothing
else for a session, because its ListOffsets can crash the process: while the thread that calls it
still looks for the leaders of partitions, an answer about metadata can let another thread finish
the request and free it (rd_kafka_topic_partition_list_query_leaders_async in librdkafka 2.16).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from msgspec import Struct, field

from .clients import (
    NATIVE_LOGGER,
    PATIENCE,
    fence_logs,
    make_settings_error,
    native_config,
    require_files,
    ssl_context,
)
from .cluster_proof import ClusterProof
from .failures import Report, connect_error
from .listener import Listener, look_at
from .oauth import OAUTHBEARER
from .settings import KafkaSettings

if TYPE_CHECKING:
    from kafkaform.provider.http.tokens import TokenSource

NATIVE = "one of bootstrap_servers"
"""Where an answer comes from; this client does not say which broker gave it."""

SETTLED = 2.0
"""Seconds after which it is final that all brokers refuse the connection."""

MOST_INSPECTED = 8
"""How many brokers are inspected, all at once."""

_CONTROLLER = 2.0
"""Seconds for an answer that a living controller gives at once."""

_TIME_TO_LOOK = 5.0
"""If connecting took longer than these seconds, the listener is not inspected as well."""

_VAGUE = frozenset({KafkaError._ALL_BROKERS_DOWN})


class Causes(Struct):
    """The errors that the client reported while it tried to connect, the oldest first. brokers: how
    many it can try."""

    # A refused login ends a call of confluent-kafka as `_TIMED_OUT`, "waiting for controller". The
    # cause is passed to the error callback only.
    brokers: int = 1
    errors: deque[KafkaError] = field(default_factory=lambda: deque(maxlen=50))

    def report(self, error: KafkaError) -> None:
        """librdkafka's error callback."""
        self.errors.append(error)

    def is_hopeless(self, waited: float) -> bool:
        """True if waiting longer will not help. waited: seconds."""
        # librdkafka tries a refused login again and again, and that can lock an account.
        codes = {error.code() for error in self.errors}
        if KafkaError._AUTHENTICATION in codes or waited > PATIENCE:
            return True
        # Another broker of the list can have a certificate that fits.
        if KafkaError._SSL in codes and self.brokers == 1:
            return True
        return waited > SETTLED and bool(codes & _VAGUE)

    def list_reports(self) -> list[Report]:
        """Name and text of each error that names a cause, the oldest first."""
        telling = (error for error in self.errors if error.code() not in _VAGUE)
        return list(dict.fromkeys((error.name(), error.str()) for error in telling))


class Contact(Struct, frozen=True):
    """A first connection, which librdkafka makes in threads of its own."""

    settings: KafkaSettings
    """Whom it connects to."""
    tokens: TokenSource | None
    """Where it gets login tokens, None for another login."""
    client: AdminClient
    """The client that connects."""
    causes: Causes
    """Why it did not succeed so far."""
    answer: Future[Any]
    """What a broker says of its cluster."""
    started: float
    """When it began (`time.monotonic`)."""


def begin_contact(settings: KafkaSettings) -> Contact | None:
    """Begin to connect, and do not wait; None for a login that librdkafka lacks. `prove_cluster`
    waits. Raises ConfigurationError, and ConnectError if there is no token."""
    if settings.kerberos is not None or settings.token_auth:
        return None
    fence_logs()
    if settings.tls:
        require_files(settings)
    tokens = None
    if settings.mechanism == OAUTHBEARER:
        from .token_sources import open_token_source  # noqa: PLC0415  # loads a client of HTTP, which no other login needs

        tokens = open_token_source(settings)
    if tokens is not None:
        # If there is no token, this error names the cause; a client would only say that the login
        # failed.
        tokens.get_token()
    causes = Causes(len(settings.servers))
    config = {**native_config(settings), "error_cb": causes.report}
    if tokens is not None:
        config.update(oauth_config(tokens))
    try:
        client = AdminClient(config, logger=logging.getLogger(NATIVE_LOGGER))
    except (KafkaException, ValueError, TypeError) as error:
        if settings.tls:
            ssl_context(settings)  # it names what is wrong with a key
        raise make_settings_error(settings, _describe_error(error)) from None
    return Contact(settings, tokens, client, causes, _ask_cluster(client), time.monotonic())


def prove_cluster(contact: Contact) -> ClusterProof:
    """Wait for the answer: the proof of the cluster that gave it. Raises ConnectError within 10
    seconds of the beginning."""
    settings, client, causes = contact.settings, contact.client, contact.causes
    answer = contact.answer
    # poll serves the callbacks: without it neither an error nor a request for a token would arrive.
    # It does not end early for the answer, so it must not be what waits.
    while not answer.done() and not causes.is_hopeless(time.monotonic() - contact.started):
        client.poll(0)
        wait((answer,), 0.01)
    if answer.done() and answer.exception() is None:
        return ClusterProof(settings.instance, answer.result().cluster_id or "")
    waited, reports = time.monotonic() - contact.started, causes.list_reports()
    found = inspect_listeners(settings, reports) if waited < _TIME_TO_LOOK else {}
    raise connect_error(settings, reports, found)


def _ask_cluster(client: AdminClient) -> Future[Any]:
    """An answer with the `cluster_id` of the cluster, whichever broker gives it."""
    # describe_cluster goes to the controller, or to the broker that is called so, for some seconds
    # also to one that died. list_topics then asks any broker, about a name that no topic can have.
    # Never at first: librdkafka goes on looking for such a topic, and an answer that changes
    # meanwhile has crashed it.
    answer: Future[Any] = Future()

    def ask() -> None:
        found = None
        # confluent-kafka never resolves a future that a malformed answer leaves out.
        with suppress(KafkaException, TimeoutError):
            first = client.describe_cluster(request_timeout=_CONTROLLER)
            found = first.result(_CONTROLLER + 1)
        try:
            answer.set_result(found or client.list_topics("?", timeout=PATIENCE))
        except KafkaException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, name="connect", daemon=True).start()
    return answer


def oauth_config(tokens: TokenSource) -> Mapping[str, Any]:
    """Settings by which librdkafka asks for a token, and again before the token expires."""
    # The callback runs in a thread of librdkafka, and an exception in it counts as a failed login.

    def give(_: str) -> tuple[str, float]:
        token = tokens.get_token()
        return token.text.reveal(), token.expires

    return {"oauth_cb": give}


def inspect_listeners(
    settings: KafkaSettings, reports: Sequence[Report] = ()
) -> Mapping[str, Listener]:
    """Broker -> what its listener shows, for the first ones of the list. reports: what the client
    said of them."""
    # A second attempt to resolve a name would take as long again.
    unknown = " ".join(text for name, text in reports if name == "_RESOLVE")
    servers = [server for server in settings.servers[:MOST_INSPECTED] if server not in unknown]
    if not servers:
        return {}
    with ThreadPoolExecutor(len(servers)) as pool:
        found = pool.map(lambda server: look_at(server, lambda: ssl_context(settings)), servers)
        return dict(zip(servers, found, strict=True))


def _describe_error(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return cause.str() if isinstance(cause, KafkaError) else str(cause)
