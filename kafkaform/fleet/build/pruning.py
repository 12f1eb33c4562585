"""Forget old builds, and remove the files that only they needed."""

from __future__ import annotations

from ...core.objects import Objects
from ..spark.store import vacuum
from ..tables import manifest
from .workspace import explain_errors


def prune(objects: Objects, root: str, keep: int) -> int:
    """Keep the newest builds and the current one; return how many were forgotten.

    keep: at least 1. The caller holds the root's lock. Raises StorageError.
    """
    current = manifest.read_current(objects)
    builds = manifest.list_builds(objects)
    newest = builds[-keep:]
    old = [
        manifest_of_build
        for manifest_of_build in builds
        if manifest_of_build not in newest
        and (current is None or manifest_of_build.build != current.build)
    ]
    if not old or current is None:
        return 0
    # Manifests first: a manifest whose files are gone is an error for readers, while a file without
    # a manifest only takes space.
    for manifest_of_build in old:
        manifest.forget_build(objects, manifest_of_build.build)
    # Vacuum works by age: everything since the start of the oldest build that is kept must stay.
    first = min((*newest, current), key=lambda manifest_of_build: manifest_of_build.started)
    with explain_errors("old files cannot be removed"):
        vacuum(root, first)
    return len(old)
