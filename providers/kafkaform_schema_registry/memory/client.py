"""What reaches a simulated registry, with the mishaps of a network, and the provider and simulation
of `kafkaform test`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from kafkaform.core.clock import Clock
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Facts, Fault
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets, Session, Simulation
from kafkaform.provider.http.exchange import (
    AnswerLost,
    Call,
    HttpAnswer,
    NotSent,
    make_transport_fault,
)

from ..kinds.levels import LEVELS
from ..products import identify_product
from ..provider import PROVIDER, SchemaRegistryProvider
from ..session import RegistrySession
from .registry import SimulatedRegistry


class RegistryMishap(StrEnum):
    """What happens to one write."""

    UNSENT = "unsent"
    """The connection fails."""
    DROPPED = "dropped"
    """It is lost on its way, and nobody knows."""
    UNANSWERED = "unanswered"
    """It is executed, and its answer is lost."""


class SimulatedClient:
    """Calls a registry as one user. See `RegistryClient`.

    mishaps: what happens to coming writes, the next one first; every session of the registry
    shares them.
    """

    def __init__(
        self, registry: SimulatedRegistry, user: str, mishaps: list[RegistryMishap]
    ) -> None:
        self._registry = registry
        self._user = user
        self._mishaps = mishaps
        self._closed = False

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        return list(map(self._ask, calls))

    def prove(self) -> None:
        """Nothing can lead to another registry here."""

    def close(self) -> None:
        self._closed = True

    def _ask(self, call: Call) -> HttpAnswer | Fault:
        if self._closed:
            return make_transport_fault(NotSent("the session is closed"))
        mishap = self._mishaps.pop(0) if self._mishaps and not call.reads else None
        if mishap is RegistryMishap.UNSENT:
            return make_transport_fault(NotSent("the connection failed"))
        if mishap is RegistryMishap.DROPPED:
            return make_transport_fault(AnswerLost("the connection broke"))
        answer = self._registry.answer(call, self._user)
        if mishap is RegistryMishap.UNANSWERED:
            return make_transport_fault(AnswerLost("the connection broke"))
        return answer


ADDRESS = "https://registry"
"""What messages call it."""
CONFLUENT, APICURIO = "confluent", "apicurio"

SETTINGS = make_schema(
    "The simulated registry of a test file. It knows when Avro schemas are compatible; it takes "
    "every schema of another format.",
    AttributeSchema(
        "product",
        STRING,
        "Whose answers it gives where products differ.",
        default=CONFLUENT,
        choices=(CONFLUENT, APICURIO),
    ),
    AttributeSchema(
        "compatibility",
        STRING,
        "The registry's own level.",
        default="BACKWARD",
        choices=LEVELS,
    ),
)


def connect_simulated(
    registry: SimulatedRegistry, user: str = "admin", mishaps: list[RegistryMishap] | None = None
) -> SchemaRegistryProvider:
    """The provider whose sessions all reach this registry, as this user."""

    def connect(instance: str, config: FrozenMap, _: Secrets) -> Session:
        if user not in registry.users:
            raise ConnectError(f"{ADDRESS}: the login of {user} was refused", "Check username.")
        client = SimulatedClient(registry, user, mishaps if mishaps is not None else [])
        product = identify_product(client, ADDRESS)
        facts = Facts(
            registry.id,
            nodes=("registry",),
            principal=user,
            values=product.make_facts(login=False, hard_delete=config.get("hard_delete") is True),
            profile=product.profile,
            protect=config.get("protect_schemas") is not False,
        )
        return RegistrySession(instance, client, facts)

    return SchemaRegistryProvider(PROVIDER.types, PROVIDER.data, connect)


def make_provider(settings: FrozenMap, scope: str, _: Clock) -> SchemaRegistryProvider:
    """The provider of a new registry. scope: its id."""
    registry = SimulatedRegistry(scope, apicurio=settings["product"] == APICURIO)
    registry.level = settings["compatibility"]
    return connect_simulated(registry)


SIMULATION = Simulation(SETTINGS, make_provider)
