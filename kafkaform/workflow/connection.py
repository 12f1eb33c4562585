r"""Resolve the connection to one cluster: a provider instance of a configuration, or the options of
Kafka's own tools (a bootstrap server, properties of the Java client).

Files of properties are read as `java.util.Properties.load` does: ISO 8859-1 with \uXXXX; `#` and
`!` begin comments; `=`, `:` or blanks end a key; a line that ends in an odd number of backslashes
continues in the next line, whose leading blanks do not count.

Commands that need no folder take the clusters of a repository file: `describe topics --provider
cluster.prod` from anywhere in the repository, and a fleet that has the repository's clusters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kafkaform_kafka.connection import java_files as java
from kafkaform_kafka.connection.java_files import PropertyFault
from kafkaform_kafka.connection.provider_block import find_address_fault, render_address

from .. import apply
from ..core.diagnostics import Diagnostic, Diagnostics, Range, Severity, has_errors, suggest
from ..core.errors import ConfigurationError, UsageError
from ..core.resource import Desired, ProviderConfig
from ..core.secret import PartialRepr, remember_secret
from ..core.storage import read_named_file
from ..core.text import make_sentence
from ..language.declare.blocks import ProviderBlock
from ..language.desired import Tree
from ..language.evaluate.providers import ProviderInfo, configure_provider
from ..provider.contract import Provider, Secrets, Session
from ..provider.registry import Registry
from ..render.text import inline
from ..syntax.nodes import Block
from .configuration.evaluation import Configuration, DataAnswers, Inputs, read_configuration
from .configuration.files import find_root, read_folder
from .configuration.instances import complete_provider
from .configuration.repository import FILES, Cluster, Repository
from .configuration.repository_file import drop_argument, make_scope, read_repository
from .configuration.repository_place import find_repository, find_top_file
from .stores import load_outputs

PREFIX = "cluster."
"""What an instance begins with that means a cluster of the repository file."""


def choose_cluster(
    start: Path, instance: str | None, registry: Registry, provider: str | None = None
) -> tuple[Repository, Cluster] | None:
    """The cluster that a command means: `cluster.NAME`, or at the top of a repository without a
    name the only one. None: it means the configuration of the folder.

    start: the current folder; provider: the name of the provider that the cluster needs, None for
    any. Raises UsageError with the names of the clusters, and ConfigurationError with all faults of
    the file.
    """
    if instance is None or not instance.startswith(PREFIX):
        # At the top, another name is that of no provider block either.
        file = find_top_file(start)
        if file is None:
            return None
    else:
        file = find_repository(start)
    if file is None:
        raise UsageError(
            f"{instance} is a cluster of a repository, and there is no {FILES[0]} here or in a "
            "folder above",
            f"Change to a folder of the repository. docs/repository.md explains {FILES[0]}.",
        )
    display_name = os.path.relpath(file, start).replace(os.sep, "/")
    repository = read_repository(file, display_name, registry=registry)
    return repository, _select_cluster(repository, instance, provider)


def _select_cluster(repository: Repository, instance: str | None, provider: str | None) -> Cluster:
    clusters = {f"{PREFIX}{name}": cluster for name, cluster in repository.clusters.items()}
    fit = {
        name: cluster
        for name, cluster in clusters.items()
        if provider is None or cluster.provider == provider
    }
    listed = ", ".join(sorted(fit))
    of_provider = "" if provider is None else f" of the provider {provider}"
    if instance is None:
        if len(fit) != 1:
            raise UsageError(
                f"the repository {repository.name} has {len(fit)} clusters{of_provider}",
                f"Choose one with --provider: {listed}."
                if fit
                else f"Write a cluster block into {repository.file}, or give --bootstrap-server.",
            )
        return next(iter(fit.values()))
    if instance not in clusters:
        raise UsageError(
            f"{repository.file} has no {instance}",
            suggest(instance, fit) or f"There are: {listed or 'none'}.",
        )
    if instance not in fit:
        raise UsageError(
            f"{instance} has the provider {clusters[instance].provider}, and this command needs "
            f"{provider}",
            f"Choose one with --provider: {listed}." if fit else "",
        )
    return clusters[instance]


def configure_cluster(
    repository: Repository,
    cluster: Cluster,
    registry: Registry,
    environment: Mapping[str, str],
    report: Callable[[Diagnostic], None],
) -> ProviderConfig | None:
    """How to connect to a cluster, as the folders do that use it as the default instance of its
    provider: what its block leaves out comes from the environment. None after faults, which are
    reported."""
    loaded = registry.load(cluster.provider)
    scope = make_scope(repository.path, repository.clusters, repository.owner)
    return configure_provider(
        ProviderBlock(cluster.provider, cluster.provider, drop_argument(cluster.block, "provider")),
        cluster.provider,
        complete_provider(ProviderInfo(loaded.config, loaded.check), environment, offline=False),
        scope.context,
        scope.make_env(),
        report,
    )


def connect_cluster(
    repository: Repository,
    cluster: Cluster,
    registry: Registry,
    environment: Mapping[str, str],
) -> ProviderConfig:
    """The same for one cluster alone. Raises ConfigurationError with every fault."""
    faults: list[Diagnostic] = []
    settings = configure_cluster(repository, cluster, registry, environment, faults.append)
    if settings is None or has_errors(faults):
        raise ConfigurationError(
            f"{PREFIX}{cluster.name} cannot be connected to", diagnostics=tuple(faults)
        )
    return settings


_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(.{0,4})|(.))", re.DOTALL)
_TRAILING = re.compile(r"\\*$")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

KAFKA = "kafka"
KEPT = ("alias", "for_each")
"""The arguments of a provider block that name its instances."""
COMMAND_LINE = Range("command line", 1, 1, 1, 1)
_NO_CLUSTER = "Add a kafka provider block, or give --bootstrap-server HOST:PORT."
MAX_FILE_BYTES = 1 << 20
_REFERENCE = re.compile(r"(env):([A-Za-z_]\w*)|(file):(.+)", re.ASCII | re.DOTALL)


class Property(Struct, frozen=True):
    """One property."""

    key: str
    value: str
    range: Range | None = None
    """The place of the key in its file, None for a property of the command line."""

    @property
    def excerpt(self) -> str:
        """The line without its value, which can be a password."""
        return f"{inline(self.key)}=…"


class ConnectionInputs(PartialRepr, frozen=True):
    """The flags that say how to connect. Properties are never shown, they can contain passwords."""

    _unshown = frozenset({"client_property", "inputs"})

    bootstrap_server: str | None = None
    command_config: Path | None = None
    client_property: tuple[str, ...] = ()
    provider: str | None = None
    inputs: Inputs = Inputs()

    @property
    def direct(self) -> bool:
        """Whether flags name the cluster, without a configuration."""
        named = self.bootstrap_server is not None or self.command_config is not None
        return named or bool(self.client_property)


class Connection(PartialRepr, frozen=True):
    """One provider instance, and how to reach it."""

    _unshown = frozenset({"secrets"})

    provider: Provider
    settings: ProviderConfig
    secrets: Secrets
    """The values of the references in the settings."""
    configuration: Configuration | None = None
    """Where the settings come from, None if the command line or a repository file gives them."""
    repository: Repository | None = None
    """Whose file gives them."""

    @property
    def instance(self) -> str:
        return self.settings.instance

    def open(self) -> Session:
        """Connect. Raises ConnectError, ConfigurationError."""
        return self.provider.open(self.instance, self.settings.config, self.secrets)


def resolve_configured(inputs: ConnectionInputs, provider: str = KAFKA) -> Connection:
    """Resolve the provider instance of the folder's configuration, or the cluster of the repository
    file that is meant. provider: the name of its provider. Raises UsageError,
    ConfigurationError."""
    cluster = _resolve_cluster(inputs, provider)
    if cluster is not None:
        return cluster
    configuration, providers = _read_providers(inputs, provider)
    return _connect(configuration, _choose_instance(providers, inputs.provider, provider))


def resolve_partners(
    connection: Connection, inputs: ConnectionInputs, provider: str
) -> Iterator[Connection]:
    """The connections of the same configuration, or repository file, that use another provider.
    Raises UsageError, ConfigurationError with the next one that cannot be resolved."""
    repository = connection.repository
    if repository is None:
        configuration, providers = _read_providers(inputs)
        for settings in providers.values():
            if settings.name == provider:
                yield _connect(configuration, settings)
        return
    for name, cluster in repository.clusters.items():
        if cluster.provider == provider:
            partner = replace(inputs, provider=f"{PREFIX}{name}")
            yield resolve_configured(partner, provider)


def resolve_instance(folder: Path, inputs: Inputs, instance: str) -> Connection:
    """Resolve this provider instance of a folder's configuration. Raises UsageError,
    ConfigurationError."""
    provider = instance.partition(".")[0]
    configuration, providers = _read_providers(ConnectionInputs(inputs=inputs), provider, folder)
    return _connect(configuration, _choose_instance(providers, instance, provider))


def resolve_objects(
    folder: Path, inputs: Inputs, address: str
) -> Sequence[tuple[Connection, Sequence[str]]]:
    """The connections to the systems that a block declares objects in, and the keys of these
    objects. address: `TYPE.NAME` of a block of the root module. Raises UsageError,
    ConfigurationError."""
    configuration = read_configuration(folder, inputs, load_outputs=load_outputs)
    desired = _evaluate_quietly(configuration)
    keys: dict[str, list[str]] = {}
    for item in desired.declared:
        block = item.address
        if not block.module and not block.child and f"{block.type}.{block.name}" == address:
            keys.setdefault(item.identity.instance, []).append(item.identity.key)
    return [
        (_connect(configuration, desired.providers[instance]), instance_keys)
        for instance, instance_keys in keys.items()
    ]


def resolve_every(inputs: ConnectionInputs) -> tuple[Connection, ...]:
    """Resolve every provider instance of the folder's configuration, or the one that is named.
    Raises UsageError, ConfigurationError."""
    cluster = _resolve_cluster(inputs, None)
    if cluster is not None:
        return (cluster,)
    configuration, providers = _read_providers(inputs)
    if inputs.provider is not None and inputs.provider not in providers:
        raise UsageError(
            f"the configuration has no provider instance {inputs.provider!r}",
            suggest(inputs.provider, providers)
            or f"There are: {', '.join(sorted(providers)) or 'none'}.",
        )
    if not providers:
        raise UsageError("the configuration has no provider", _NO_CLUSTER)
    names = sorted(providers) if inputs.provider is None else [inputs.provider]
    return tuple(_connect(configuration, providers[name]) for name in names)


def _resolve_cluster(inputs: ConnectionInputs, provider: str | None) -> Connection | None:
    """The connection to a cluster of the repository file; None if the folder's configuration is
    meant. provider: the name of the provider that the cluster needs."""
    folder, registry = Path.cwd(), Registry()
    chosen = choose_cluster(folder, inputs.provider, registry, provider)
    if chosen is None:
        return None
    repository, cluster = chosen
    settings = connect_cluster(repository, cluster, registry, inputs.inputs.environment)
    nothing, no_data = Tree((), (), {}), DataAnswers(_refuse_question)
    reader = Configuration(folder, repository.path, nothing, inputs.inputs, registry, no_data)
    secrets = apply.secrets.resolve_instance_secrets(settings, reader.find_secrets)
    return Connection(registry.load(settings.name), settings, secrets, repository=repository)


def _refuse_question(config: ProviderConfig) -> Session:
    raise AssertionError(f"{config.instance} has no data sources")


def _read_providers(
    inputs: ConnectionInputs, provider: str = KAFKA, folder: Path | None = None
) -> tuple[Configuration, Mapping[str, ProviderConfig]]:
    """folder: None for the current one."""
    folder = folder or Path.cwd()
    configuration = read_configuration(folder, inputs.inputs, load_outputs=load_outputs)
    if not configuration.tree.configuration and not read_folder(find_root(folder), folder):
        change = "Change to a folder with a configuration"
        raise UsageError(
            "there is no configuration here, and no cluster is named",
            f"{change}, or give --bootstrap-server HOST:PORT (and --command-config FILE)."
            if provider == KAFKA
            else f"{change} that has a provider block for {provider}.",
        )
    return configuration, _evaluate_quietly(configuration).providers


def _evaluate_quietly(configuration: Configuration) -> Desired:
    # Data sources come after provider blocks, so none is read: a cluster can be looked at while
    # another one is down, or while a right for one of them is missing.
    desired = configuration.evaluate(ask=False).desired
    if has_errors(desired.diagnostics):
        raise ConfigurationError("the configuration has faults", diagnostics=desired.diagnostics)
    return desired


def _connect(configuration: Configuration, settings: ProviderConfig) -> Connection:
    secrets = apply.secrets.resolve_instance_secrets(settings, configuration.find_secrets)
    provider = configuration.registry.load(settings.name)
    return Connection(provider, settings, secrets, configuration)


def read_block_parts(
    folder: Path, inputs: Inputs, kinds: Collection[str]
) -> tuple[Mapping[str, ProviderConfig], Diagnostics]:
    """The provider blocks for Kafka of a folder, reduced to these nested blocks, and the faults of
    the configuration. Nothing is connected to and no secret is read.

    A block that cannot be evaluated, such as for want of a variable, is left out. Raises UsageError
    if a file cannot be read.
    """

    def reduce_block(block: Block) -> Block:
        if block.type != "provider" or [label.text for label in block.labels] != [KAFKA]:
            return block
        # Without the connection, whose variables often have values in a pipeline only.
        aliases = {name: item for name, item in block.body.attributes.items() if name in KEPT}
        nested = tuple(inner for inner in block.body.blocks if inner.type in kinds)
        return replace(block, body=replace(block.body, attributes=aliases, blocks=nested))

    configuration = read_configuration(folder, inputs)
    tree = configuration.tree
    files = tuple(
        replace(file, body=replace(file.body, blocks=tuple(map(reduce_block, file.body.blocks))))
        for file in tree.configuration
    )
    reduced = replace(configuration, tree=replace(tree, configuration=files))
    desired = reduced.evaluate(offline=True).desired
    blocks = {name: block for name, block in desired.providers.items() if block.name == KAFKA}
    return blocks, desired.diagnostics


def _choose_instance(
    providers: Mapping[str, ProviderConfig], instance_name: str | None, provider: str
) -> ProviderConfig:
    """Choose the instance of this provider. Raises UsageError if there is none, or more than
    one."""
    # Providers of other systems than the command is for are passed over.
    clusters = {name: block for name, block in providers.items() if block.name == provider}
    listed = ", ".join(sorted(clusters))
    lack = _NO_CLUSTER if provider == KAFKA else f"Add a provider block for {provider}."
    if instance_name is not None:
        if instance_name not in providers:
            raise UsageError(
                f"the configuration has no provider instance {instance_name!r}",
                suggest(instance_name, clusters) or f"There are: {listed or 'none'}.",
            )
        if instance_name not in clusters:
            raise UsageError(
                f"provider instance {instance_name!r} has the provider "
                f"{providers[instance_name].name}, and this command needs {provider}",
                f"Choose one with --provider: {listed}." if clusters else lack,
            )
        return clusters[instance_name]
    if providers and not clusters:
        raise UsageError(
            f"no provider instance of the configuration has the provider {provider}", lack
        )
    if len(clusters) != 1:
        raise UsageError(
            f"the configuration has {len(clusters)} provider instances",
            f"Choose one with --provider: {listed}." if clusters else lack,
        )
    return next(iter(clusters.values()))


def resolve_direct(
    inputs: ConnectionInputs, environment: Mapping[str, str]
) -> tuple[Connection, Diagnostics]:
    """Resolve the connection that flags alone describe; also returns warnings. Raises UsageError,
    ConfigurationError with every fault."""
    properties = {
        item.key: item for item in (*_read_file(inputs.command_config), *_read_flags(inputs))
    }
    values: dict[str, str] = {}
    faults: list[Diagnostic] = []
    for key, item in properties.items():
        if key not in java.SECRET_KEYS:
            values[key] = item.value
            continue
        values[key], secret_faults = _read_secret(item, environment)
        # A JAAS line that contains a password is as secret as the password.
        remember_secret(values[key])
        faults += secret_faults
    block, secrets, block_faults = java.read_provider_block(values)
    faults += [_make_diagnostic(fault, properties.get(fault.key)) for fault in block_faults]
    if not block["bootstrap_servers"]:
        faults.append(
            Diagnostic(
                Severity.ERROR,
                "no broker is named",
                advice="Give --bootstrap-server HOST:PORT, or bootstrap.servers in the file.",
            )
        )
    if has_errors(faults):
        errors = tuple(faults)
        raise ConfigurationError("the connection cannot be used", diagnostics=errors)
    settings = ProviderConfig(KAFKA, KAFKA, block, COMMAND_LINE)
    return Connection(Registry().load(KAFKA), settings, secrets), tuple(faults)


def _read_file(path: Path | None) -> tuple[Property, ...]:
    if path is None:
        return ()
    try:
        data = read_named_file(path, MAX_FILE_BYTES, pipes=True)
    except OSError as error:
        raise UsageError(f"{path} (--command-config) cannot be read: {error.strerror}") from None
    return parse_properties(data, str(path))


def _read_flags(inputs: ConnectionInputs) -> Iterator[Property]:
    """The properties of the command line, the weakest first."""
    for text in inputs.client_property:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise UsageError(
                "--client-property takes KEY=VALUE", "For instance security.protocol=SASL_SSL."
            )
        yield Property(key.strip(), value)
    if inputs.bootstrap_server is not None:
        for server in inputs.bootstrap_server.split(","):
            _check_server(server.strip())
        yield Property("bootstrap.servers", inputs.bootstrap_server)


def _check_server(server: str) -> None:
    fault = find_address_fault(server)
    if fault:
        raise UsageError(
            f"--bootstrap-server: {render_address(server)} is not HOST:PORT, it {fault[0]}",
            f"{make_sentence(fault[1])} Several are separated by commas: "
            "kafka-1:9092,kafka-2:9092.",
        )


def _read_secret(item: Property, environment: Mapping[str, str]) -> tuple[str, Diagnostics]:
    """The value of a secret property, and its faults."""
    # `ps` shows the command line to all users of the computer, so there it must be a reference.
    match = _REFERENCE.fullmatch(item.value)
    if match is None:
        if item.range:
            return item.value, ()
        fault = Diagnostic(
            Severity.ERROR,
            f"{item.key} is on the command line, where every user of this computer can read it",
            advice=f"Write --client-property {item.key}=env:NAME for the environment variable "
            f"NAME, {item.key}=file:PATH for a file that contains nothing else, or use "
            "--command-config FILE. Take what was typed out of the history of your shell.",
        )
        return item.value, (fault,)
    source, name = filter(None, match.groups())
    text = environment.get(name) if source == "env" else _read_line(Path(name))
    return text or "", () if text else (_make_missing_fault(item, source, name),)


def _read_line(path: Path) -> str | None:
    """The content of a file with one secret, without the end of its line; None if the file cannot
    be read."""
    try:
        text = read_named_file(path, MAX_FILE_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return None
    return text.replace("\r\n", "\n").removesuffix("\n")


def _make_missing_fault(item: Property, source: str, name: str) -> Diagnostic:
    todo = f"Set the environment variable {name}." if source == "env" else f"Write it to {name}."
    return Diagnostic(
        Severity.ERROR,
        f"{item.key} refers to {source}:{name}, which has no value",
        range=item.range,
        excerpt=item.excerpt if item.range else None,
        advice=todo,
    )


def _make_diagnostic(fault: PropertyFault, item: Property | None) -> Diagnostic:
    """The diagnostic of a fault, with the place in the file and without the value."""
    source = item.range if item else None
    return Diagnostic(
        fault.severity,
        fault.text,
        range=source,
        excerpt=item.excerpt if item and source else None,
        advice=fault.advice,
    )


def parse_properties(data: bytes, name: str) -> tuple[Property, ...]:
    """Parse the properties of a file, in order. Raises ConfigurationError for a broken escape."""
    properties = []
    for number, column, line in _join_lines(data.decode("latin-1")):
        match = _PAIR.fullmatch(line)
        assert match is not None  # every text fits
        source = Range(name, number, column, number, column + len(match[1]))
        try:
            properties.append(Property(unescape_text(match[1]), unescape_text(match[2]), source))
        except ValueError as error:
            fault = Diagnostic(
                Severity.ERROR,
                f"{name}: {error}",
                range=source,
                advice="Write \\u and four hexadecimal digits, or \\\\ for a backslash.",
            )
            raise ConfigurationError(str(error), diagnostics=(fault,)) from None
    return tuple(properties)


def unescape_text(text: str) -> str:
    """Replace the escapes in a text. Raises ValueError for a broken \\uXXXX."""
    # Java's characters are UTF-16: one beyond the basic plane is written as two escapes.
    plain = _ESCAPE.sub(_unescape_match, text)
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("a \\u escape is half of a character") from None


def _unescape_match(match: re.Match[str]) -> str:
    if match[1] is None:
        return _NAMED.get(match[2], match[2])
    if not re.fullmatch("[0-9A-Fa-f]{4}", match[1]):
        raise ValueError("a \\u escape needs four hexadecimal digits")
    return chr(int(match[1], 16))


def _join_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Line number and column of the first character, and the text without line breaks."""
    lines = iter(enumerate(_LINE_END.split(text), 1))
    for number, line in lines:
        whole = line.lstrip(_BLANKS)
        if not whole or whole[0] in "#!":
            continue
        column = len(line) - len(whole) + 1
        while _is_continued(whole):
            _, continuation = next(lines, (0, ""))
            whole = whole[:-1] + continuation.lstrip(_BLANKS)
        yield number, column, whole


def _is_continued(line: str) -> bool:
    match = _TRAILING.search(line)
    return match is not None and len(match[0]) % 2 == 1
