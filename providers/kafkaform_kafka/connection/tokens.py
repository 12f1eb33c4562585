"""Login tokens for SASL/OAUTHBEARER (RFC 7628): from a file, or from the endpoint of a block.

The content of a file is sent to the broker only if it is a JSON web token (RFC 7519), so that no
other file can be sent away.
"""

from __future__ import annotations

import time

from kafkaform.core.secret import Secret
from kafkaform.core.storage import read_named_file
from kafkaform.provider.http.tokens import (
    LARGEST,
    EndpointNames,
    LoginToken,
    TokenEndpoint,
    make_error,
    make_token,
    parse_claims,
)

from .settings import KafkaSettings

_NAMES = EndpointNames("sasl_token_url", "sasl_username", "sasl_password", "sasl_oauth_scopes")
_FILE = "write a valid token into it (one line, three parts with dots between them)"


def make_endpoint(settings: KafkaSettings) -> TokenEndpoint:
    """The token endpoint that a provider block names."""
    return TokenEndpoint(
        str(settings.token_url),
        settings.username or "",
        settings.password or Secret(""),
        settings.scopes,
        settings.ca,
        _NAMES,
    )


def read_token_file(path: str) -> LoginToken:
    """The token in a file. Raises ConnectError without repeating anything from the file."""
    try:
        text = read_named_file(path, LARGEST).decode("ascii").strip()
    except OSError as error:
        raise make_error(
            f"sasl_token_file {path} cannot be read: {error.strerror}", _FILE
        ) from None
    except UnicodeDecodeError:
        text = ""
    claims = parse_claims(text)
    if claims is None:
        raise make_error(f"sasl_token_file {path} does not contain a JSON web token", _FILE)
    token = make_token(text, claims, None)
    if token.expires <= time.time():
        raise make_error(f"the token in sasl_token_file {path} has expired", _FILE)
    return token
