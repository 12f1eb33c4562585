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
    now = manifest.read_current(objects)
    builds = manifest.list_builds(objects)
    kept = builds[-keep:]
    old = [each for each in builds if each not in kept and (now is None or each.build != now.build)]
    if not old or now is None:
        return 0
    # Manifests first: a manifest whose files are gone is an error for readers, while a file without
    # a manifest only takes space.
    for each in old:
        manifest.forget_build(objects, each.build)
    # Vacuum works by age: everything since the start of the oldest build that is kept must stay.
    first = min((*kept, now), key=lambda each: each.started)
    with explain_errors("old files cannot be removed"):
        vacuum(root, first)
    return len(old)
