"""Properties of a Java client that logs in with AWS keys (Amazon's library aws-msk-iam-auth).

Its classes are not loaded: their names only say which login is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_IAM = "software.amazon.msk.auth.iam"
_TOKEN_HANDLER = f"{_IAM}.IAMOAuthBearerLoginCallbackHandler"
MODULE = f"{_IAM}.IAMLoginModule"
MECHANISM = "AWS_MSK_IAM"
HANDLERS: Mapping[str, tuple[str, ...]] = {
    "sasl.client.callback.handler.class": (f"{_IAM}.IAMClientCallbackHandler", _TOKEN_HANDLER),
    "sasl.login.callback.handler.class": (_TOKEN_HANDLER,),
}
"""Property that names a Java class -> the classes that mean a login with AWS keys."""

OPTIONS: Mapping[str, str] = {
    "awsProfileName": "sasl_aws_profile",
    "awsRoleArn": "sasl_aws_role_arn",
    "awsRoleSessionName": "sasl_aws_role_session_name",
    "awsRoleExternalId": "sasl_aws_external_id",
    "awsRoleAccessKeyId": "sasl_aws_access_key",
    "awsRoleSecretAccessKey": "sasl_aws_secret_key",
    "awsRoleSessionToken": "sasl_aws_token",
}
"""Option of the login module -> the attribute of a provider block."""

IDLE = frozenset({"awsDebugCreds", "awsMaxBackOffTimeMs", "awsMaxRetries", "awsStsRegion"})
"""Options that do not change who logs in: how STS is asked, and what is logged."""


def uses_aws(properties: Mapping[str, str]) -> bool:
    """True if these properties log in with AWS keys, by Amazon's own mechanism or by OAUTHBEARER.
    Both are the same login for a broker of MSK."""
    if properties.get("sasl.mechanism", "").strip().upper() == MECHANISM:
        return True
    return any(properties.get(key, "").strip() == _TOKEN_HANDLER for key in HANDLERS)


def is_known_class(key: str, value: str) -> bool:
    """True if this property only says that AWS keys log in."""
    return value.strip() in HANDLERS.get(key, ())


def find_faults(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What options of the login module mean that a provider block does not, and what to do."""
    role, profile = options.get("awsRoleArn"), options.get("awsProfileName")
    if role and profile:
        # In Java the second one counts only if the first one gives no credentials.
        yield "awsProfileName and awsRoleArn exclude each other", "remove one of them"
    for name in options:
        if name.startswith("awsRole") and not role:
            yield f"its option {name} has no effect without awsRoleArn", "remove it"
