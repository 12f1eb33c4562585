"""Decide which configs of a connector are secrets.

The REST API returns every config as plain text (KIP-26), passwords too. What is a secret must not
get into a state, plan or log, so it has to be recognised when it is read. Three things say so: the
type PASSWORD in a plugin's definition of its configs, the name, and a login in a URL.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

# The ends of names. Many connectors declare their passwords as plain strings. `…token.endpoint.url`
# and `…credentials.provider.class` are no secrets, so a word in the middle says nothing.
_NAME = re.compile(
    r"""(?:^|[._-]|(?-i:(?<=[a-z])(?=[A-Z])))
    (?:password|passwd|passphrase|secret|token|credentials?|credentials[._-]json
    |api[._-]?key|private[._-]?key|account[._-]?key|access[._-]?key|secret[._-]?key
    |secret[._-]?access[._-]?key|keystore[._-]key|jaas[._-]config|user[._-]info
    |connection[._-]string|sas[._-]?token|pwd)$""",
    re.IGNORECASE | re.VERBOSE,
)
_LOGIN = re.compile(r"://[^/\s:@?#]*:[^/\s@?#]+@|[?&;](?:password|pwd|secret)=[^&;]", re.IGNORECASE)
"""`scheme://user:password@host`, or a password among the parameters of a URL."""

_REFERENCE = r"\$\{[^{}]*:[^{}]*\}"
"""`${PROVIDER:PATH:KEY}`: the worker asks a config provider for the value (KIP-297)."""
_REFERENCES = re.compile(_REFERENCE)
_ONLY_REFERENCES = re.compile(rf"(?:{_REFERENCE})+")
_IN_JAAS = re.compile(
    r"\b\w*(?:password|secret|token|passphrase)\w*\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s;]+)",
    re.IGNORECASE,
)
"""`password="…"`, an option of a JAAS entry."""
_MASKED = re.compile(r"\*{3,}|\[hidden\]|\[HIDDEN\]")


def is_reference(value: str) -> bool:
    """True if the worker takes all that is secret in this text from its config providers."""
    if _ONLY_REFERENCES.fullmatch(value):
        return True
    options = [option.strip("\"'") for option in _IN_JAAS.findall(value)]
    return bool(options) and all(_ONLY_REFERENCES.fullmatch(option) for option in options)


# All connectors of a class have the same names, and a plan looks at each of them.
@lru_cache(maxsize=10_000)
def is_secret_name(key: str) -> bool:
    """True if a config with this name usually is a secret."""
    return _NAME.search(key) is not None


def is_secret(key: str, value: str, passwords: Collection[str] = ()) -> bool:
    """True if the value of this config must not be seen. passwords: the configs that their plugins
    declare as PASSWORD."""
    if _has_login(value):
        return True
    return (key in passwords or is_secret_name(key)) and not is_reference(value)


def _has_login(value: str) -> bool:
    # Most values are neither URLs nor references, and a plan looks at thousands of them.
    if "://" not in value and "=" not in value:
        return False
    plain = _REFERENCES.sub("", value) if "${" in value else value
    return _LOGIN.search(plain) is not None


def is_masked(value: str) -> bool:
    """True for what some services show in place of a secret. Nobody must send it back."""
    return _MASKED.fullmatch(value) is not None


def describe_plain_secret(key: str) -> str:
    """What is wrong with a secret among the plain configs."""
    return f'config["{key}"] would be a secret in plain text'


def advise_secret(key: str) -> str:
    """What to do about it."""
    return (
        f'Write it as secret_config = {{ "{key}" = secret_env("…") }}, or as '
        "$${PROVIDER:PATH:KEY} if the workers have a config provider."
    )
