"""What every read and every request needs: the connection, its settings and facts, the brokers that
are live now, and how a failed request becomes a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct, field

from kafkaform.core.change import Step
from kafkaform.core.resource import Depth, Facts, Fault, Identity, Reading, Sweep
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Secrets

from ..connection.settings import KafkaSettings
from ..protocol import faults
from ..protocol.cluster_facts import KafkaFacts
from ..protocol.faults import fault_of
from ..wire.client import RequestNotSent, RequestUnanswered, Unsupported, Wire
from ..wire.cluster import ClusterRow, describe_cluster, find_quorum_leader

LAG = 3.0
"""Seconds in which brokers normally show what the controller committed. Before Kafka 4.1, an idle
broker learns of it half a second later (KIP-1166)."""
T = TypeVar("T")
UNSUPPORTED_VERSION = 35
# kafka-python decodes null where the protocol allows it, for example instead of a list. Code that
# expects a list then raises one of these.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What our code raises at an answer that can be decoded but makes no sense."""


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


def attempt(api: str, call: Callable[[], T], broker: str | None = None) -> T | Fault:
    """The result of the call, or the fault that says whether its request can have been executed."""
    # No use of the clients' own `retriable`: librdkafka says False for every admin error, also for
    # timeouts, and kafka-python says True for some whose request may have been executed.
    node = broker or ""
    try:
        return call()
    except RequestNotSent as error:
        return faults.not_sent_fault(api, str(error), node, throttled=error.throttled)
    except Unsupported as error:
        return faults.fault_of(api, UNSUPPORTED_VERSION, "", str(error), node)
    except RequestUnanswered as error:
        return faults.lost_answer_fault(api, str(error), node, timed_out=error.timed_out)
    except _NONSENSE as error:
        cause = f"the answer makes no sense ({type(error).__name__}: {error})"
        return faults.lost_answer_fault(api, cause, node)


def live_nodes(context: ClusterContext) -> tuple[str, ...]:
    """Ids of the brokers that are live now; those of the facts if no broker answers."""
    # A broker applies the metadata log later than the controller writes it, so that it may not know
    # yet that another one came back. A broker that was live before is left out only if no broker
    # that answers lists it.
    listed = _list_live_brokers(context)
    if listed is None:
        return context.facts.nodes
    gone = set(context.facts.nodes) - listed
    for node in sorted(listed) if gone else ():
        gone -= _list_live_brokers(context, node) or set()
    return tuple(sorted(listed | (set(context.facts.nodes) - gone), key=int))


def find_answering_node(context: ClusterContext) -> str:
    """The first live broker that answers, empty if there is none: for what a broker reports only
    about itself."""
    nodes = context.facts.nodes
    return next((node for node in nodes if _list_live_brokers(context, node) is not None), "")


def _list_live_brokers(context: ClusterContext, node: str | None = None) -> set[str] | None:
    """The live brokers that a broker knows, None without an answer."""
    call = partial(describe_cluster, context.wire, context.timeout, node)
    row = attempt("DescribeCluster", call, node)
    return set(row.brokers) if isinstance(row, ClusterRow) and not row.code else None


def split_chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Slices of at most this many items, for requests with a limit."""
    return (items[start : start + size] for start in range(0, len(items), size))


def read_cluster(context: ClusterContext) -> FrozenMap | Fault:
    """Id, live brokers and controller of the cluster. The controller is None without Describe on
    Cluster."""
    row = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    if isinstance(row, Fault):
        return row
    if row.code:
        return fault_of("DescribeCluster", row.code, "", row.message)
    return FrozenMap(
        {
            "cluster_id": row.cluster_id,
            "brokers": tuple(
                FrozenMap(id=int(node), host=row.hosts[node][0], port=row.hosts[node][1], rack=rack)
                for node, rack in row.brokers.items()
            ),
            "controller_id": find_controller(context),
        }
    )


def find_controller(context: ClusterContext) -> int | None:
    """Id of the active controller, None if the cluster does not say."""
    if KafkaFacts.of(context.facts).zookeeper:
        row = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
        return row.controller if isinstance(row, ClusterRow) and row.controller >= 0 else None
    leader = attempt("DescribeQuorum", lambda: find_quorum_leader(context.wire, context.timeout))
    return None if isinstance(leader, Fault) else leader
