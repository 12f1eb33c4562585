"""What plugins are called (PluginUtils.aliases of Kafka Connect), what they declare as the rules of
connectors see it, and what workers know besides.

Plugins also say which configs are secrets. The REST API returns every config as plain text
(KIP-26), passwords too. A secret must not get into a state, plan or log, so it has to be
recognised when it is read. Three things say so: the type PASSWORD in a plugin's definition, the
name, and a login in a URL.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    Identity,
    Observed,
    ProviderFacts,
    Sweep,
)
from kafkaform.core.value import FrozenMap

from .rest import Definition


class ConnectFacts(ProviderFacts, frozen=True, kw_only=True):
    """What the workers say about themselves when a session begins."""

    version: str = ""
    """The version of a worker, in its own words (`GET /`)."""
    release: tuple[int, int] | None = None
    """The Kafka release that the version means; None if it means none."""
    plugins: tuple[str, ...] = ()
    """The classes of connectors that a worker has (KIP-769); none if the user may not see them."""


SUFFIX = "Connector"
_LISTING, _SOURCE = "kafka_connect_definition:", "kafka_connect_source:"

GIVEN = frozenset(
    {
        "config.action.reload",
        "connector.plugin.version",
        "errors.deadletterqueue.context.headers.enable",
        "errors.deadletterqueue.topic.name",
        "errors.deadletterqueue.topic.replication.factor",
        "errors.log.enable",
        "errors.log.include.messages",
        "errors.retry.delay.max.ms",
        "errors.retry.timeout",
        "errors.tolerance",
        "exactly.once.support",
        "header.converter",
        "header.converter.plugin.version",
        "key.converter",
        "key.converter.plugin.version",
        "offsets.storage.topic",
        "predicates",
        "tasks.max",
        "tasks.max.enforce",
        "topic.creation.groups",
        "topics",
        "topics.regex",
        "transaction.boundary",
        "transaction.boundary.interval.ms",
        "transforms",
        "value.converter",
        "value.converter.plugin.version",
    }
)
"""Configs of every connector, or of every source or sink (ConnectorConfig, SourceConnectorConfig,
SinkConnectorConfig). Workers of some versions leave them out of what a plugin declares."""
FREE = (
    "admin.override.",
    "consumer.override.",
    "header.converter.",
    "key.converter.",
    "predicates.",
    "producer.override.",
    "topic.creation.",
    "transforms.",
    "value.converter.",
)
"""How configs begin that are for other parts than the connector's plugin."""
MIRROR_FREE = ("admin.", "consumer.", "producer.", "source.", "target.")
"""How configs begin that MirrorMaker's connectors hand to their clients (MirrorConnectorConfig)."""


def name_listing(class_: str) -> str:
    """The kind that only rules list: what the plugin with this name declares."""
    return f"{_LISTING}{class_}"


def read_listing(kind: str) -> str | None:
    """The plugin of such a kind, None for any other kind."""
    return kind.removeprefix(_LISTING) if kind.startswith(_LISTING) else None


def name_source(connector: str) -> str:
    """The kind of a listing that has this connector, and nothing only if there is none: workers
    leave out of the listing of all what none of them has started yet."""
    return f"{_SOURCE}{connector}"


def read_source(kind: str) -> str | None:
    """The connector of such a kind, None for any other kind."""
    return kind.removeprefix(_SOURCE) if kind.startswith(_SOURCE) else None


def make_listing(instance: str, class_: str, depth: Depth, definition: Definition | Fault) -> Sweep:
    """The listing of what a plugin declares: `configs`, all of it, and `passwords`, which are
    secrets. definition: without names if no worker tells it; a Fault if nobody answered."""
    kind = name_listing(class_)
    if isinstance(definition, Fault):
        return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, definition))
    items: tuple[Observed, ...] = ()
    if definition.names:
        attributes = FrozenMap(
            configs=tuple(sorted(definition.names)), passwords=tuple(sorted(definition.passwords))
        )
        items = (Observed(Identity(instance, kind, class_), attributes),)
    return Sweep(kind, depth, items, Coverage(CoverageKind.COMPLETE), whole=True)


def list_aliases(class_: str) -> tuple[str, str, str]:
    """The full name of a connector's class, its simple name, and that without `Connector`."""
    simple = class_.rpartition(".")[2]
    return class_, simple, simple.removesuffix(SUFFIX)


def finds_plugin(name: str, classes: Iterable[str]) -> bool:
    """True if workers with these plugins find one by this name."""
    return any(name in list_aliases(plugin_class) for plugin_class in classes)


def is_same_plugin(name: str, other_name: str, classes: Iterable[str] = ()) -> bool:
    """True for two names that can be those of one plugin. classes: those that the workers have,
    none if that is unknown."""
    pair = [
        {plugin_class for plugin_class in classes if text in list_aliases(plugin_class)}
        for text in (name, other_name)
    ]
    if all(pair):
        return pair[0] == pair[1]
    return name in list_aliases(other_name) or other_name in list_aliases(name)


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
