"""Why a connection failed, and what to do: one table for TLS, and one for everything else."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from http.client import BadStatusLine, NotConnected

from msgspec import Struct

from ...core.secret import mask_secrets

MAX_CAUSE = 300
"""Characters of a cause: it can repeat what a server sent."""


class Failure(Struct, frozen=True):
    """cause: one sentence without its final stop, without secrets, of bounded length."""

    cause: str
    advice: str


_LOOK = "check url and the network, and whether the server runs"
_PORT = "check host and port in url, and whether the server runs"
_LOGIN = "give client_cert and client_key"
_DOUBT = "; if it requires a client certificate, check that it trusts that of client_cert"
_OTHER_LOGIN = "give client_cert and client_key of an authority that the server trusts"

_ALERTS = (
    "CERTIFICATE_REQUIRED",
    "UNKNOWN_CA",
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REVOKED",
    "UNSUPPORTED_CERTIFICATE",
    "HANDSHAKE_FAILURE",
)
"""Alerts by which a server refuses the certificate of its client, or the lack of one (RFC 8446
§6.2). With TLS 1.3 they come after the handshake; Java's servers send BAD_CERTIFICATE for none."""
_MIX_UPS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH")
"""OpenSSL's reasons for an answer that is not TLS."""
_REASONS: Mapping[str, Failure] = {
    "PROTOCOL_VERSION": Failure(
        "the server has no version of TLS that is safe", "switch on TLS 1.2 or 1.3 at the server"
    ),
    "UNSUPPORTED_PROTOCOL": Failure(
        "the server has no version of TLS that is safe", "switch on TLS 1.2 or 1.3 at the server"
    ),
    "UNRECOGNIZED_NAME": Failure(
        "the server has no certificate for this host name", "check the host name in url"
    ),
}
"""Part of OpenSSL's reason -> what it means."""
_CLOSES = Failure(
    "the server closes each connection after one answer, so nothing proves which system gives the "
    "next one",
    "let the server, or the proxy before it, keep connections open (HTTP keep-alive)",
)
_TLS_RECORDS = ("\x15\x03", "\x16\x03")
"""How TLS answers to something else: an alert or a handshake (RFC 8446 §5.1)."""
_ERRORS: Mapping[int, str] = {
    errno.ECONNREFUSED: _PORT,
    errno.EHOSTUNREACH: "check the host in url, and the network",
    errno.ENETUNREACH: "check the host in url, and the network",
}


def explain_failure(error: BaseException, *, tls: bool, certified: bool) -> Failure:
    """The failure of a connection to a server of HTTP. tls: the connection uses it; certified: it
    has a client certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        cause = f"its certificate is refused: {error.verify_message}"
        return Failure(cause, advise_certificate(error.verify_message))
    if isinstance(error, ssl.SSLError):
        failure = _explain_alert(_read_reason(error), certified=certified)
        if failure is not None:
            return failure
    if isinstance(error, TimeoutError):
        return Failure("nothing came in time", _LOOK)
    if isinstance(error, NotConnected):
        return _CLOSES
    if isinstance(error, BadStatusLine) and str(error).startswith(_TLS_RECORDS):
        return Failure("the server speaks TLS, and url says http", "write https:// in url")
    advice = _choose_advice(error)
    if tls and isinstance(error, ConnectionResetError | BrokenPipeError | ssl.SSLEOFError):
        # Who closes a connection at once can lose its own alert.
        advice += _DOUBT if certified else f"; if it requires a client certificate, {_LOGIN}"
    return Failure(describe_cause(error), advice)


def _explain_alert(reason: str, *, certified: bool) -> Failure | None:
    if any(name in reason for name in _MIX_UPS):
        return Failure(
            "the server there does not speak TLS",
            "write the port of its https listener into url; or http://, if it has none and others "
            "on the network may read the traffic",
        )
    alert = next((name for name in _ALERTS if name in reason and "ALERT" in reason), None)
    if alert == "HANDSHAKE_FAILURE" and certified:
        return None
    if alert is not None and not certified:
        return Failure("the server requires a client certificate", _LOGIN)
    if alert == "CERTIFICATE_EXPIRED":
        return Failure("our client certificate has expired", "renew client_cert")
    if alert is not None:
        alert_text = alert.lower().replace("_", " ")
        return Failure(f"the server refuses our client certificate: {alert_text}", _OTHER_LOGIN)
    return next((failure for name, failure in _REASONS.items() if name in reason), None)


def advise_certificate(
    refused: str, argument: str = "url", server: str = "server", elsewhere: str = ""
) -> str:
    """What to do about a certificate that OpenSSL does not accept. refused: OpenSSL's reason;
    argument: the one with the address; elsewhere: the other places of the name."""
    if "mismatch" in refused or "not valid for" in refused:
        return (
            f"write the name from the certificate into {argument}{elsewhere}, or have a "
            "certificate issued for this name"
        )
    if "expired" in refused or "not yet valid" in refused:
        return f"have the {server}'s certificate renewed, and check the clock of this computer"
    return f"give the certificate of the {server}'s authority in ca_cert"


def _choose_advice(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return "check the host name in url"
    if isinstance(error, OSError) and str(error).startswith("Tunnel connection failed"):
        return "check the proxy in https_proxy, and its login"
    number = error.errno if isinstance(error, OSError) else None
    return _ERRORS.get(number or 0, _LOOK)


def _read_reason(error: BaseException) -> str:
    """OpenSSL's name for the cause, empty if there is none."""
    return str(getattr(error, "reason", None) or "") if isinstance(error, ssl.SSLError) else ""


def describe_cause(error: BaseException) -> str:
    """One sentence, without secrets, of bounded length."""
    text = (
        _read_reason(error)
        or getattr(error, "strerror", None)
        or str(error)
        or type(error).__name__
    )
    return mask_secrets(" ".join(str(text).split()))[:MAX_CAUSE]
