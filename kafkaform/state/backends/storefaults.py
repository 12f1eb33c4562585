"""Explain the refusals of object stores: one table of causes with advice.

obstore distinguishes few failures by class and the rest by text. The text is searched and never
shown: it contains addresses, and an address of Azure can contain a signature.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from obstore.exceptions import BaseError

from ...core.errors import StorageError

CREDENTIALS = (
    "Set them in the environment (AWS_ACCESS_KEY_ID ..., GOOGLE_APPLICATION_CREDENTIALS, "
    "AZURE_STORAGE_ACCOUNT_KEY ...) or run on a computer that gets them from its cloud."
)
RIGHTS = "Give this identity the rights that docs/remote-state.md lists, on this prefix."
REGION = "Set `region` to the region of the bucket."
CLOCK = "Set the clock of this computer."
LATER = "Run the command again. If that does not help, check the status page of the store."
NETWORK = "Check the endpoint, the network and the proxy settings of this computer."

CAUSES: tuple[tuple[str, str, str], ...] = (
    (r"NoSuchBucket|ContainerNotFound|bucket does not exist", "there is no such bucket",
     "Create it first (kafkaform creates no buckets), or correct its name."),
    (r"169\.254\.\d+\.\d+|metadata\.google\.internal|[Cc]redential[s ]+(not found|provider)"
     r"|AWS_WEB_IDENTITY|sts\.", "no credentials were found", CREDENTIALS),
    (r"ExpiredToken|TokenRefreshRequired", "the credentials have expired", CREDENTIALS),
    (r"InvalidAccessKeyId|SignatureDoesNotMatch|Unauthenticated|status code: 401",
     "the credentials are not accepted", CREDENTIALS),
    (r"RequestTimeTooSkewed", "the clock of this computer is wrong", CLOCK),
    (r"PermanentRedirect|AuthorizationHeaderMalformed|redirect without LOCATION"
     r"|IllegalLocationConstraint", "the bucket is in another region", REGION),
    (r"AccessDenied|PermissionDenied|status code: 403|AuthorizationFailure",
     "permission denied", RIGHTS),
    (r"SlowDown|status code: (429|503)|ServerBusy", "the store is overloaded", LATER),
    (r"status code: 5\d\d", "the store reports an internal error", LATER),
    (r"status code: 304|status code: 409|status code: 412|AlreadyExists|Precondition|NotModified",
     "the store refused a write although its condition is met",
     "Use a store that honours If-Match and If-None-Match; `kafkaform init` checks it."),
    (r"kind: Timeout|TimedOut|timed out", "no answer came in time", NETWORK),
    (r"dns error|failed to lookup|Name or service not known",
     "the name of the endpoint cannot be resolved", NETWORK),
    (r"certificate|InvalidCertificate|UnknownIssuer", "its certificate is not trusted",
     "Use an endpoint with a certificate that this computer trusts."),
    (r"URL scheme is not allowed|BadScheme", "the endpoint is not encrypted",
     "Use https://, or set allow_http = true for a store in your own network."),
    (r"kind: Connect|ConnectionRefused|ConnectionReset|error sending request|connection closed"
     r"|IncompleteMessage|kind: (Request|Interrupted|Decode)", "the connection failed", NETWORK),
)  # fmt: skip
UNSURE = re.compile(
    r"status code: (304|408|409|412|429|5\d\d)|HTTP error|HttpError|ETag Header missing"
    r"|^(AlreadyExists|Precondition|NotModified)Error|kind: (Timeout|Connect|Request|Decode)"
)
"""Failures after which a write may have happened, or may succeed the next time."""
NAMELESS = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
"""Failures that look like a missing object, but are about the whole bucket."""


class NoSuchObject(Exception):
    """The store says that there is no such object."""


class Unclear(Exception):
    """Nobody knows whether a write happened, or it may succeed the next time."""

    def make_error(self, task: str) -> StorageError:
        """The error to show if no attempt succeeded."""
        return _make_store_error(task, str(self))


class ConditionFailed(Unclear):
    """The store says that the condition of a write is not met. The object shows why."""


@contextlib.contextmanager
def translate_errors(task: str) -> Iterator[None]:
    """Turn what obstore raises into NoSuchObject, Unclear or StorageError."""
    try:
        yield
    except FileNotFoundError as error:
        if NAMELESS.search(str(error)):
            raise _make_store_error(task, str(error)) from None
        raise NoSuchObject from None
    except (BaseError, OSError, ValueError) as error:
        text = f"{type(error).__name__} {error}"
        # Missing credentials look like a failed connection, to the address that gives them out in a
        # cloud. Repeating the request would not help.
        if not UNSURE.search(text) or re.search(CAUSES[1][0], text):
            raise _make_store_error(task, text) from None
        raise Unclear(text) from None


def _make_store_error(task: str, text: str) -> StorageError:
    for pattern, cause, advice in CAUSES:
        if re.search(pattern, text):
            return StorageError(f"{task}: {cause}", advice)
    return StorageError(f"{task}: the store gave an unexpected answer", NETWORK)
