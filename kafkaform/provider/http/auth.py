"""The Authorization header of each call."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from ...core.errors import ConnectError
from ...core.secret import Secret
from .exchange import NotSent
from .settings import Auth, BasicLogin, BearerToken
from .tokens import TokenSource, fetch_token

MakeHeader = Callable[[], Secret | None]
"""The value of the header for a call that leaves now, None for no login. Raises NotSent."""


def open_login(auth: Auth | None) -> MakeHeader:
    """What makes the header. A token of OAuth is fetched with the first call, and again before it
    ends."""
    if auth is None:
        return lambda: None
    if isinstance(auth, BasicLogin):
        # RFC 7617 §2.1: UTF-8, which every server must expect that says so, and most expect anyway.
        pair = f"{auth.username}:{auth.password.reveal()}".encode()
        basic = Secret("Basic " + b64encode(pair).decode())
        return lambda: basic
    if isinstance(auth, BearerToken):
        bearer = Secret("Bearer " + auth.token.reveal())
        return lambda: bearer
    # Calls are made in threads of their own. Secrets are masked by context (`core.secret`), and
    # a new token must be known in the context of the run.
    source = TokenSource(partial(copy_context().run, fetch_token, auth))
    return partial(_make_token_header, source)


def _make_token_header(source: TokenSource) -> Secret:
    try:
        return Secret("Bearer " + source.get_token().text.reveal())
    except ConnectError as error:
        raise NotSent(error.message, error.advice) from None
