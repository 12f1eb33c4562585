"""SASL/GSSAPI (Kerberos) in a provider block: its attributes and their faults.

Names follow `sasl.kerberos.service.name` of Kafka's own clients. Tickets come from a keytab or from
a ticket cache that `kinit` or a system service has filled; no program is started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kafkaform.core.schema import STRING, AttributeSchema

from .attribute_faults import Fault, make_fault

GSSAPI = "GSSAPI"
SPELLINGS = {"GSSAPI": GSSAPI, "gssapi": GSSAPI}
DEFAULT_SERVICE = "kafka"

ATTRIBUTES = (
    AttributeSchema(
        "sasl_kerberos_service_name",
        STRING,
        "Primary of the brokers' Kerberos principals for gssapi: kafka for kafka/HOST@REALM. "
        f"Default: {DEFAULT_SERVICE}.",
    ),
    AttributeSchema(
        "sasl_kerberos_principal",
        STRING,
        "Our Kerberos principal for gssapi, such as ci@EXAMPLE.COM. Default: that of the ticket "
        "cache.",
    ),
    AttributeSchema(
        "sasl_kerberos_keytab",
        STRING,
        "File with the key of sasl_kerberos_principal. Without it, a ticket cache is used.",
    ),
    AttributeSchema(
        "sasl_kerberos_ticket_cache",
        STRING,
        "Ticket cache for gssapi, as KRB5CCNAME names it. Default: that of the environment.",
    ),
)
NAMES = tuple(attribute.name for attribute in ATTRIBUTES)

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
"""Java's login module for Kerberos."""
OPTIONS: Mapping[str, str] = {
    "principal": "sasl_kerberos_principal",
    "keyTab": "sasl_kerberos_keytab",
    "ticketCache": "sasl_kerberos_ticket_cache",
    "serviceName": "sasl_kerberos_service_name",
    **dict.fromkeys(("useKeyTab", "useTicketCache", "storeKey", "doNotPrompt"), ""),
    **dict.fromkeys(("renewTGT", "refreshKrb5Config", "isInitiator", "debug"), ""),
}
"""Option of that module -> the attribute of the provider block; empty for one that has no
counterpart."""


class KerberosSettings(Struct, frozen=True):
    """How to get tickets, and for which service."""

    service: str
    principal: str | None = None
    """None for that of the ticket cache."""
    keytab: str | None = None
    """Path of the keytab, None for a ticket cache."""
    ticket_cache: str | None = None
    """Name of the ticket cache, None for that of the environment."""


def read_kerberos(block: Mapping[str, Any]) -> KerberosSettings:
    """The Kerberos settings of a provider block without faults."""
    service, principal, keytab, cache = (block.get(name) or None for name in NAMES)
    return KerberosSettings(service or DEFAULT_SERVICE, principal, keytab, cache)


def find_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of a provider block that logs in with Kerberos. block: its values."""
    for name in ("sasl_username", "sasl_password"):
        if block.get(name):
            yield make_fault(
                name,
                f"{name} has no effect with gssapi",
                "remove it: sasl_kerberos_principal says who logs in, and a keytab or a ticket "
                "cache proves it",
            )
    if block.get("sasl_kerberos_keytab") and block.get("sasl_kerberos_ticket_cache"):
        yield make_fault(
            "sasl_kerberos_ticket_cache",
            "sasl_kerberos_keytab and sasl_kerberos_ticket_cache exclude each other",
            "set the one that has your key or your tickets",
        )
    if block.get("sasl_kerberos_keytab") and not block.get("sasl_kerberos_principal"):
        yield make_fault(
            "sasl_kerberos_keytab",
            "sasl_kerberos_keytab needs sasl_kerberos_principal",
            "name the principal whose key is in the file; `klist -k FILE` lists them",
        )
    service = block.get("sasl_kerberos_service_name")
    if isinstance(service, str) and ("/" in service or "@" in service):
        yield make_fault(
            "sasl_kerberos_service_name",
            "sasl_kerberos_service_name is the first part of a principal only",
            "write kafka for brokers with principals such as kafka/HOST@REALM",
        )


def find_jaas_faults(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What the options of Java's login module ask for and cannot be had: text and advice."""
    # With useKeyTab=false Java ignores a keytab, and with true and no name it takes the one of
    # krb5.conf. Another key would be another login.
    keytab = options.get("useKeyTab", "false").lower() == "true"
    cache = options.get("useTicketCache", "false").lower() == "true"
    if keytab != bool(options.get("keyTab")):
        yield "its options useKeyTab and keyTab do not agree", 'write useKeyTab=true keyTab="PATH"'
    if not keytab and not cache:
        yield (
            "its options name neither a keytab nor a ticket cache",
            'write useKeyTab=true keyTab="PATH", or useTicketCache=true',
        )
