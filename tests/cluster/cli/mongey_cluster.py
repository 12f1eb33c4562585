"""What Terraform's Mongey provider makes of the folder `mongey`, by another client's requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from ...kit.kafka.quota_user import limits
from ...kit.kafka.sessions import eventually

SOURCE = Path(__file__).parent / "mongey"
SERVICES = ("checkout", "reporting")
PASSWORDS = {"checkout": "pw-of-checkout", "reporting": "pw-of-reporting"}
DAY_MS = 24 * 60 * 60 * 1000
READ, WRITE = AclOperation.READ, AclOperation.WRITE
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED


def topics(env: str) -> dict[str, tuple[int, dict[str, str]]]:
    """name -> partitions and config."""
    shop = f"{env}.shop"
    forever = {"retention.ms": "-1"}
    return {
        f"{shop}.orders": (6, {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS)}),
        f"{shop}.customers": (3, {"cleanup.policy": "compact"}),
        f"{shop}.clicks": (4, {"cleanup.policy": "delete", "retention.ms": str(DAY_MS)}),
        f"{shop}.orders.dead-letters": (1, forever),
        f"{shop}.clicks.dead-letters": (1, forever),
        f"{env}.warehouse.facts": (2, {}),
    }


def acls(env: str) -> list[AclBinding]:
    shop, checkout, reporting = f"{env}.shop", f"{env}-checkout", f"{env}-reporting"
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    rows = [
        (topic, f"{shop}.orders", LITERAL, checkout, WRITE),
        (topic, f"{shop}.customers", LITERAL, checkout, READ),
        (group, f"{env}.checkout", PREFIXED, checkout, READ),
        (topic, f"{shop}.orders", LITERAL, reporting, READ),
        (topic, f"{shop}.clicks", LITERAL, reporting, READ),
        (group, f"{env}.reporting", PREFIXED, reporting, READ),
        (topic, f"{env}.warehouse.facts", LITERAL, checkout, READ),
        (topic, f"{env}.warehouse.facts", LITERAL, reporting, READ),
    ]
    allowed = [
        AclBinding(kind, name, pattern, f"User:{user}", "*", operation, ALLOW)
        for kind, name, pattern, user, operation in rows
    ]
    return [*allowed, AclBinding(topic, f"{env}.warehouse.", PREFIXED, "User:*", "*", WRITE, DENY)]


def quotas(env: str) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    rates = {"checkout": 5242880.0, "reporting": 1048576.0}
    users = [
        ({"user": f"{env}-{name}"}, {"producer_byte_rate": rate, "consumer_byte_rate": rate * 2})
        for name, rate in rates.items()
    ]
    tools = {"request_percentage": 50.0, "producer_byte_rate": 1048576.0}
    return [
        *users,
        ({"ip": "203.0.113.7"}, {"connection_creation_rate": 10.0}),
        ({"client-id": f"{env}-tools"}, tools),
    ]  # type: ignore[list-item]


@contextmanager
def made_by_terraform(broker: Any, admin: AdminClient, env: str) -> Iterator[None]:
    """All of it is there inside, and gone afterwards."""
    scram = ScramMechanism.SCRAM_SHA_512
    new = [NewTopic(name, parts, 1, config=c) for name, (parts, c) in topics(env).items()]
    _done(admin.create_topics(new))
    eventually(
        lambda: admin.list_topics(timeout=60).topics.keys(),
        lambda names: names >= {each.topic for each in new},
    )
    _done(admin.create_acls(acls(env)))
    info = ScramCredentialInfo(scram, 8192)
    for name in SERVICES:
        password = PASSWORDS[name].encode()
        made = UserScramCredentialUpsertion(f"{env}-{name}", info, password)
        _done(admin.alter_user_scram_credentials([made]))
    with limits(broker) as made_quotas:
        made_quotas.set(*quotas(env))
        try:
            yield
        finally:
            _done(admin.delete_acls([_exactly(acl) for acl in acls(env)]))
            gone = [UserScramCredentialDeletion(f"{env}-{name}", scram) for name in SERVICES]
            _done(admin.alter_user_scram_credentials(gone))
            _done(admin.delete_topics(list(topics(env))))


def _exactly(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(60)
