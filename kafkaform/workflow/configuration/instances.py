"""The provider instances of a configuration: their connections, and the systems that they reach.

`KAFKAFORM_<INSTANCE>_<ATTRIBUTE>` sets what a provider block leaves out, so that one configuration
serves every place that it is applied from.

Each instance must reach another system. State and plan know an object by its provider instance:
with two instances of one system, a plan could adopt an object through one of them and destroy it
through the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Severity
from ...core.errors import ConfigurationError, OtherSystem
from ...core.resource import ProviderConfig
from ...core.schema import BOOL, STRING, AttributeSchema, ObjectSchema, list_of
from ...core.value import FrozenMap, SecretRef, Value
from ...core.words import Words
from ...language.evaluate.providers import ProviderInfo
from ...provider.contract import Provider, Secrets, Session

Opener = Callable[[Provider, ProviderConfig, Secrets], Session]
"""Opens a session of a provider for one of its blocks. Raises as `Provider.open` does."""
PREFIX = "KAFKAFORM_"
_OTHER = re.compile(r"[^A-Z0-9]")


def open_session(provider: Provider, block: ProviderConfig, secrets: Secrets) -> Session:
    """Open a session that nobody else uses: the opener of every command about one folder."""
    return provider.open(block.instance, block.config, secrets)


def name_variable(instance: str, attribute: str) -> str:
    """The variable for an attribute of a provider block: KAFKAFORM_KAFKA_EU_CA_CERT for `kafka.eu`
    and `ca_cert`. A key is one more word: KAFKA_REGION_EU stands for `kafka.region["eu"]`."""
    plain = instance.replace('["', ".").removesuffix('"]')
    return PREFIX + _OTHER.sub("_", f"{plain}_{attribute}".upper())


def parse_value(attribute: AttributeSchema, source: str, text: str | None) -> Value:
    """The value of a text: a bool, a list of words between commas, or the text itself."""
    if text is None:
        return attribute.default
    # Only the reference goes on, as from a file; the secret itself is read when something connects.
    if attribute.secret:
        return SecretRef("env", source)
    if attribute.type == list_of(STRING):
        return tuple(item.strip() for item in text.split(","))
    if attribute.type == BOOL:
        return text.strip().lower() == "true"
    return text


def find_misreading(attribute: AttributeSchema, source: str, text: str) -> Iterator[Diagnostic]:
    """Why a text is not a value of the attribute."""
    # Taking `yes` for false without a word could switch a protection off.
    choices = ("true", "false") if attribute.type == BOOL else attribute.choices
    word = text.strip().lower() if attribute.type == BOOL else text
    if choices and word not in choices:
        yield Diagnostic(
            Severity.ERROR,
            f"the environment variable {source} has a value that {attribute.name} cannot have",
            advice=f"It is one of: {', '.join(map(str, choices))}.",
        )


def complete_provider(
    info: ProviderInfo, environ: Mapping[str, str], *, offline: bool
) -> ProviderInfo:
    """The provider, whose blocks need not set what the environment sets.

    offline: nothing connects, so nothing needs to be set at all.
    """
    optional = {
        name: replace(attribute, required=False)
        for name, attribute in info.schema.attributes.items()
    }

    def connect(
        instance: str, block: FrozenMap
    ) -> tuple[FrozenMap, tuple[tuple[str, Diagnostic], ...]]:
        completed, faults = complete_connection(info.schema, environ, instance, block)
        return completed, () if offline else faults

    return replace(info, schema=replace(info.schema, attributes=optional), connect=connect)


def complete_connection(
    schema: ObjectSchema, environ: Mapping[str, str], instance: str, config: FrozenMap
) -> tuple[FrozenMap, tuple[tuple[str, Diagnostic], ...]]:
    """The arguments of a block, completed from the environment, and a fault by argument for those
    that are still missing or cannot be read."""
    environment_values: dict[str, Value] = {}
    faults: list[tuple[str, Diagnostic]] = []
    for name, attribute in schema.attributes.items():
        source = name_variable(instance, name)
        text = environ.get(source)
        # What the block says wins. A value that equals the default counts as left out, because a
        # block that leaves it out is evaluated to the same.
        if text and config.get(name) == attribute.default:
            environment_values[name] = parse_value(attribute, source, text)
            faults += ((name, fault) for fault in find_misreading(attribute, source, text))
        elif attribute.required and config.get(name) is None:
            fault = Diagnostic(
                Severity.ERROR,
                f'provider "{instance}" needs "{attribute.name}"',
                advice=f"{attribute.doc} Write it in the block, or set "
                f"{name_variable(instance, attribute.name)}.",
            )
            faults.append((name, fault))
    return FrozenMap({**config, **environment_values}), tuple(faults)


class Systems(Struct, frozen=True):
    """The provider instances of one configuration that were opened."""

    scopes: dict[str, tuple[ProviderConfig, str]] = field(default_factory=dict)
    """Instance -> its block, and the scope id that answered."""

    def enter(self, block: ProviderConfig, session: Session) -> Session:
        """Accept a session that was just opened for this block, or close it and raise as `note`
        does."""
        try:
            self.note(block, session.facts.scope_id, session.words)
        except (ConfigurationError, OtherSystem):
            session.close()
            raise
        return session

    def note(self, block: ProviderConfig, scope: str, words: Words) -> None:
        """Remember which system answered. Raises ConfigurationError if another instance has the
        same system, OtherSystem if this instance had another system before."""
        system = words.system
        for instance, (config, recorded_scope) in self.scopes.items():
            if instance != block.instance and recorded_scope == scope:
                raise ConfigurationError(
                    f"provider instances {_describe_block(config, words)} and "
                    f"{_describe_block(block, words)} are the "
                    f"same {system}, {scope}",
                    "An object of it could be recorded, changed and deleted twice. Correct the "
                    "addresses if they should differ. Otherwise keep one of the two provider "
                    "blocks, let all resources and data sources use it, and take rows of the "
                    "other one out of the state with `kafkaform state rm`.",
                )
        # A DNS name or a proxy can lead to another system when a command connects a second time.
        _, before = self.scopes.get(block.instance, (block, scope))
        if before != scope:
            raise OtherSystem(
                f"provider instance {_describe_block(block, words)} answered as {system} "
                f"{before} at first, "
                f"and answers as {system} {scope} now",
                f"Nothing was sent. Find out what leads to two {system}s there, then run the same "
                "command again.",
            )
        self.scopes[block.instance] = block, scope


def _describe_block(block: ProviderConfig, words: Words) -> str:
    """The name of a block, its place, and where it connects to."""
    address = block.config.get(words.address)
    named = ", ".join(map(str, address)) if isinstance(address, tuple) else str(address or "")
    return f'"{block.instance}" ({", ".join(filter(None, (str(block.range), named)))})'
