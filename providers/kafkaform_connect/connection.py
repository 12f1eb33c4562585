"""Opens sessions: who is there, what the workers can do, and whether it is the right cluster.

A Connect cluster has no id. Its workers say which Kafka cluster they store everything in (`GET /`,
KIP-298), and two Connect clusters on one Kafka differ in nothing but `group.id`, which the REST API
does not show. But a validation refuses a sink connector whose consumers would join the group of the
workers (DistributedHerder.validateSinkConnectorGroupId), so a given `group_id` can be proven
without an effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.clock import Clock, SystemClock
from kafkaform.core.errors import ConnectError, OtherSystem
from kafkaform.core.resource import Facts, Fault
from kafkaform.core.value import EMPTY, FrozenMap, freeze
from kafkaform.provider.contract import Secrets
from kafkaform.provider.http.client import HttpClient, Proof
from kafkaform.provider.http.exchange import HttpAnswer
from kafkaform.provider.http.settings import BasicLogin, HttpSettings, read_settings

from . import rest
from .connector import CLASS, NAME
from .provider_block import OPERATION_TIMEOUT
from .reading import parse
from .rest import (
    Plugin,
    RequestFailed,
    UnreadableAnswer,
    WorkersClient,
    parse_release,
    read_plugins,
    read_server,
    read_validation,
)
from .session import ConnectSession

if TYPE_CHECKING:
    from kafkaform.provider.http.client import HttpClient


_CONFLICT = "conflicts with Connect worker group"
_PREFIX = "connect-"
"""What a sink's name gets to become its consumer group (SinkUtils.consumerGroupId)."""
_GROUP = "consumer.override.group.id"
_SINCE = (3, 7)
"""The version of Kafka that compares the group of an override, too (KAFKA-13327)."""
_HARMLESS = "FileStreamSinkConnector"


class WorkersProof:
    """Compares what each connection says with what the first one said."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.cluster_id = ""
        """The id of the Kafka cluster, empty before the first answer."""
        self.version = ""
        """The version of the worker that answered first."""

    def check(self, answer: HttpAnswer) -> None:
        """Take an answer to `rest.SERVER`. Raises OtherSystem."""
        try:
            version, cluster = read_server(answer.body)
        except UnreadableAnswer as error:
            raise self._make_stranger(f"is no Connect worker: {error}") from None
        if not cluster:
            raise self._make_stranger("does not say which Kafka cluster it belongs to")
        if self.cluster_id and cluster != self.cluster_id:
            raise self._make_stranger(
                f"belongs to Kafka cluster {cluster} now, and belonged to {self.cluster_id} before"
            )
        self.cluster_id, self.version = cluster, self.version or version

    def _make_stranger(self, difference: str) -> OtherSystem:
        return OtherSystem(
            f"what answers at {self._url} {difference}",
            "Check url: it has to lead to the REST API of one Connect cluster.",
        )


def has_group(
    client: WorkersClient, group_id: str, plugins: Iterable[Plugin], release: tuple[int, int] | None
) -> bool | None:
    """Whether the workers have this `group.id`; None if that cannot be found out. Nothing is
    changed. Raises OtherSystem, RequestFailed."""
    by_name = group_id.startswith(_PREFIX) and len(group_id) > len(_PREFIX)
    sink = _choose_sink(plugins)
    if sink is None or not (by_name or (release or _SINCE) >= _SINCE):
        return None
    config = {CLASS: sink, "topics": "kafkaform"}
    if by_name:
        key, config[NAME] = NAME, group_id.removeprefix(_PREFIX)
    else:
        key, config[NAME], config[_GROUP] = _GROUP, "kafkaform", group_id
    call = rest.validate(sink, config)
    (answer,) = client.ask_all([call])
    validation = parse(call, read_validation, rest.get_body(answer, call))
    return any(fault.key == key and _CONFLICT in fault.message for fault in validation.faults)


def _choose_sink(plugins: Iterable[Plugin]) -> str | None:
    """The sink to ask about. Others may log in somewhere while they are validated."""
    sinks = sorted(plugin.class_ for plugin in plugins if plugin.type == "sink")
    return next((plugin for plugin in sinks if plugin.endswith(_HARMLESS)), next(iter(sinks), None))


def make_group_error(url: str, group_id: str) -> ConnectError:
    """The error if the workers have another group."""
    return ConnectError(
        f"{url}: the group.id of the workers is not {group_id}",
        "Set group_id to the group.id in the configuration of the workers, or check url.",
    )


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
