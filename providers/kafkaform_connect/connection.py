"""Opens sessions: who is there, what the workers can do, and whether it is the right cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.clock import Clock, SystemClock
from kafkaform.core.errors import ConnectError, OtherSystem
from kafkaform.core.resource import Facts, Fault
from kafkaform.core.value import EMPTY, FrozenMap, freeze
from kafkaform.provider.contract import Secrets
from kafkaform.provider.http.settings import BasicLogin, HttpSettings, read_settings

from . import rest
from .answers import Plugin, parse_release, read_plugins
from .cluster_proof import WorkersProof, has_group, make_group_error
from .provider_block import OPERATION_TIMEOUT
from .reading import parse
from .rest import RequestFailed, WorkersClient
from .session import ConnectSession

if TYPE_CHECKING:
    from kafkaform.provider.http.client import HttpClient


_HIDDEN = (403, 404, 405)
"""Statuses of a worker, or of a proxy before it, that does not show its plugins to this user."""


class WorkerAddress(Struct, frozen=True):
    """How to reach the workers."""

    main: WorkersClient
    """Asks any of them."""
    nodes: Mapping[str, WorkersClient]
    """Url of a worker -> what asks that one."""
    proof: WorkersProof
    """What their connections have said."""


def open_session(instance: str, config: FrozenMap, secrets: Secrets) -> ConnectSession:
    """Connect to the workers of a provider block. Raises ConnectError, ConfigurationError."""
    settings = read_settings(instance, config, secrets)
    if config.get("operation_timeout") is None:
        settings = replace(settings, timeout=float(OPERATION_TIMEOUT))
    address = _make_address(settings)
    user = settings.auth.username if isinstance(settings.auth, BasicLogin) else None
    group = config.get("group_id") or None
    worker = config.get("worker_principal") or None
    try:
        clock = SystemClock()
        return connect(instance, address, group, user, settings.timeout, clock, acts_as=worker)
    except BaseException:
        for client in (address.main, *address.nodes.values()):
            client.close()
        raise


def _make_address(settings: HttpSettings) -> WorkerAddress:
    from kafkaform.provider.http.client import HttpClient, Proof  # noqa: PLC0415  # only a connection needs http.client

    proof = WorkersProof(settings.urls[0])

    def make_client(http_settings: HttpSettings) -> HttpClient:
        return HttpClient(http_settings, Proof(rest.SERVER, proof.check))

    main = make_client(settings)
    if len(settings.urls) == 1:
        return WorkerAddress(main, {settings.urls[0]: main}, proof)
    nodes = {url: make_client(replace(settings, urls=(url,))) for url in settings.urls}
    return WorkerAddress(main, nodes, proof)


def connect(
    instance: str,
    address: WorkerAddress,
    group_id: str | None,
    user: str | None,
    timeout: float,
    clock: Clock,
    scope: str = "",
    acts_as: str | None = None,
) -> ConnectSession:
    """A session with the workers at this address. group_id: what the block says; user: who logs
    in; timeout: seconds of one request; scope: the id of simulated workers, which belong to no
    Kafka cluster; acts_as: the principal of the workers. Raises ConnectError."""
    url = next(iter(address.nodes))
    plugins = _greet(address, url)
    release = parse_release(address.proof.version)

    def prove_group(client: WorkersClient) -> OtherSystem | None:
        try:
            good = group_id is None or has_group(client, group_id, plugins, release)
        except RequestFailed:
            # A connection that does not answer proves nothing.
            return None
        if good is not False:
            return None
        error = make_group_error(url, group_id or "")
        return OtherSystem(error.message, error.advice)

    mismatch = prove_group(address.main)
    if mismatch is not None:
        raise ConnectError(mismatch.message, mismatch.advice)
    facts = Facts(
        scope or make_scope(address.proof.cluster_id, group_id),
        nodes=tuple(address.nodes),
        principal=user,
        values=_make_values(address.proof, release, plugins),
        operation_timeout=timeout,
        # What a connector reads and writes is in the cluster that its workers use.
        partners=EMPTY if scope else FrozenMap(kafka=address.proof.cluster_id),
        acts_as=acts_as,
        lists_nodes=False,
    )
    return ConnectSession(instance, facts, address.main, address.nodes, clock, prove_group)


def make_scope(cluster_id: str, group_id: str | None) -> str:
    """The id of a Connect cluster; the Kafka cluster itself has the plain one. cluster_id: of that
    Kafka cluster, as a worker has said it."""
    if not cluster_id:
        raise ValueError("a Connect cluster without a Kafka cluster has no id")
    return f"connect:{cluster_id}/{group_id}" if group_id else f"connect:{cluster_id}"


def _greet(address: WorkerAddress, url: str) -> tuple[Plugin, ...]:
    """Connect, which asks the workers who they are; and ask what plugins they have, none if a user
    may not see them. Raises ConnectError."""
    call = rest.PLUGINS
    try:
        (answer,) = address.main.ask_all([call])
    except OtherSystem as error:
        raise ConnectError(error.message, error.advice) from None
    if isinstance(answer, Fault):
        raise ConnectError(f"{url}: {answer.message}", answer.advice)
    try:
        return parse(call, read_plugins, rest.get_body(answer, call))
    except RequestFailed as refused:
        # Without the list nobody can prove the group, so a passing fault must not hide it.
        if answer.status in _HIDDEN:
            return ()
        fault = refused.fault
        raise ConnectError(f"{url}: {call}: {fault.message} ({fault.code})", fault.advice) from None


def _make_values(
    proof: WorkersProof, release: tuple[int, int] | None, plugins: tuple[Plugin, ...]
) -> FrozenMap:
    classes = tuple(plugin.class_ for plugin in plugins if plugin.type in ("source", "sink"))
    values = freeze({"version": proof.version, "release": release, "plugins": classes})
    assert isinstance(values, FrozenMap)
    return values
