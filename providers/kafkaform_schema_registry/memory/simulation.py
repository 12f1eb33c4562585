"""The simulated registry of `kafkaform test`, and the provider that reaches it."""

from __future__ import annotations

from kafkaform.core.clock import Clock
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Facts
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets, Session
from kafkaform.provider.simulation import Simulation

from ..kinds.levels import LEVELS
from ..products import identify_product
from ..provider import PROVIDER, SchemaRegistryProvider
from ..session import RegistrySession
from .client import RegistryMishap, SimulatedClient
from .registry import SimulatedRegistry

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
            values=product.values.with_items(
                {"hard_delete": config.get("hard_delete") is True, "login": False}
            ),
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
