"""A broker of Amazon MSK, as far as its login goes: a proxy before a real broker that checks AWS
signatures and logs in with a token that the broker knows.

Kafka's own validator reads JSON web tokens only. All the rest is the broker's: how a connection
logs in, when it must log in again (KIP-368), and what a refusal looks like.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replaced

from ..proxy.frames import Asked, read_body, with_body
from ..proxy.proxy import Proxy, proxying
from . import aws
from .doors import Doors

_BEGIN, _END = b"n,,\x01auth=Bearer ", b"\x01\x01"


@dataclass
class Msk:
    """proxy: where clients connect; logins: the access key of each login, in order; tokens: what
    they sent; forged: why a token was not accepted; barred: this key is refused, as by a policy."""

    doors: Doors
    proxy: Proxy
    logins: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    forged: list[str] = field(default_factory=list)
    barred: str = ""

    def exchange(self, request: Asked) -> bytes:
        """The request for the broker: in a login, its own kind of token for an AWS signature."""
        if request.api != "SaslAuthenticate":
            return request.data
        body = read_body(request)
        if not body.auth_bytes.startswith(_BEGIN):
            return request.data  # the client has heard of its failure (RFC 7628 §3.2.3)
        token = body.auth_bytes.removeprefix(_BEGIN).removesuffix(_END).decode()
        self.tokens.append(token)
        try:
            keys = aws.check_token(token)
        except aws.Forged as error:
            self.forged.append(str(error))
            return request.data  # the broker refuses what is no JSON web token
        self.logins.append(keys.access)
        audience = "another" if keys.access == self.barred else "kafka"
        given = self.doors.tokens.make(aud=audience).encode()
        return with_body(request, replaced(body, auth_bytes=_BEGIN + given + _END))


@contextmanager
def serving_msk(doors: Doors, tls: ssl.SSLContext | None = None) -> Iterator[Msk]:
    """Serve until the block ends. tls: what clients are shown."""
    with proxying(doors.ports["OAUTH"], tls=tls) as proxy:
        served = Msk(doors, proxy)
        proxy.translate = served.exchange
        yield served
