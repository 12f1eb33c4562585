"""Read who logs in from properties: sasl.mechanism and the text of sasl.jaas.config."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.diagnostics import Severity, suggest

from .. import aws, kerberos
from ..provider_block import MECHANISMS
from . import aws as java_aws
from . import jaas
from .block_draft import BlockDraft, PropertyFault

_SECRET_ATTRIBUTES = frozenset({"sasl_password", "sasl_aws_secret_key", "sasl_aws_token"})

SCOPE = "sasl_oauth_scopes"
_JNDI = "com.sun.security.auth.module.JndiLoginModule"
_KAFKA = "org.apache.kafka.common.security"
_MODULES: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    f"{_KAFKA}.plain.PlainLoginModule": (
        ("PLAIN",),
        {"username": "sasl_username", "password": "sasl_password"},
    ),
    f"{_KAFKA}.scram.ScramLoginModule": (
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        {
            "username": "sasl_username",
            "password": "sasl_password",
            "tokenauth": "sasl_token_auth",
        },
    ),
    kerberos.MODULE: (("GSSAPI",), kerberos.OPTIONS),
    f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule": (
        ("OAUTHBEARER",),
        {"clientId": "sasl_username", "clientSecret": "sasl_password", "scope": SCOPE},
    ),
    java_aws.MODULE: ((java_aws.MECHANISM,), java_aws.OPTIONS),
}
"""Login module -> its mechanisms, and its options with the attribute of each."""


def read_login(properties: Mapping[str, str], block: BlockDraft) -> None:
    mechanism = properties.get("sasl.mechanism", "").strip().upper()
    by_aws = java_aws.uses_aws(properties)
    if by_aws:
        block.attributes["sasl_mechanism"] = aws.MECHANISM
    elif mechanism:
        _read_mechanism(mechanism, block)
    text = properties.get("sasl.jaas.config")
    if text is None:
        return
    try:
        login = jaas.parse_login(text)
    except ValueError as error:
        block.faults.append(
            PropertyFault("sasl.jaas.config", f"it cannot be read: {error}", _JAAS_FORM)
        )
        return
    if login.module not in _MODULES:
        block.faults.append(_module_fault(login.module))
        return
    mechanisms, options = _MODULES[login.module]
    if mechanism not in mechanisms:
        block.faults.append(
            PropertyFault(
                "sasl.mechanism",
                f"sasl.jaas.config logs in with {' or '.join(mechanisms)}, but sasl.mechanism is "
                f"{mechanism or 'not set'}",
                f"set sasl.mechanism={mechanisms[0]}",
            )
        )
    if by_aws:
        options = java_aws.OPTIONS
        block.faults += [
            PropertyFault("sasl.jaas.config", text, advice)
            for text, advice in java_aws.find_faults(login.options)
        ]
    _read_options(login.options, options, block)
    if login.module == kerberos.MODULE:
        block.faults += [
            PropertyFault("sasl.jaas.config", text, advice)
            for text, advice in kerberos.find_jaas_faults(login.options)
        ]


_JAAS_FORM = f'write it as: {_KAFKA}.plain.PlainLoginModule required username="…" password="…";'


def _read_mechanism(name: str, block: BlockDraft) -> None:
    if name in MECHANISMS:
        block.attributes["sasl_mechanism"] = name
        return
    block.faults.append(
        PropertyFault(
            "sasl.mechanism",
            f"sasl.mechanism {name} is not supported",
            "possible: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM",
        )
    )


def _module_fault(name: str) -> PropertyFault:
    if name == _JNDI:
        text = "JndiLoginModule is refused: it loads code from any address that is given to it"
    else:
        text = (
            f"the login module {name} is refused: only those of Kafka and of Amazon, and Java's "
            "own for Kerberos, are supported"
        )
    return PropertyFault("sasl.jaas.config", text, suggest(name, _MODULES) or _JAAS_FORM)


def _read_options(
    options: Mapping[str, str], attributes: Mapping[str, str], block: BlockDraft
) -> None:
    for name, value in options.items():
        attribute = attributes.get(name)
        if attributes is java_aws.OPTIONS and name in java_aws.IDLE:
            text = f"its option {name} has no effect here"
            warning = PropertyFault("sasl.jaas.config", text, "remove it", Severity.WARNING)
            block.faults.append(warning)
        elif attribute is None:
            block.faults.append(
                PropertyFault(
                    "sasl.jaas.config",
                    f"its option {name} is not supported",
                    suggest(name, attributes) or f"possible: {', '.join(attributes)}",
                )
            )
        elif attribute == SCOPE:
            block.attributes[attribute] = tuple(value.split())
        elif attribute == "sasl_token_auth":
            block.attributes[attribute] = value.strip().lower() == "true"
        elif not attribute:
            continue
        elif attribute in _SECRET_ATTRIBUTES:
            block.hide(attribute, value)
        else:
            block.attributes[attribute] = value
