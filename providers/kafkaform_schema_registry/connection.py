"""Open a session with a real registry."""

from __future__ import annotations

from collections.abc import Callable

from kafkaform.core.errors import ConnectError, OtherSystem
from kafkaform.core.resource import Facts
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets
from kafkaform.provider.http.client import HttpClient, Proof
from kafkaform.provider.http.exchange import HttpAnswer
from kafkaform.provider.http.settings import BasicLogin, HttpSettings, list_urls, read_settings

from .api.answers import read_registry_id
from .products import PROOF_CALL, Product, identify_product, name_place
from .session import RegistrySession


def open_session(instance: str, config: FrozenMap, secrets: Secrets) -> RegistrySession:
    """Connect and find out which registry answers. Raises ConnectError, ConfigurationError,
    OtherSystem."""
    settings = read_settings(instance, config, secrets)
    url = list_urls(config)[0]
    first = HttpClient(settings)
    try:
        product = identify_product(first, url)
    finally:
        first.close()
    _check_id(url, product, config.get("registry_id"))
    proof = None if product.id is None else Proof(PROOF_CALL, _make_check(url, product.id))
    facts = make_facts(config, product, url, settings)
    return RegistrySession(instance, HttpClient(settings, proof), facts)


def make_facts(config: FrozenMap, product: Product, url: str, settings: HttpSettings) -> Facts:
    """The facts of a session. url: the first address."""
    node = name_place(url)
    path = node.partition("/")[2]
    # One of Confluent's registries has several sets of subjects, under /contexts/NAME.
    named = f"{product.id}/{path}" if product.id and path else product.id
    login = settings.auth
    values = product.values.with_items(
        {
            "hard_delete": config.get("hard_delete") is True,
            "login": login is not None or settings.certificate is not None,
        }
    )
    return Facts(
        named or config.get("registry_id") or node,
        nodes=(node,),
        principal=login.username if isinstance(login, BasicLogin) else None,
        values=values,
        profile=product.profile,
        operation_timeout=settings.timeout,
        protect=config.get("protect_schemas") is not False,
    )


def _check_id(url: str, product: Product, expected: str | None) -> None:
    """Raises ConnectError if this registry is, or could be, another one than expected."""
    if product.hides_id and expected is None:
        # Somebody else sees the id, and the state is bound to it.
        raise ConnectError(
            f"{url}: this user must not see which registry answers (GET {PROOF_CALL.path})",
            "Grant that right, or write the id that other users see into registry_id.",
        )
    if expected is not None and product.id not in (None, expected):
        raise ConnectError(
            f"{url}: the registry calls itself {product.id}, and registry_id is {expected}",
            "Check url, or remove registry_id: this registry has its own id.",
        )


def _make_check(url: str, expected: str) -> Callable[[HttpAnswer], None]:
    def check(answer: HttpAnswer) -> None:
        registry_id = read_registry_id(answer.body)
        if registry_id != expected:
            name = registry_id or "without an id"
            raise OtherSystem(
                f"{url} is the registry {name} now, and was {expected} before",
                "Find out what leads to two registries there, then run the same command again.",
            )

    return check
