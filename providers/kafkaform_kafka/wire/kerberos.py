"""SASL/GSSAPI with Kerberos credentials of our choice (RFC 4752): a keytab or a ticket cache.

kafka-python's own mechanism takes the default credentials of the process only. This one asks for
tickets in the name of the configured principal.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kafka.net.sasl.abc import SaslMechanism

from kafkaform.core.errors import ConfigurationError
from kafkaform.core.installation import render_extra_command
from kafkaform.core.storage import require_regular_file

from ..connection.kerberos import KerberosSettings

_NO_LAYER = b"\x01\x00\x00\x00"
"""Security layer: none, and so no size of messages."""


class TicketError(Exception):
    """There is no ticket, or the broker's answer does not fit it."""


class KerberosExchange(SaslMechanism):  # type: ignore[misc]  # kafka-python has no types
    """One login of one connection."""

    # Three parts (RFC 4752 §3.1): tokens until the context is complete on our side, an empty
    # message if the last token was the broker's, and the choice of a security layer.

    def __init__(self, gssapi: Any, settings: KerberosSettings, host: str) -> None:
        """gssapi: the package; host: the broker's name in its principal. Raises TicketError."""
        self._errors = gssapi.exceptions.GSSError
        self._chosen = self._done = False
        with self._explain_errors():
            service = f"{settings.service}@{host}"
            self._context = gssapi.SecurityContext(
                name=gssapi.Name(service, gssapi.NameType.hostbased_service),
                creds=_find_credentials(gssapi, settings),
                mech=gssapi.MechType.kerberos,
                usage="initiate",
            )
            self._next: bytes = self._context.step() or b""

    def auth_bytes(self) -> bytes:
        """The next message to the broker."""
        return self._next

    def receive(self, auth_bytes: bytes) -> None:
        """Take the broker's answer to it. Raises TicketError."""
        with self._explain_errors():
            if not self._context.complete:
                self._next = self._context.step(auth_bytes) or b""
            elif not self._chosen:
                offer = self._context.unwrap(auth_bytes).message
                if not offer[0] & _NO_LAYER[0]:
                    raise TicketError("Kerberos: the broker demands a security layer")
                self._next = self._context.wrap(_NO_LAYER, False).message
                self._chosen = True
            else:
                self._done = True

    def is_done(self) -> bool:
        """True once the broker has accepted the choice."""
        return self._done

    def is_authenticated(self) -> bool:
        """The same: the broker refuses with an error."""
        return self._done

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise TicketError(f"Kerberos: {_render_error(error)}") from None


def prepare_kerberos(settings: KerberosSettings) -> Callable[[str], KerberosExchange]:
    """A function that makes a login from the host of a broker. Raises ConfigurationError if the
    package or the keytab is missing."""
    try:
        import gssapi  # noqa: PLC0415  # an extra package, which only Kerberos logins need
    except (ImportError, OSError) as error:
        raise ConfigurationError(
            f"sasl_mechanism gssapi needs the Python package gssapi: {error}",
            f"Run `{render_extra_command('kerberos')}`. It needs a C compiler and the headers of "
            "MIT Kerberos (libkrb5-dev, krb5-devel).",
        ) from None
    _require_file("sasl_kerberos_keytab", settings.keytab)
    # A ticket cache has a type in front of its name; without one it is a file.
    kind, _, cache = (settings.ticket_cache or "").rpartition(":")
    if kind in ("", "FILE") and cache and Path(cache).exists():
        _require_file("sasl_kerberos_ticket_cache", cache)
    return partial(KerberosExchange, gssapi, settings)


def _require_file(attribute: str, path: str | None) -> None:
    """Raises ConfigurationError for what is no file that can be read: MIT Kerberos would wait for
    the other end of a pipe."""
    if path is None:
        return
    try:
        require_regular_file(path)
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ConfigurationError(
            f"{attribute} {path} cannot be read: {error.strerror}",
            "Check the path, and that this user can read the file.",
        ) from None


def _find_credentials(gssapi: Any, settings: KerberosSettings) -> Any:
    """Our credentials; None for the default ones of the process."""
    if not (settings.principal or settings.ticket_cache):
        return None
    name = None
    if settings.principal:
        name = gssapi.Name(settings.principal, gssapi.NameType.kerberos_principal)
    store = {"ccache": settings.ticket_cache} if settings.ticket_cache else {}
    if settings.keytab:
        # MIT Kerberos asks for tickets by itself, and again before they expire. In memory, so that
        # no other process finds them.
        store = {"client_keytab": settings.keytab, "ccache": f"MEMORY:{settings.principal}"}
    return gssapi.Credentials(name=name, usage="initiate", store=store or None)


def _render_error(error: Any) -> str:
    """The most exact text that the library has for an error."""
    # The general part says "unspecified failure" for almost everything; the mechanism's own part
    # has the cause.
    texts = [str(status) for status in error.get_all_statuses(error.min_code, False)]
    return "; ".join(filter(None, texts)) or str(error)
