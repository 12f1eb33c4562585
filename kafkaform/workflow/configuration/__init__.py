"""In: a folder's files and the environment. Out: its evaluated configuration, data sources
answered, and what an untrusted folder may not say. Must not know: states, plans.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# A folder without a backend block needs no language to find its state, and most commands are about
# one folder.
if TYPE_CHECKING:
    from . import evaluation, files, repository_choice, untrusted
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["evaluation", "files", "repository_choice", "untrusted"]
