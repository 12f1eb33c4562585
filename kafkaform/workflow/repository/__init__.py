"""In: the folders of a repository, what somebody asks for. Out: plans and checks of all of them,
each with its own state and log, after one look at each system. Must not know how it is drawn.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Most commands are about one folder.
if TYPE_CHECKING:
    from . import checking
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["checking"]
