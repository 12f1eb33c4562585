"""What to describe, and the session to ask: used by all parts of `describe`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Depth, Fault, Sweep
from kafkaform.core.value import FrozenMap, Value

from ..kinds.context import ClusterContext, attempt
from ..protocol.cluster_facts import Capability, find_capability_fault
from ..wire.describe import describe_topics

T = TypeVar("T")
_NOT_FOUND = frozenset(
    ("UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND", "TRANSACTIONAL_ID_NOT_FOUND")
)
"""The faults of a name that does not exist."""
TOPICS_HIDDEN = "Kafka leaves out topics that this principal may not describe"


class DescribeQuery(Struct, frozen=True):
    """What to describe."""

    name: str = "*"
    """A glob."""
    exact: tuple[str, ...] = ()
    """Full names. Each of them must exist."""
    partitions: bool = False
    """Include the partitions of topics."""
    sizes: bool = False
    """Include the bytes on disk of topics."""
    entity_type: str = "topics"
    """Which configs: a key of CONFIG_ENTITIES."""
    default: bool = False
    """The configs that all brokers share."""
    keys: tuple[str, ...] = ()
    """Names or globs of configs; none for all."""
    fields: FrozenMap = FrozenMap()
    """Attribute -> glob that the value of an ACL or a quota must match."""


class DescribeSource(Struct, frozen=True):
    """The parts of a session that documents are read from."""

    context: ClusterContext
    sweep: Callable[[str, Depth], Sweep]

    def ask(
        self, api: str, call: Callable[..., T], *arguments: object, node: str | None = None
    ) -> T | Fault:
        """The answer to one request, or the fault."""
        context = self.context
        request = partial(call, context.wire, *arguments)
        return attempt(api, lambda: request(timeout=context.timeout), node)

    def require(self, api: str, call: Callable[..., T], *arguments: object) -> T:
        """The answer to one request. Raises KafkaformError without one."""
        answer = self.ask(api, call, *arguments)
        if isinstance(answer, Fault):
            raise make_read_error(answer)
        return answer


def require_feature(context: ClusterContext, capability: Capability | None) -> None:
    """Raises KafkaformError if this cluster is known not to have the capability."""
    fault = capability and find_capability_fault(capability, context.facts, "DescribeConfigs")
    if fault:
        raise KafkaformError(fault.message, fault.advice)


def make_read_error(fault: Fault) -> KafkaformError:
    """The error for a failed listing."""
    return KafkaformError(f"{fault.message} ({fault.code}, {fault.where})", fault.advice)


def add_suggestion(fault: Fault, name: str, names: Iterable[str]) -> Fault:
    """The fault with the nearest name that exists, if it says that there is no such name."""
    near = suggest(name, names) if fault.code in _NOT_FOUND else ""
    return replace(fault, advice=f"{near} {fault.advice}".strip()) if near else fault


def list_topic_names(context: ClusterContext) -> tuple[str, ...]:
    """The topics that we can see, none if they cannot be listed: for the answer to a wrong name."""
    rows = attempt("Metadata", lambda: describe_topics(context.wire, None, timeout=context.timeout))
    return () if isinstance(rows, Fault) else tuple(row.name for row in rows if row.code == 0)


def describe_fault(fault: Fault | None) -> Value:
    if fault is None:
        return None
    return FrozenMap(code=fault.code, message=fault.message, advice=fault.advice)
