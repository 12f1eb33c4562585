"""Sign login tokens for Amazon MSK with AWS credentials. Only this module imports botocore and
Amazon's signer, which the aws extra installs.

A token is the URL of a request `kafka-cluster:Connect`, signed for 15 minutes (AWS Signature
Version 4), in base64. Nothing is sent to AWS, unless the credentials come from there: a role, IAM
Identity Center, or the metadata of the computer.
"""

from __future__ import annotations

import os
from typing import NoReturn

from aws_msk_iam_sasl_signer.MSKAuthTokenProvider import (
    generate_auth_token_from_credentials_provider,
)
from botocore import exceptions
from botocore.config import Config
from botocore.credentials import CredentialProvider, Credentials, ReadOnlyCredentials
from botocore.session import Session

from kafkaform.core.secret import Secret, remember_secret
from kafkaform.provider.http.tokens import LoginToken, make_error

from .login_attributes import AwsLogin

PATIENCE = 4.0
"""Seconds for AWS STS to connect, and to answer."""
_CLIENTS = Config(
    connect_timeout=PATIENCE, read_timeout=PATIENCE, retries={"total_max_attempts": 1}
)
_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, name a profile in "
    "sasl_aws_profile, or run on a computer that has a role"
)
_TRY = "try `aws sts get-caller-identity` with the same profile, which names the cause"
_SIGN_IN = "run `aws sso login` or `aws login` with this profile, and then this command again"
_PARTIAL = "AWS credentials are incomplete: {cred_var} is missing ({provider})"
_UNREACHABLE = "AWS cannot be reached to get credentials"
_NETWORK = "check the network, its proxy, and sasl_aws_region"
_CAUSES: tuple[tuple[type[Exception], str, str], ...] = (
    (
        exceptions.ProfileNotFound,
        "there is no AWS profile {profile}",
        "correct sasl_aws_profile or AWS_PROFILE; `aws configure list-profiles` shows what there "
        "is",
    ),
    (exceptions.PartialCredentialsError, _PARTIAL, "set it, or remove the other part"),
    (
        exceptions.CredentialRetrievalError,
        "AWS credentials cannot be read ({provider})",
        _TRY,
    ),
    (exceptions.SSOError, "the sign-in to AWS IAM Identity Center has expired", _SIGN_IN),
    (exceptions.TokenRetrievalError, "the sign-in to AWS has expired ({provider})", _SIGN_IN),
    (exceptions.LoginError, "the sign-in to AWS has expired", _SIGN_IN),
    (exceptions.ConfigParseError, "the AWS configuration {path} cannot be read", "correct it"),
    (
        exceptions.MissingDependencyException,
        "AWS credentials of this kind need another Python package",
        "run `pip install 'botocore[crt]'`",
    ),
    (exceptions.ConnectionError, _UNREACHABLE, _NETWORK),
    (exceptions.HTTPClientError, _UNREACHABLE, _NETWORK),
)
"""Error of botocore -> what happened, with the error's own arguments, and what to do."""

# Other arguments of an error are not repeated: they can be the output of a program that prints
# credentials, or the request with the session token.
_HARMLESS = ("profile", "provider", "cred_var", "path")

_BROKEN = (LookupError, OSError, ValueError)
"""What botocore raises for files and answers that make no sense."""


class AwsSigner:
    """Signs one token after the other. Roles and temporary credentials are renewed by botocore."""

    def __init__(self, login: AwsLogin) -> None:
        self._login = login
        self._session: Session | None = None

    def sign_token(self) -> LoginToken:
        """A token that is valid for 15 minutes. Raises ConnectError without a secret."""
        try:
            if self._session is None:
                self._session = _open_session(self._login)
            keys = _find_keys(self._session, self._login)
            text, expires = generate_auth_token_from_credentials_provider(
                _find_region(self._session, self._login), _GivenKeys(keys)
            )
        except (exceptions.BotoCoreError, exceptions.ClientError, *_BROKEN) as error:
            _raise_cause(error)
        return LoginToken(Secret(text), expires / 1000)


class _GivenKeys(CredentialProvider):  # type: ignore[misc]  # botocore has no types
    """Gives the signer the credentials that were found already."""

    METHOD = "kafkaform"

    def __init__(self, keys: ReadOnlyCredentials) -> None:
        super().__init__()
        self._keys = keys

    def load(self) -> Credentials:
        return Credentials(*self._keys[:3])


def _open_session(login: AwsLogin) -> Session:
    session = Session(profile=login.profile)
    # Also for the roles of profiles, which botocore assumes with a client of its own.
    session.set_default_client_config(_CLIENTS)
    if login.access_key and login.secret_key:
        token = login.session_token.reveal() if login.session_token else None
        session.set_credentials(login.access_key, login.secret_key.reveal(), token)
        return session
    # A profile with mfa_serial makes botocore ask at the terminal, in whichever thread needs a
    # token. There is no other way to say that nobody answers.
    session.get_component("credential_provider").get_provider("assume-role")._prompter = _refuse_mfa
    return session


def _refuse_mfa(_: str) -> NoReturn:
    raise make_error(
        "the AWS profile asks for an MFA code",
        "get temporary credentials with the AWS CLI, and give them as AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    )


def _find_keys(session: Session, login: AwsLogin) -> ReadOnlyCredentials:
    """The credentials that sign now. Raises ConnectError if there are none."""
    credentials = session.get_credentials()
    if credentials is None:
        raise make_error("there are no AWS credentials", _CREDENTIALS)
    # Frozen, because botocore can renew them between the reading of one part and the next.
    keys: ReadOnlyCredentials = credentials.get_frozen_credentials()
    _remember(keys)
    return _assume_role(session, login) if login.role else keys


def _assume_role(session: Session, login: AwsLogin) -> ReadOnlyCredentials:
    client = session.create_client("sts", region_name=_find_region(session, login))
    external = {"ExternalId": login.external_id} if login.external_id else {}
    answer = client.assume_role(RoleArn=login.role, RoleSessionName=login.session_name, **external)[
        "Credentials"
    ]
    keys = ReadOnlyCredentials(
        answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"]
    )
    _remember(keys)
    return keys


def _remember(keys: ReadOnlyCredentials) -> None:
    """Mask these credentials in all output."""
    for secret in (keys.secret_key, keys.token):
        if secret:
            remember_secret(secret)


def _find_region(session: Session, login: AwsLogin) -> str:
    """The region to sign for. Raises ConnectError if nothing says it."""
    region = login.region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
    if not region:
        raise make_error(
            "the AWS region of the cluster is unknown",
            "set sasl_aws_region, or AWS_REGION in the environment",
        )
    return str(region)


def _raise_cause(error: Exception) -> NoReturn:
    """Raise ConnectError with the cause."""
    if isinstance(error, exceptions.ClientError):
        code = error.response.get("Error", {}).get("Code", "without a code")
        raise make_error(
            f"AWS refused {error.operation_name}: {code}",
            "check the credentials, sasl_aws_role_arn, sasl_aws_external_id, and that the role "
            "trusts the identity that assumes it",
        ) from None
    for kind, sentence, advice in _CAUSES:
        if isinstance(error, kind):
            arguments = getattr(error, "kwargs", {})
            harmless = {name: str(arguments[name]) for name in _HARMLESS if name in arguments}
            raise make_error(sentence.format_map(_Known(harmless)), advice) from None
    raise make_error(f"AWS credentials cannot be used ({type(error).__name__})", _TRY) from None


class _Known(dict[str, str]):
    """Fills a sentence, also if the error does not have the argument."""

    def __missing__(self, name: str) -> str:
        return f"unknown {name}"
