"""Login tokens for SASL/OAUTHBEARER (RFC 7628): from a file, an endpoint, or AWS credentials.

The content of a file is sent to the broker only if it is a JSON web token (RFC 7519), so that no
other file can be sent away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from kafkaform.core.errors import ConfigurationError
from kafkaform.core.installation import render_extra_command
from kafkaform.core.secret import Secret
from kafkaform.core.storage import read_named_file
from kafkaform.provider.http.tokens import (
    LARGEST,
    EndpointNames,
    LoginToken,
    TokenEndpoint,
    TokenSource,
    fetch_token,
    make_error,
    make_token,
    parse_claims,
)

from .login_attributes import AwsLogin
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


def open_token_source(settings: KafkaSettings) -> TokenSource | None:
    """The source that a provider block names, None for another login. Raises ConfigurationError if
    a package is missing."""
    # A client asks from a thread of its own. Secrets are masked by context (`core.redaction`), and
    # the new token must be known in the context of the run.
    context = copy_context()
    if settings.token_file:
        return TokenSource(partial(context.run, read_token_file, settings.token_file))
    if settings.token_url:
        return TokenSource(partial(context.run, fetch_token, make_endpoint(settings)))
    if settings.aws_login:
        return TokenSource(partial(context.run, _load_signer(settings.aws_login)))
    return None


def _load_signer(login: AwsLogin) -> Callable[[], LoginToken]:
    try:
        from .aws_tokens import AwsSigner  # noqa: PLC0415  # the aws extra has what it needs
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f'sasl_mechanism = "aws-iam" needs the Python package {error.name}, which is not '
            "installed",
            f"run `{render_extra_command('aws')}`",
        ) from None
    return AwsSigner(login).sign_token
