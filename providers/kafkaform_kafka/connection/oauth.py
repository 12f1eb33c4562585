"""SASL/OAUTHBEARER in a provider block: its attributes and their faults.

A token comes from a token endpoint (OAuth 2.0 client credentials, RFC 6749 §4.4) under the names
of Terraform's Mongey provider, or from a file that somebody else keeps fresh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkaform.core.schema import STRING, AttributeSchema, list_of
from kafkaform.provider.http.endpoint_checks import is_safe_url

from .attribute_faults import Fault, make_fault, make_stray_fault

OAUTHBEARER = "OAUTHBEARER"
SPELLINGS = {"OAUTHBEARER": OAUTHBEARER, "oauthbearer": OAUTHBEARER}

ATTRIBUTES = (
    AttributeSchema(
        "sasl_token_url",
        STRING,
        "Token endpoint for oauthbearer, https; sasl_username and sasl_password are the client id "
        "and secret there.",
    ),
    AttributeSchema("sasl_oauth_scopes", list_of(STRING), "Scopes to ask the token endpoint for."),
    AttributeSchema(
        "sasl_token_file",
        STRING,
        "File with the JSON web token for oauthbearer, read again before the token expires. Set "
        "either this or sasl_token_url.",
    ),
)
_NAMES = tuple(attribute.name for attribute in ATTRIBUTES)


def find_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of these attributes. block: its values."""
    if block.get("sasl_mechanism") not in SPELLINGS:
        yield from (make_stray_fault(name, "oauthbearer") for name in _NAMES if block.get(name))
        return
    url, file = block.get("sasl_token_url"), block.get("sasl_token_file")
    if bool(url) == bool(file):
        yield make_fault(
            "sasl_mechanism",
            "oauthbearer needs either sasl_token_url or sasl_token_file, not both",
            "name the token endpoint, with client id and secret in sasl_username and "
            "sasl_password; or the file that holds the token",
        )
    elif url:
        yield from _endpoint_faults(block, str(url))
    else:
        yield from _file_faults(block)


def _endpoint_faults(block: Mapping[str, Any], url: str) -> Iterator[Fault]:
    if not is_safe_url(url):
        yield make_fault(
            "sasl_token_url",
            "sasl_token_url must begin with https:// and contain no login",
            "the client secret is sent there; http is only for an endpoint on this computer",
        )
    if not (block.get("sasl_username") and block.get("sasl_password")):
        yield make_fault(
            "sasl_token_url",
            "sasl_token_url needs a client id and its secret",
            "set sasl_username and sasl_password",
        )


def _file_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    for name in ("sasl_username", "sasl_password", "sasl_oauth_scopes"):
        if block.get(name):
            yield make_fault(
                name,
                f"{name} has no effect with sasl_token_file",
                "remove it: the token says who logs in",
            )
