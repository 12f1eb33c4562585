"""The Kafka Connect provider over simulated workers, and what a `simulate "kafka_connect"` block
can set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Change
from kafkaform.core.clock import Clock
from kafkaform.core.diagnostics import Diagnostic
from kafkaform.core.errors import OtherSystem
from kafkaform.core.resource import Depth, Fault, FaultClass, Reach
from kafkaform.core.rule import RuleBook
from kafkaform.core.schema import STRING, AttributeSchema, ObjectSchema, make_schema, set_of
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.contract import OptionalParts, ResourceType, Secrets, Simulation
from kafkaform.provider.http.exchange import Call, HttpAnswer

from ..provider import PROVIDER
from ..rest import SERVER
from ..session import ConnectSession, WorkerAddress, WorkersProof, connect
from .workers import NEWEST, PLUGINS, SimulatedPlugin, SimulatedWorkers, find_plugin

URL = "http://connect-1:8083"
TIMEOUT = 30.0

Mishap = Callable[[Call], str]
"""A call -> what happens to it: `` (nothing), `refused` (nothing is sent), `lost` (it is executed,
and nobody hears of it)."""


class MemoryClient:
    """Asks simulated workers as one user. See `rest.Client`."""

    def __init__(
        self, workers: SimulatedWorkers, user: str, proof: WorkersProof, mishap: Mishap
    ) -> None:
        self._workers = workers
        self._user = user
        self._proof = proof
        self._mishap = mishap
        self._stranger: OtherSystem | None = None
        self._closed = False

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        return [self._ask(call) for call in calls]

    def prove(self) -> None:
        if self._stranger is not None:
            raise self._stranger
        try:
            self._proof.check(self._workers.handle(SERVER, self._user))
        except OtherSystem as stranger:
            self._stranger = stranger
            raise

    def close(self) -> None:
        self._closed = True

    def _ask(self, call: Call) -> HttpAnswer | Fault:
        if self._closed:
            return Fault("NOT_SENT", "the session is closed", FaultClass.NOT_APPLIED)
        self.prove()
        mishap = self._mishap(call)
        if mishap == "refused":
            return Fault("NOT_SENT", "no connection", FaultClass.NOT_APPLIED, URL, "try again")
        answer = self._workers.handle(call, self._user)
        if mishap == "lost":
            return Fault("ANSWER_LOST", "cut", FaultClass.AMBIGUOUS, f"{URL}, {call}", "look")
        return answer


class ConnectMemoryProvider(OptionalParts, Struct, frozen=True):
    """Opens sessions with one Connect cluster as one of its users, for any provider instance.

    Everything else comes from the Kafka Connect provider.
    """

    workers: SimulatedWorkers
    user: str = "admin"
    mishap: Mishap = lambda _: ""
    """What happens to calls on the way."""
    scope: str = ""
    """The id of the Connect cluster, if it belongs to no Kafka cluster."""
    name: str = PROVIDER.name
    words: Words = PROVIDER.words
    config: ObjectSchema = PROVIDER.config
    types: Mapping[str, ResourceType] = PROVIDER.types
    commanded: Mapping[str, ResourceType] = PROVIDER.commanded
    data: Mapping[str, ObjectSchema] = PROVIDER.data

    def check(self, config: FrozenMap) -> Sequence[tuple[str, Diagnostic]]:
        return PROVIDER.check(config)

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> ConnectSession:
        """Open a session. config: of the settings of the connection, only `worker_principal` has
        an effect. Raises ConnectError."""
        proof = WorkersProof(URL)
        client = MemoryClient(self.workers, self.user, proof, self.mishap)
        address = WorkerAddress(client, {URL: client}, proof)
        clock = self.workers.clock
        worker = config.get("worker_principal") or None
        return connect(instance, address, None, self.user, TIMEOUT, clock, self.scope, worker)

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return PROVIDER.review_needs(changes)

    def load_rules(self) -> RuleBook:
        return PROVIDER.load_rules()

    def list_reaches(self, kind: str, attributes: FrozenMap) -> Sequence[Reach] | None:
        return PROVIDER.list_reaches(kind, attributes)


SETTINGS = make_schema(
    "The simulated Connect cluster of a test file.",
    AttributeSchema(
        "plugins",
        set_of(STRING),
        "The classes of the connectors that are installed. Default: every one that is asked for.",
    ),
    AttributeSchema(
        "version",
        STRING,
        "The version of Kafka that the workers run; older ones lack some states.",
        default=NEWEST,
    ),
)


def make_provider(settings: FrozenMap, scope: str, clock: Clock) -> ConnectMemoryProvider:
    """The provider of a new Connect cluster. scope: its id."""
    named = settings.get("plugins") or ()
    plugins = tuple(_make_plugin(str(class_)) for class_ in sorted(named))
    version = str(settings.get("version") or NEWEST)
    workers = SimulatedWorkers(clock, scope, version=version, plugins=plugins)
    return ConnectMemoryProvider(workers, scope=scope)


def _make_plugin(class_: str) -> SimulatedPlugin:
    """A plugin with the configs of every connector; those of Kafka's own have theirs, too."""
    kind = "sink" if "Sink" in class_ else "source"
    return find_plugin(class_, PLUGINS) or SimulatedPlugin(class_, kind)


SIMULATION = Simulation(SETTINGS, make_provider)
