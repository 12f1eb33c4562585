"""`--untrusted`: plan files that anybody can have written, such as those of a pull request.

The plan shows what such files say, and they decide nothing else. Connections come from the
environment, `KAFKAFORM_<INSTANCE>_<ATTRIBUTE>`; only regular files of the checkout are read, none
through a link; the environment names the providers that can be used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Severity
from ...core.errors import UsageError
from ...core.schema import AttributeSchema, ObjectSchema
from ...core.value import FrozenMap, SecretRef, Value
from ...language.declare.variables import PREFIX as VARIABLES
from ...language.evaluate.providers import ProviderInfo
from ...provider.registry import Registry
from .files import find_root
from .instances import PREFIX, complete_connection, name_variable, parse_value
from .places import find_links
from .repository import FILES, RepositoryFolder

PROVIDERS, DEFAULT_PROVIDERS = f"{PREFIX}PROVIDERS", "kafka"
FLAG = "--untrusted"


def make_registry(environ: Mapping[str, str]) -> Registry:
    """The installed providers that KAFKAFORM_PROVIDERS names, separated by commas."""
    allowed = {name.strip() for name in environ.get(PROVIDERS, DEFAULT_PROVIDERS).split(",")}
    return Registry(allowed=allowed)


def select_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that input variables can take their values from: KF_VAR_…"""
    # Not Terraform's TF_VAR_…, which can contain secrets that are meant for another tool.
    return {name: text for name, text in environ.items() if name.startswith(VARIABLES)}


def is_ours(ref: SecretRef) -> bool:
    """Whether a secret belongs to a connection: only these are looked up."""
    # Any other variable could be a secret of the CI job, and a file of the pull request could place
    # it where the plan, or a server, shows it.
    return ref.source == "env" and ref.name.startswith(PREFIX)


def dry_run_error() -> UsageError:
    """The error for a dry run of untrusted files."""
    return UsageError(
        f"{FLAG} and --validate exclude each other: a dry run needs rights to write",
        "Leave --validate to the run that applies; it does the same dry run first.",
    )


def apply_error() -> UsageError:
    """The error for an apply of untrusted files."""
    return UsageError(
        f"apply takes no {FLAG}: what is applied must have been reviewed and merged",
        f"Plan with {FLAG}, review, merge, then `kafkaform apply --expect APPROVAL`.",
    )


def refuse_own_code(folder: Path, root: Path) -> None:
    """Raises UsageError if Python imports modules from the folder, or from one above it up to the
    root, or did so when it started (`python -m`)."""
    # A `json.py` in the checkout would run with the credentials of the CI job.
    own_folders = {folder, *(parent for parent in folder.parents if parent.is_relative_to(root))}
    began = getattr(sys.modules["__main__"], "__spec__", None)
    as_module = began is not None and began.name.startswith("kafkaform.")
    importable = any(Path(entry).resolve() in own_folders for entry in sys.path)
    if importable or (as_module and not sys.flags.safe_path):
        raise UsageError(
            f"Python imports modules from this folder, so {FLAG} would run its code",
            "Run the `kafkaform` command, or `python -P -m kafkaform`, and take the folder out of "
            "PYTHONPATH.",
        )


def refuse_links_to(paths: Iterable[Path]) -> None:
    """Raises UsageError if a file, or the current folder, is reached through a link that a checkout
    can contain: the author of the link would choose the file that is read."""
    for path in paths:
        for link in find_links(path):
            raise UsageError(
                f"{link} is a link, and {FLAG} follows none",
                "Name the place itself, because a pull request can contain the link.",
            )


def is_forgeable(state: str | None, folder: Path) -> bool:
    """Whether untrusted files can contain a state. state: where it is, None if the repository file
    does not say that; folder: a folder of these files."""
    if state is None:
        return True
    # `realpath`, because a path outside of the checkout can be a link that leads into it.
    root = find_root(folder).resolve()
    return "://" not in state and Path(os.path.realpath(state)).is_relative_to(root)


def choose_trusted_state(path: Path, folder: RepositoryFolder) -> str:
    """The state of an untrusted folder, as the base branch names it. Raises UsageError for one that
    untrusted files can contain."""
    if folder.state is None or is_forgeable(folder.state, path):
        raise UsageError(
            f"the state of {folder.path} can be forged: it is part of the untrusted files",
            f"Let `state` of its folders block in {FILES[0]} name an object store, or a path "
            "outside of the checkout.",
        )
    return folder.state


# ── connections ─────────────────────────────────────────────────────────────────────────


def restrict_provider(
    info: ProviderInfo, environ: Mapping[str, str], trusted: Collection[str] = ()
) -> ProviderInfo:
    """The provider, whose blocks can set policies, but not where to connect. trusted: instances
    whose blocks come from another place than the untrusted files."""
    optional = {
        # The connection comes from the environment, so a block without one is whole.
        name: attribute if attribute.policy else replace(attribute, required=False)
        for name, attribute in info.schema.attributes.items()
    }

    def connect(
        instance: str, config: FrozenMap
    ) -> tuple[FrozenMap, tuple[tuple[str, Diagnostic], ...]]:
        choose = complete_connection if instance in trusted else _replace_connection
        return choose(info.schema, environ, instance, config)

    return replace(info, schema=replace(info.schema, attributes=optional), connect=connect)


def _replace_connection(
    schema: ObjectSchema, environ: Mapping[str, str], instance: str, config: FrozenMap
) -> tuple[FrozenMap, tuple[tuple[str, Diagnostic], ...]]:
    """Replace the connection of a block by that of the environment, with a fault for each argument
    that differs from it: a changed address must be seen, not ignored."""
    own = {
        name: schema_attribute
        for name, schema_attribute in schema.attributes.items()
        if not schema_attribute.policy
    }
    environment_values: dict[str, Value] = {}
    faults: list[tuple[str, Diagnostic]] = []
    for name, attribute in own.items():
        source = name_variable(instance, name)
        environment_values[name] = parse_value(attribute, source, environ.get(source) or None)
        faults += (
            (name, fault)
            for fault in _find_refusals(attribute, source, config, environment_values[name])
        )
    blocks = {
        name: None
        for name, schema_attribute in schema.blocks.items()
        if not _is_policy(schema_attribute)
    }
    return FrozenMap({**config, **environment_values, **blocks}), tuple(faults)


def _is_policy(schema: ObjectSchema) -> bool:
    return all(item.policy for item in schema.attributes.values()) and all(
        map(_is_policy, schema.blocks.values())
    )


def _find_refusals(
    attribute: AttributeSchema, source: str, config: FrozenMap, environment_value: Value
) -> Iterator[Diagnostic]:
    name, value = attribute.name, config.get(attribute.name)
    if attribute.required and environment_value is None:
        yield Diagnostic(
            Severity.ERROR,
            f"{FLAG}: the environment does not say where to connect: {source} is not set",
            "Untrusted files cannot set it.",
            advice=f"Whoever runs this sets {source}, with credentials that can only read.",
        )
    elif value is not None and not attribute.secret and value != environment_value:
        fault = "is not set" if environment_value is None else "has another value"
        yield Diagnostic(
            Severity.ERROR,
            f"{FLAG}: {name} comes from the environment, and {source} {fault}",
            "A connection that a pull request chooses could take credentials elsewhere.",
            advice=f"Leave {name} as it was; whoever runs this sets {source}.",
        )
