"""Ask several brokers at the same time, and remember which of them did not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from kafkaform.core.resource import Fault

from ...cluster.context import live_nodes
from ...protocol.faults import fault_of
from ..source import DescribeSource, make_read_error
from .gaps import Gap

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")


class Listing(Protocol):
    """What one broker lists."""

    @property
    def code(self) -> int:
        """0, or why it is unknown."""


L = TypeVar("L", bound=Listing)
IN_FLIGHT = 4
"""Requests at the same time."""


class NodeRequest(Struct, Generic[T_co], frozen=True):
    """A request that only one broker can answer."""

    api: str
    node: str
    """Broker id."""
    call: Callable[..., T_co]
    """Called with the wire, the arguments, the node, and the timeout in seconds."""
    arguments: tuple[Any, ...] = ()


def send_each(source: DescribeSource, requests: Sequence[NodeRequest[T]]) -> list[T | Fault]:
    """The answers, in the order of the requests."""

    def send(request: NodeRequest[T]) -> T | Fault:
        found: T | Fault = source.ask(
            request.api, request.call, *request.arguments, request.node, node=request.node
        )
        return found

    with ThreadPoolExecutor(IN_FLIGHT, "describe") as pool:
        return list(pool.map(send, requests))


def ask_all_brokers(
    source: DescribeSource, api: str, call: Callable[..., L], arguments: tuple[Any, ...], what: str
) -> tuple[Mapping[str, L], list[Gap]]:
    """Broker id -> its answer, and a gap for each broker without one. what: that which each broker
    lists. Raises KafkaformError if no broker answers."""
    nodes = live_nodes(source.context)
    found: dict[str, L] = {}
    gaps: list[Gap] = []
    requests = [NodeRequest(api, node, call, arguments) for node in nodes]
    for node, answer in zip(nodes, send_each(source, requests), strict=True):
        if not isinstance(answer, Fault) and not answer.code:
            found[node] = answer
            continue
        fault = answer if isinstance(answer, Fault) else fault_of(api, answer.code, "", None, node)
        gaps.append(Gap(f"the {what} of broker {node} are missing", fault, node))
    if gaps and not found:
        raise make_read_error(gaps[0].fault)
    return found, gaps


def cut_batches(items: Iterable[A], size: int) -> Iterator[Sequence[A]]:
    """The items in parts of this size at most."""
    listed = list(items)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]
