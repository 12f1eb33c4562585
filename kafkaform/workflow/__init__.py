"""In: a folder, what a command line or a program asks for, callbacks. Out: what the commands do:
plans, applies, imports, transfers, recorded and returned as data.
Must not know: typer, rich, how anything is drawn. Nothing here prints or asks a person.
"""

from typing import TYPE_CHECKING

from ..core.lazy import load_on_use

# Most commands do without them.
if TYPE_CHECKING:
    from . import audit_log, live_looks, sealing
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["audit_log", "live_looks", "sealing"]
