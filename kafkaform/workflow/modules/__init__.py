"""Modules from Git repositories: fetched by `kafkaform init`, pinned by a lock file, and read
offline from then on.

In: sources of modules, the lock file. Out: files of repositories at their locked commits. It must
not know what the files mean.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Few configurations have modules from Git.
if TYPE_CHECKING:
    from . import cache
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["cache"]
