"""Open the connection to a cluster. If no broker lets us in, say why."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from kafkaform.core.errors import ConnectError, KafkaformError

from .. import connection
from ..connection import clients
from ..connection.cluster_proof import ClusterProof
from ..connection.failures import ConnectionFailure, FailureKind, connect_error
from ..connection.listener import Listener, look_at
from ..connection.oauth import OAUTHBEARER
from ..connection.settings import KafkaSettings
from .client import NoConnection, RequestNotSent, Wire
from .logins import TokenProvider, make_login

MOST_INSPECTED = 8
"""How many brokers are inspected, all at once."""
_TIME_TO_LOOK = 5.0
"""If connecting took longer than these seconds, the listeners are not inspected as well."""
_UNCLEAR = (FailureKind.TLS, FailureKind.CLOSED, FailureKind.SILENT)
"""After these, an inspection of the listener can show more."""


def open_wire(settings: KafkaSettings) -> Wire:
    """Connect and log in. The first broker that answers says which cluster every later connection
    must lead to. Raises ConnectError within 10 seconds, ConfigurationError, OtherSystem."""
    clients.fence_logs()
    config = clients.make_client_config(settings)
    if settings.mechanism == OAUTHBEARER:
        tokens = connection.tokens.open_token_source(settings)
        if tokens is not None:
            # If there is no token, this error names the cause, and no broker is asked.
            tokens.get_token()
            config["sasl_oauth_token_provider"] = TokenProvider(tokens)
    login = make_login(settings)
    began = time.monotonic()
    try:
        wire = Wire(config, clients.PATIENCE, ClusterProof(settings.instance), login)
    except NoConnection as error:
        in_time = time.monotonic() - began < _TIME_TO_LOOK
        listeners = _inspect_listeners(settings, error.failures) if in_time else {}
        raise connect_error(settings, error.failures, listeners) from None
    try:
        if len(settings.servers) > 1:
            clients.refuse_two_clusters(settings, wire.ask_addresses(clients.LOOK))
        wire.reach_broker(clients.PATIENCE)
    except RequestNotSent as error:
        wire.close()
        raise ConnectError(
            f"Kafka at {', '.join(settings.servers)} answers, but none of its brokers can be "
            f"reached at the address that it advertises: {error}",
            "check advertised.listeners of the brokers, and that this computer can resolve and "
            "reach the addresses in it",
        ) from None
    except KafkaformError:
        wire.close()
        raise
    return wire


def _inspect_listeners(
    settings: KafkaSettings, failures: Mapping[str, ConnectionFailure]
) -> Mapping[str, Listener]:
    """Server -> what its listener shows, for the first ones whose failure is not clear."""
    servers = [
        server
        for server, failure in failures.items()
        if failure.listener is None and failure.kind in _UNCLEAR
    ][:MOST_INSPECTED]
    if not servers:
        return {}
    with ThreadPoolExecutor(len(servers)) as pool:
        listeners = pool.map(
            lambda server: look_at(server, lambda: clients.ssl_context(settings)), servers
        )
        return dict(zip(servers, listeners, strict=True))
