"""The clusters of a repository file for commands that need no folder: `describe topics --provider
cluster.prod` from anywhere in the repository, and a fleet that has the repository's clusters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ...core.diagnostics import Diagnostic, has_errors, suggest
from ...core.errors import ConfigurationError, UsageError
from ...core.resource import ProviderConfig
from ...language.declare.blocks import ProviderBlock
from ...language.evaluate.providers import ProviderInfo, configure_provider
from ...provider.registry import Registry
from .instances import complete_provider
from .repository import FILES, Cluster, Repository
from .repository_file import (
    drop_argument,
    find_repository,
    find_top_file,
    make_scope,
    read_repository,
)

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
    if instance is None:
        file = find_top_file(start)
        if file is None:
            return None
    elif not instance.startswith(PREFIX):
        return None
    else:
        file = find_repository(start)
    if file is None:
        raise UsageError(
            f"{instance} is a cluster of a repository, and there is no {FILES[0]} here or in a "
            "folder above",
            f"Change to a folder of the repository. docs/repository.md explains {FILES[0]}.",
        )
    shown = os.path.relpath(file, start).replace(os.sep, "/")
    repository = read_repository(file, shown, registry=registry)
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
