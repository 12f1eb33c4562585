"""Choose where login tokens come from: one source for both clients of a connection."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from kafkaform.core.errors import ConfigurationError
from kafkaform.core.installation import render_extra_command
from kafkaform.provider.http.tokens import LoginToken, TokenSource, fetch_token

from .aws import AwsLogin
from .settings import KafkaSettings
from .tokens import make_endpoint, read_token_file


def open_token_source(settings: KafkaSettings) -> TokenSource | None:
    """The source that a provider block names, None for another login. Raises ConfigurationError if
    a package is missing."""
    # A client asks from a thread of its own. Secrets are masked by context (`core.secret`), and
    # the new token must be known in the context of the run.
    here = copy_context()
    if settings.token_file:
        return TokenSource(partial(here.run, read_token_file, settings.token_file))
    if settings.token_url:
        return TokenSource(partial(here.run, fetch_token, make_endpoint(settings)))
    if settings.aws_login:
        return TokenSource(partial(here.run, _load_signer(settings.aws_login)))
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
