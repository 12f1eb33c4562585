"""What every part of `describe` works with: what is wanted, and whom to ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec import Struct

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Depth, Fault, Sweep
from kafkaform.core.value import FrozenMap, Value

from ..cluster.context import ClusterContext
from ..cluster.exchange import attempt

T = TypeVar("T")
TOPICS_HIDDEN = "Kafka leaves out topics that this principal may not describe"


class DescribeQuery(Struct, frozen=True):
    """name: a glob; exact: names typed out, which must be there; partitions, sizes: ask for
    these too; entity_type and default: of configs; keys: names or globs of configs, none for all;
    fields: what an ACL or a quota must have."""

    name: str = "*"
    exact: tuple[str, ...] = ()
    partitions: bool = False
    sizes: bool = False
    entity_type: str = "topics"
    default: bool = False
    keys: tuple[str, ...] = ()
    fields: FrozenMap = FrozenMap()


class DescribeSource(Struct, frozen=True):
    """A session's parts, as this module needs them."""

    context: ClusterContext
    sweep: Callable[[str, Depth], Sweep]

    def ask(
        self, api: str, call: Callable[..., T], *arguments: object, node: str | None = None
    ) -> T | Fault:
        """The answer to one request, or why there is none."""
        context = self.context
        asked = partial(call, context.wire, *arguments)
        return attempt(api, lambda: asked(timeout=context.timeout), node)

    def require(self, api: str, call: Callable[..., T], *arguments: object) -> T:
        """The same. Raises KafkaformError without an answer."""
        answer = self.ask(api, call, *arguments)
        if isinstance(answer, Fault):
            raise make_read_error(answer)
        return answer


def make_read_error(fault: Fault) -> KafkaformError:
    """The error of a listing that failed."""
    return KafkaformError(f"{fault.message} ({fault.code}, {fault.where})", fault.advice)


def describe_fault(fault: Fault | None) -> Value:
    if fault is None:
        return None
    return FrozenMap(code=fault.code, message=fault.message, advice=fault.advice)
