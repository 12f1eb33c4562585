"""Read a configuration folder from disk, and evaluate it with the variables of the environment.

The demands of its `kafkaform` block are checked: the version of kafkaform, and the backend. Each
question of its data sources is asked once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from ... import apply, plan, syntax
from ...core.canonical import digest
from ...core.diagnostics import Diagnostic, Diagnostics, Severity
from ...core.errors import ConnectError, UsageError
from ...core.resource import Absent, Desired, Observed, ProviderConfig
from ...core.secret import NoSecret, PartialRepr, Secret
from ...core.storage import read_named_file
from ...core.value import COMMAND, EMPTY, FrozenMap, SecretRef, freeze
from ...language.declare.folder import ParseFile, parse_configuration
from ...language.declare.settings import list_used_names, read_settings
from ...language.declare.top_level import declare_blocks
from ...language.declare.variables import resolve_variables
from ...language.desired import (
    Built,
    DataInfo,
    ProviderInfo,
    Schemas,
    Tree,
    TypeInfo,
    VarFile,
    evaluate_tree,
    load_tree,
)
from ...language.desired import VariableInputs as Values
from ...language.evaluate.providers import OUTPUTS
from ...language.evaluate.providers import OUTPUTS_SCHEMA as OUTPUTS_SCHEMA
from ...language.expressions.compilation import make_context
from ...language.functions import FunctionTable
from ...language.functions.files import make_checkout_reader, make_confined_reader
from ...language.policy.compilation import RuleSets, compile_policies
from ...provider.contract import Provider, Session
from ...provider.registry import Registry
from ...syntax.nodes import FILE_BYTES, File
from ...version import VERSION
from .. import modules
from . import untrusted
from .files import (
    Buffers,
    ModuleFolders,
    Opened,
    OpenPackage,
    find_exposed_files,
    find_root,
    list_checkout_files,
    list_users,
    read_file_secret,
    read_folder,
)
from .instances import Opener, Systems, complete_connection, complete_provider, open_session
from .places import find_backend_faults
from .repository_place import (
    FolderOutputs,
    LoadOutputs,
    add_defaults,
    add_providers,
    find_place,
    list_shared_instances,
    refuse_top,
)
from .untrusted import refuse_links_to, select_variables

if TYPE_CHECKING:
    from .repository import RepositoryFolder

_OPERATOR = re.compile(r"^\s*(~>|=(?!=))")
_PYTHON = {"~>": "~=", "=": "=="}
"""Terraform's spelling of version constraints to Python's, where they differ."""


Connect = Callable[[ProviderConfig], Session]
"""Opens a session for a provider instance. Raises KafkaformError."""
_READS_FILE = b"secret_file"
"""What files contain if something in them reads a secret from a file."""
_READABLE = (
    "Configuration files, and the files that links among them lead to, must be regular files below "
    "the root: the nearest folder upwards that contains .git, or the folder itself."
)


class DataAnswers(Struct, frozen=True):
    """Connects when the first question comes."""

    connect: Connect
    systems: Systems = field(default_factory=Systems)
    """The systems of all sessions that are opened for the configuration, here and elsewhere."""
    sessions: dict[str, Session] = field(default_factory=dict)
    """The open session of each provider instance."""
    # Kept, because a plan evaluates outputs a second time and must see the same answers.
    answers: dict[tuple[str, str, str], FrozenMap] = field(default_factory=dict)
    """The answers by instance, data source and digest of the arguments."""
    outputs: FolderOutputs = field(default_factory=FolderOutputs)
    """What answers for other folders."""
    unreached: dict[str, ConnectError] = field(default_factory=dict)
    """The provider instances that could not be reached. They are not asked again: all questions of
    one command have to see the same."""

    def __call__(self, config: ProviderConfig, kind: str, arguments: FrozenMap) -> FrozenMap:
        """The answer of a data source. Raises KafkaformError."""
        question = (config.instance, kind, digest(arguments))
        if question not in self.answers and kind == OUTPUTS:
            self.answers[question] = self.outputs.answer(config, arguments)
        elif question not in self.answers:
            if config.instance in self.unreached:
                raise self.unreached[config.instance]
            if config.instance not in self.sessions:
                try:
                    session = self.systems.enter(config, self.connect(config))
                except ConnectError as error:
                    self.unreached[config.instance] = error
                    raise
                self.sessions[config.instance] = session
            session = self.sessions[config.instance]
            self.answers[question] = session.query(kind, arguments)
        return self.answers[question]

    def close(self) -> None:
        """End the sessions; a further question connects again."""
        while self.sessions:
            self.sessions.popitem()[1].close()


class Inputs(PartialRepr, frozen=True):
    """What a configuration is evaluated with."""

    _unshown = frozenset({"environment", "variables"})

    assignments: tuple[str | VarFile | File, ...] = ()
    """Values of variables as texts NAME=VALUE and as files, the weakest first."""
    untrusted: bool = False
    """Anybody may have written the files (--untrusted)."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Where connections and secrets come from."""
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The part of the environment that input variables may take their values from."""
    simulated: bool = False
    """The systems are simulated: provider blocks need no connection, and no secret is read."""

    @staticmethod
    def read(
        var: Mapping[str, object] | Sequence[str | Path],
        var_file: Sequence[Path] = (),
        *,
        untrusted: bool = False,
        simulated: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Inputs:
        """Read the inputs of a command line or a program.

        var: values by name, or strings and files in the order of the command line, as `InOrder`
        puts them. Raises UsageError for a file that cannot be read.
        """
        values = (*var_file, *(_as_texts(var) if isinstance(var, Mapping) else var))
        variables = environment = os.environ if environment is None else environment
        if untrusted:
            refuse_links_to(item for item in values if isinstance(item, Path))
            variables = select_variables(environment)
        return Inputs(
            tuple(
                VarFile(str(item), _read_content(item, "--var-file"))
                if isinstance(item, Path)
                else item
                for item in values
            ),
            untrusted,
            {} if simulated else environment,
            variables,
            simulated,
        )


def _as_texts(variables: Mapping[str, object]) -> Iterator[str]:
    """Variables as NAME=VALUE: a string as it is, any other value as HCL."""
    for name, item in variables.items():
        try:
            text = item if isinstance(item, str) else syntax.write.write_value(freeze(item))
        except TypeError as error:
            raise UsageError(
                f"the variable {name} has a value that configuration cannot say: {error}",
                "Give texts, ints, Decimals, bools, None, lists and maps of these.",
            ) from None
        yield f"{name}={text}"


class Configuration(PartialRepr, frozen=True):
    """A folder whose files were read and parsed."""

    _unshown = frozenset({"texts", "printed"})

    folder: Path
    root: Path
    """The folder that its files and functions cannot leave."""
    tree: Tree
    """Its parsed files, and those of its modules."""
    inputs: Inputs
    registry: Registry
    """The providers that it can use."""
    asking: DataAnswers
    """Answers its data sources."""
    opened: Opened = field(default_factory=dict)
    """The Git repositories that modules come from."""
    repository_folder: RepositoryFolder | None = None
    """What the repository file above says about the folder."""
    texts: dict[str, str] = field(default_factory=dict)
    """The values of sensitive variables, once one was asked for."""
    printed: dict[tuple[str, ...], str | NoSecret] = field(default_factory=dict)
    """The words of each command that was run for a secret -> what it printed."""

    def evaluate(
        self,
        *,
        offline: bool = False,
        ask: bool = True,
        leaves_out: bool = False,
        computed: Mapping[str, FrozenMap] | None = None,
        waits: bool = True,
    ) -> Built:
        """Evaluate everything. The result has the values, the declared objects and all faults.

        offline: unset variables are no fault, and data sources are not read. ask: read data
        sources; without it, what needs them has no value. leaves_out: what needs a data source
        whose system cannot be reached is left out. computed: attributes that servers have set, by
        address. waits: the apply is still to come, which may create what data sources ask for.
        """
        read = make_confined_reader(self.root, self.folder)
        if self.inputs.untrusted:
            tracked = partial(list_checkout_files, self.root)
            read = make_checkout_reader(self.root, self.folder, tracked)
        if self.opened:
            read = modules.cache.add_packages(read, self.opened)
        built = evaluate_tree(
            self.tree,
            Values(self.inputs.variables, self.inputs.assignments, offline),
            self._collect_schemas(offline),
            read,
            computed,
            self.asking if ask and not offline else None,
            leaves_out=leaves_out,
            waits=waits,
        )
        desired, policies = built.desired, built.policies
        unfit = (*find_unmet_demands(self.tree, self.repository_folder), *desired.diagnostics)
        if blocks := built.run.graph.modules[()].declarations.policies:
            policies, faults = compile_policies(blocks, *self.describe_rules())
            unfit = (*unfit, *faults)
        trusted = not (self.inputs.untrusted or self.inputs.simulated)
        if trusted and any(_READS_FILE in content for content in self.tree.contents.values()):
            unfit = (*unfit, *find_exposed_files(list_users(desired), self.folder))
        if self.repository_folder is not None:
            desired = add_defaults(self.repository_folder, desired)
        return replace(built, desired=replace(desired, diagnostics=unfit), policies=policies)

    def describe_rules(self) -> tuple[RuleSets, frozenset[str], Mapping[str, bool]]:
        """What reads the policies of each provider, what its users call a system, and all
        rules: by id, whether their blocks can be lifted."""
        declarations, registry = declare_blocks(self.tree, ("provider",))[0], self.registry
        named = {block.name for block in declarations.providers.values()}
        added_names = named.difference(registry.built_in)
        # Finding the names of other packages takes longer than everything else here.
        names = (
            *registry.built_in,
            *(added_names.intersection(registry.names) if added_names else ()),
        )
        providers = {name: registry.load(name) for name in names}
        sets = {
            name: provider.read_rules
            for name, provider in providers.items()
            if provider.read_rules()
        }
        systems = frozenset(provider.words.system_field for provider in providers.values())
        rules = plan.rules.collect_rules(providers.values())
        return sets, systems, {id: rule.accept for id, rule in rules.items()}

    def list_unconnected(self, built: Built) -> Diagnostics:
        """A warning for each provider instance that objects need and that has neither a block nor
        a setting in the environment that says where to connect."""
        declared = built.run.graph.modules[()].declarations.providers
        # The name of an instance of a block with for_each ends with its key.
        missing = (i for i in built.desired.providers if i.partition("[")[0] not in declared)
        faults = []
        for instance in missing:
            schema = self.registry.load(built.desired.providers[instance].name).config
            _, instance_faults = complete_connection(
                schema, self.inputs.environment, instance, FrozenMap({})
            )
            faults += [
                replace(
                    fault,
                    severity=Severity.WARNING,
                    summary=f'There is no block provider "{instance}", and a plan needs one',
                )
                for _, fault in instance_faults
            ]
        return tuple(faults)

    def _collect_schemas(self, offline: bool) -> Schemas:
        """What the providers offer, and where they connect as far as the environment says it.

        Providers of other packages are looked for only if the files name something that those
        that come with kafkaform do not have.
        """
        environment, registry = self.inputs.environment, self.registry
        # Reading the entry points of installed packages takes longer than Python's own start.
        providers = {name: registry.load(name) for name in registry.built_in}
        words = {
            word
            for name, provider in providers.items()
            for word in (name, *provider.types, *provider.data)
        }
        words.add(OUTPUTS)
        if not list_used_names(self.tree) <= words:
            providers = {name: registry.load(name) for name in registry.names}
        schemas = collect_schemas(providers)
        unconnected = offline or self.inputs.simulated
        if self.inputs.untrusted and not offline:
            # The repository file is that of the branch that a pull request is for.
            shared = (
                list_shared_instances(self.repository_folder, self.tree)
                if self.repository_folder
                else frozenset()
            )
            infos = {
                n: untrusted.restrict_provider(info, environment, shared)
                for n, info in schemas.providers.items()
            }
        else:
            infos = {
                name: complete_provider(info, environment, offline=unconnected)
                for name, info in schemas.providers.items()
            }
        return replace(schemas, providers=infos)

    def find_secrets(
        self, refs: Collection[SecretRef]
    ) -> Mapping[SecretRef, Secret | NoSecret | None]:
        """The secrets that references name, None for one that has no value."""
        if self.inputs.simulated:
            return {ref: Secret(f"the simulated secret {ref}") for ref in refs}
        # A pull request could name any variable of the CI job, and show its value in an error, or
        # run any command.
        readable = [r for r in refs if untrusted.is_ours(r)] if self.inputs.untrusted else refs
        commands = [ref.words for ref in readable if ref.source == COMMAND and ref.words]
        if commands:
            from .secret_commands import ask_commands  # noqa: PLC0415  # only such secrets start processes

            ask_commands(commands, self.folder, self.inputs.environment, self.printed)
        secrets = {ref: _SECRETS[ref.source](self, ref) for ref in readable}
        return {**dict.fromkeys(refs), **secrets}

    def find_variable_secret(self, name: str) -> str | None:
        """The value of a sensitive variable, or of an element of it: `passwords["x"]`."""
        # Evaluation keeps references only, so the variables are resolved once more for the values.
        if not self.texts:
            declarations, _ = declare_blocks(self.tree, ("variable",))
            values = Values(self.inputs.variables, self.inputs.assignments)
            resolved = resolve_variables(
                self.tree, declarations.variables, values, make_context(FunctionTable())
            )
            self.texts.update(resolved.secrets)
        return self.texts.get(name)

    def list_sensitive_variables(self) -> frozenset[str]:
        """The names of the input variables whose values are never shown."""
        declarations, _ = declare_blocks(self.tree, ("variable",))
        return frozenset(name for name, item in declarations.variables.items() if item.sensitive)

    def keep_variables(self) -> Configuration:
        """The configuration without its blocks, except those of variables, whose secrets are
        looked up later. The blocks of ten thousand objects take more memory than the objects."""
        files = []
        for file in self.tree.configuration:
            blocks = tuple(block for block in file.body.blocks if block.type == "variable")
            files.append(replace(file, body=replace(file.body, attributes={}, blocks=blocks)))
        tree = replace(self.tree, configuration=tuple(files), contents={}, modules={})
        asking = DataAnswers(_refuse_question, self.asking.systems, outputs=self.asking.outputs)
        return replace(self, tree=tree, asking=asking)

    def evaluate_settled(
        self, desired: Desired, sessions: Mapping[str, Session], *, planned: bool = False
    ) -> Desired:
        """The same with the outputs and rules that needed attributes which servers set. planned:
        as they are after the apply of a plan, instead of as they are now."""
        if not desired.settles:
            return desired
        settled = self.evaluate_live(desired, sessions, planned=planned).desired
        return replace(desired, outputs=settled.outputs, diagnostics=settled.diagnostics)

    def evaluate_live(
        self, desired: Desired, sessions: Mapping[str, Session], *, planned: bool = False
    ) -> Built:
        """Evaluate again, with the attributes that servers have set on the declared objects.
        planned: as in `evaluate_settled`."""
        computed = self._read_computed(desired, sessions, planned)
        try:
            return self.evaluate(leaves_out=bool(desired.unread), computed=computed, waits=planned)
        finally:
            # A data source that waited for the apply has connected again.
            self.asking.close()

    def _read_computed(
        self, desired: Desired, sessions: Mapping[str, Session], planned: bool
    ) -> dict[str, FrozenMap]:
        """str(address) -> the attributes of a declared object in its system, also those that its
        block leaves out or that no block can declare. Objects that were not read, or that do not
        exist after an apply, are left out."""
        computed: dict[str, FrozenMap] = {}
        for instance, session in sessions.items():
            instance_items = [
                item for item in desired.declared if item.identity.instance == instance
            ]
            readings = session.read(sorted({item.identity for item in instance_items}))
            types = (
                self.registry.load(desired.providers[instance].name).types if instance_items else {}
            )
            for item in instance_items:
                reading, kind = readings[item.identity], types[item.identity.kind]
                if planned and isinstance(reading, Observed | Absent):
                    attributes = plan.lifecycle.predict_attributes(
                        item, kind, reading, session.facts
                    )
                elif isinstance(reading, Observed):
                    attributes = kind.canonical(reading.attributes, session.facts)
                else:
                    continue
                details = reading.details if isinstance(reading, Observed) else EMPTY
                if (
                    kind.renewed
                    and isinstance(reading, Observed)
                    and attributes != kind.canonical(reading.attributes, session.facts)
                ):
                    details = details.with_items(dict.fromkeys(kind.renewed))
                computed[str(item.address)] = attributes.with_items(details)
            # Only after this proof did all the answers come from the system that was planned for.
            session.prove()
        return computed


def _refuse_question(config: ProviderConfig) -> Session:
    raise AssertionError(f"data of {config.instance} is asked for after it was read")


def read_configuration(
    folder: Path,
    inputs: Inputs,
    open_package: OpenPackage | None = None,
    buffers: Buffers | None = None,
    parse_file: ParseFile = parse_configuration,
    repository_folder: RepositoryFolder | None = None,
    load_outputs: LoadOutputs | None = None,
    opener: Opener = open_session,
) -> Configuration:
    """Read and parse the files of a folder and of the modules that it calls.

    folder: as it was named, because links on the way to it count. open_package: opens repositories
    that modules come from; without it, they are read at their locked commits, offline. parse_file:
    an editor keeps what it has parsed. repository_folder: the settings of the folder in the
    repository file, if they have been read. load_outputs: reads the outputs of other folders.
    opener: opens the sessions that answer data sources. Raises UsageError for a file that cannot
    be read, and for the top of a repository without a configuration of its own.
    """
    named, folder = folder, folder.absolute()
    root, links = find_root(folder), not inputs.untrusted
    if inputs.untrusted:
        untrusted.refuse_own_code(folder, root)
        untrusted.refuse_links_to([named])
    registry = untrusted.make_registry(inputs.environment) if inputs.untrusted else Registry()
    try:
        files = read_folder(root, folder, links=links, buffers=buffers)
    except OSError as fault:
        raise UsageError(str(fault), _READABLE) from None

    def connect(config: ProviderConfig) -> Session:
        secrets = apply.secrets.resolve_instance_secrets(config, configuration.find_secrets)
        return opener(registry.load(config.name), config, secrets)

    modules = ModuleFolders(root, folder, links, open_package, buffers)
    tree = load_tree(files, modules.read_files, modules.resolve_own_path, parse_file)
    outside = inputs.environment if inputs.untrusted else None
    repository_folder = repository_folder or find_place(folder, registry, outside, buffers)
    # An editor shows such a folder, too.
    if not tree.configuration and buffers is None:
        refuse_top(folder)
    if repository_folder is not None:
        tree = add_providers(repository_folder, tree)
    outputs = FolderOutputs(folder, outside, load_outputs)
    asking, opened = DataAnswers(connect, outputs=outputs), modules.opened
    configuration = Configuration(
        folder, root, tree, inputs, registry, asking, opened, repository_folder
    )
    return configuration


def collect_schemas(providers: Mapping[str, Provider]) -> Schemas:
    """The schemas of these providers in the form that the language needs."""
    types, data = {}, {}
    for name, provider in providers.items():
        for kind in provider.types.values():
            types[kind.name] = TypeInfo(
                *(kind.schema, kind.key, name, kind.expand, kind.shareable),
                parkable=kind.closures is not None,
            )
        for source, schema in provider.data.items():
            data[source] = DataInfo(schema, name)
    data[OUTPUTS] = DataInfo(OUTPUTS_SCHEMA, None)
    infos = {name: ProviderInfo(info.config, info.check) for name, info in providers.items()}
    return Schemas(types, data, infos)


_SECRETS: Mapping[str, Callable[[Configuration, SecretRef], Secret | NoSecret | None]] = {
    "env": lambda own, ref: (
        None if (text := own.inputs.environment.get(ref.name)) is None else Secret(text)
    ),
    "file": lambda own, ref: read_file_secret(own.folder / ref.name),
    # Anew each time, so that the secret is masked in every run that gets it.
    COMMAND: lambda own, ref: (
        Secret(text) if isinstance(text := own.printed.get(ref.words), str) else text
    ),
    "variable": lambda own, ref: (
        None if (text := own.find_variable_secret(ref.name)) is None else Secret(text)
    ),
}


def _read_content(path: Path, noun: str) -> bytes:
    try:
        return read_named_file(path, FILE_BYTES, pipes=True)
    except OSError as error:
        raise UsageError(f"{path} ({noun}) cannot be read: {error.strerror}") from None


def find_unmet_demands(tree: Tree, folder: RepositoryFolder | None) -> Diagnostics:
    """Why the demands of the block cannot be met; nothing if they are met. folder: the
    settings of the folder in the repository file."""
    settings, faults = read_settings(tree)
    if settings.required_version is not None:
        faults = (*faults, *_find_version_faults(settings.required_version))
    if settings.backend is not None:
        faults = (*faults, *find_backend_faults(settings))
        if folder is not None and folder.boundary is not None and folder.state is not None:
            # The outputs of another folder could be replaced there, which other folders read.
            fault = Diagnostic(
                Severity.ERROR,
                f"{folder.path} has a boundary, so its state is where {folder.group.location} says",
                "A backend block could name the state of another folder.",
                range=settings.range,
                advice="Remove the backend block.",
            )
            faults = (*faults, fault)
    return faults


def _find_version_faults(text: str) -> Iterator[Diagnostic]:
    from packaging import specifiers, version  # noqa: PLC0415  # it takes as long as Python itself to load

    try:
        allowed = specifiers.SpecifierSet(",".join(map(_translate_constraint, text.split(","))))
    except specifiers.InvalidSpecifier:
        yield Diagnostic(
            Severity.ERROR,
            f'required_version "{text}" is not a version constraint',
            advice='Write it as ">= 0.1, < 2.0" or "~> 0.1".',
        )
        return
    # A pre-release of ours satisfies ">= 0.1": Python's rules would refuse it by default.
    if not allowed.contains(version.Version(VERSION), prereleases=True):
        yield Diagnostic(
            Severity.ERROR,
            f"This configuration needs kafkaform {text}; this is {VERSION}",
            advice="Install a version that fits, or change required_version.",
        )


def _translate_constraint(constraint: str) -> str:
    # Terraform reads a version without an operator as "exactly this one"; Python needs one.
    text = _OPERATOR.sub(lambda match: _PYTHON[match[1]], constraint).strip()
    return text if text[:1] in "<>=!~" else f"=={text}"
