"""Old builds are forgotten, and the files that only they needed are removed."""

from __future__ import annotations

from ...core.objects import Objects
from ..spark.store import vacuum
from ..tables import manifest
from .workspace import explain_errors


def prune(objects: Objects, root: str, keep: int) -> int:
    """Keep the newest builds; how many are forgotten. The current one always stays.

    keep: at least 1. The caller holds the root's lock. Raises StorageError.
    """
    now = manifest.read_current(objects)
    builds = manifest.list_builds(objects)
    kept = builds[-keep:]
    old = [each for each in builds if each not in kept and (now is None or each.build != now.build)]
    if not old or now is None:
        return 0
    # A manifest without its files would be worse than files without a manifest.
    for each in old:
        manifest.forget_build(objects, each.build)
    first = min((*kept, now), key=lambda each: each.started)
    with explain_errors("old files cannot be removed"):
        vacuum(root, first)
    return len(old)
