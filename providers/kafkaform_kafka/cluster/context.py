"""The connection, its settings and the facts, which every read and every request needs."""

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
    """The parts of one open session."""

    settings: KafkaSettings
    wire: Wire
    facts: Facts
    throttles: dict[str, set[str]] = field(default_factory=dict)
    """`broker 1` or `topic orders` -> values of throttles that we set there."""
    foreign: set[str] = field(default_factory=set)
    """Tickets of throttles that were not set, because somebody else's throttle was there."""
    # If the controller changes between the dry run and an "already exists", the answer can be to a
    # repeated request: the broker sends it to the next controller (KIP-590).
    epochs: set[int] = field(default_factory=set)
    """Epochs of the controllers that were active when creates were first checked."""
    # A token gets its id from the brokers, and nothing else in it says who asked for it when.
    tokens: dict[str, frozenset[str]] = field(default_factory=dict)
    """Stamp of a delegation token to create -> the ids of those that existed before."""
    made_tokens: dict[str, str] = field(default_factory=dict)
    """Stamp of a delegation token to create -> the id that it got."""
    token_ends: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Id of a delegation token that was renewed or shortened -> when it expired before, and when it
    expires now, in milliseconds since 1970."""

    @property
    def instance(self) -> str:
        return self.settings.instance

    @property
    def timeout(self) -> float:
        """Seconds that the cluster may take for one request."""
        return self.settings.timeout


class Reply(Struct, frozen=True):
    """The answer for one step."""

    step: Step
    fault: Fault | None = None
    """None means that it worked."""
    incarnation: str | None = None
    attributes: FrozenMap | None = None
    ticket: str | None = None
    """The ticket of the long work that has started."""


class Order(Struct, frozen=True):
    """The steps of one request."""

    steps: Sequence[Step]
    dry: bool
    """Only validate them."""
    secrets: Secrets = EMPTY
    """The secrets to which payloads refer. A dry run has none."""


Send = Callable[[ClusterContext, Order], Sequence[Reply]]
"""Sends once and answers for each step, in order, whatever happens."""


Listing = Callable[[ClusterContext, Depth], Sweep]
"""Lists all objects of one kind. Does not raise for a failed request."""


NamedRead = Callable[[ClusterContext, Sequence[Identity], str | None], Mapping[Identity, Reading]]
"""Reads objects by name, from this broker or any. Does not raise for a failed request."""


ListingRead = Callable[[ClusterContext, Sequence[Identity]], Sweep]
"""Lists the names of all objects of one kind, and reads those of these that it finds in full. Does
not raise for a failed request."""


class Reads(Struct, frozen=True):
    """How one kind is listed and read."""

    sweep: Listing
    read: NamedRead
    find: NamedRead | None = None
    """Reads which objects exist, and their incarnations; None if `read` costs no more."""
    list_and_read: ListingRead | None = None
    """Lists and reads with fewer requests than `sweep` and `read`; None if there is no such way."""


class Requests(Struct, frozen=True):
    """The requests of one kind of object."""

    reads: Reads
    sends: Mapping[str, Send] = EMPTY
    """API -> the function that sends its request."""
