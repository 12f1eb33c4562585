"""Commands about many folders of a repository. In: typed flags. Out: text or JSON, and the gravest
exit code. Must not know: how a plan is made."""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Most commands are about one folder.
if TYPE_CHECKING:
    from . import apply, plan
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["apply", "plan"]
