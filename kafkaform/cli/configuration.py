"""A configuration folder read from disk and evaluated: where files and environment enter."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import UsageError
from ..core.resource import Desired, Observed, Output
from ..core.value import FrozenMap, SecretRef
from ..language.confined import confined
from ..language.declare import declare
from ..language.desired import Inputs as Values
from ..language.desired import Tree, TypeInfo, VarFile, build, load
from ..language.evaluate import context
from ..language.functions import function_table
from ..language.variables import resolve
from ..provider.contract import Provider, Session
from ..provider.registry import Registry
from .requirements import unmet

SUFFIXES = (".kf.hcl", ".kf.json", ".kfvars.hcl", ".kfvars.json", ".tf", ".tfvars", ".tf.json")
MAX_SECRET_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Inputs:
    """Variables as the command line gives them. given: texts NAME=VALUE and files, weakest
    first: files, then single values."""

    given: tuple[str | VarFile, ...] = ()

    @staticmethod
    def of(var: Sequence[str], var_file: Sequence[Path]) -> Inputs:
        return Inputs((*(VarFile(str(p), _content(p, "--var-file")) for p in var_file), *var))


@dataclass(frozen=True, slots=True)
class Configuration:
    """folder: where it is; root: how far its file functions may reach; tree: its files."""

    folder: Path
    root: Path
    tree: Tree
    inputs: Inputs
    registry: Registry

    def desired(
        self, *, offline: bool = False, computed: Mapping[str, FrozenMap] | None = None
    ) -> Desired:
        """Everything that it says, with all its faults. offline: unset variables are no fault."""
        providers = {name: self.registry.load(name) for name in self.registry.names}
        desired = build(
            self.tree,
            Values(os.environ, self.inputs.given, offline),
            _types(providers),
            {name: provider.config for name, provider in providers.items()},
            confined(self.root, self.folder),
            computed,
        )
        return replace(desired, diagnostics=(*unmet(self.tree), *desired.diagnostics))

    def secret(self, ref: SecretRef) -> str | None:
        """The secret that a reference names, or None if it is not there."""
        return _SECRETS[ref.source](self, ref.name)

    def variable_secret(self, name: str) -> str | None:
        """The value of a sensitive variable."""
        found, _ = declare(self.tree)
        values = Values(os.environ, self.inputs.given)
        resolved = resolve(self.tree, found.variables, values, context(function_table()))
        return resolved.secrets.get(name)

    def outputs(self, desired: Desired, sessions: Mapping[str, Session]) -> tuple[Output, ...]:
        """The outputs; those that wait for what a server sets are evaluated with what it shows."""
        if not any(output.deferred for output in desired.outputs):
            return desired.outputs
        return self.desired(computed=_computed(desired, sessions)).outputs


def read_configuration(folder: Path, inputs: Inputs, registry: Registry) -> Configuration:
    """Read and parse the files of a folder. Raises UsageError for one that cannot be read."""
    files = {
        path.name: _content(path, "configuration")
        for path in sorted(folder.iterdir())
        if path.name.endswith(SUFFIXES)
    }
    root = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder)
    return Configuration(folder, root, load(files), inputs, registry)


def recorded_outputs(outputs: Sequence[Output]) -> FrozenMap:
    """Outputs as the state keeps them: a sensitive one without its value, a deferred one not."""
    return FrozenMap(
        {
            output.name: FrozenMap(
                value=None if output.sensitive else output.value, sensitive=output.sensitive
            )
            for output in outputs
            if not output.deferred
        }
    )


def recorded(outputs: FrozenMap) -> tuple[Output, ...]:
    """What the state keeps, as outputs again."""
    return tuple(Output(name, o["value"], o["sensitive"]) for name, o in sorted(outputs.items()))


def _types(providers: Mapping[str, Provider]) -> dict[str, TypeInfo]:
    return {
        kind.name: TypeInfo(kind.schema, kind.key, name, kind.expand)
        for name, provider in providers.items()
        for kind in provider.types.values()
    }


def _computed(desired: Desired, sessions: Mapping[str, Session]) -> dict[str, FrozenMap]:
    """str(address) -> what the server set, for every declared object that is there."""
    found: dict[str, FrozenMap] = {}
    for instance, session in sessions.items():
        mine = {d.identity: d for d in desired.declared if d.identity.instance == instance}
        for identity, reading in session.read(sorted(mine)).items():
            if isinstance(reading, Observed):
                found[str(mine[identity].address)] = reading.details
    return found


def _file_secret(configuration: Configuration, name: str) -> str | None:
    path = configuration.folder / name
    if not path.is_file() or path.stat().st_size > MAX_SECRET_BYTES:
        return None
    return path.read_text(encoding="utf-8").removesuffix("\n")


_SECRETS: Mapping[str, Callable[[Configuration, str], str | None]] = {
    "env": lambda _, name: os.environ.get(name),
    "file": _file_secret,
    "variable": Configuration.variable_secret,
}


def _content(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} ({what}) cannot be read: {error.strerror}") from None
