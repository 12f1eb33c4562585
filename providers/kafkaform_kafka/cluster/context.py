"""What every read and every request needs: the connection, its settings, and the facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from kafkaform.core.change import Step
from kafkaform.core.resource import Depth, Facts, Fault, Identity, Reading, Sweep
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Secrets

from ..connection.settings import KafkaSettings
from ..wire.client import Wire


class ClusterContext(Struct, frozen=True):
    """One open session's parts. throttles: `broker 1` or `topic orders` -> values that we set
    there; foreign: throttle tickets that found somebody else's throttle and set nothing; epochs: of
    the controller that was active when creates were first checked."""

    settings: KafkaSettings
    wire: Wire
    facts: Facts
    throttles: dict[str, set[str]] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    epochs: set[int] = field(default_factory=set)

    @property
    def instance(self) -> str:
        return self.settings.instance

    @property
    def timeout(self) -> float:
        """Seconds that the cluster may take for one request."""
        return self.settings.timeout


class Reply(Struct, frozen=True):
    """What one step's part of an answer says; no fault means that it worked. ticket: of the
    long work that has started."""

    step: Step
    fault: Fault | None = None
    incarnation: str | None = None
    attributes: FrozenMap | None = None
    ticket: str | None = None


class Order(Struct, frozen=True):
    """What one request shall do. dry: check it and do nothing; secrets: what references in the
    payloads stand for; there are none in a dry run."""

    steps: Sequence[Step]
    dry: bool
    secrets: Secrets = EMPTY


Send = Callable[[ClusterContext, Order], Sequence[Reply]]
"""Sends once, and answers for each step in order, whatever happens."""


Listing = Callable[[ClusterContext, Depth], Sweep]
"""Lists all objects of one kind. Does not raise for a failed request."""


class Reads(Struct, frozen=True):
    """How one kind is listed and read. Neither function raises for a failed request."""

    sweep: Listing
    read: Callable[[ClusterContext, Sequence[Identity], str | None], Mapping[Identity, Reading]]


class Requests(Struct, frozen=True):
    """What one kind of object asks of a real cluster. sends: API -> how its request is sent."""

    reads: Reads
    sends: Mapping[str, Send] = EMPTY
