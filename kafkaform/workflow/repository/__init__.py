"""In: a repository file, folders that a command chose. Out: what the commands do to many folders at
once. Must not know: typer, rich, how anything is drawn.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Most commands are about one folder.
if TYPE_CHECKING:
    from . import checking, conflicts
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["checking", "conflicts"]
