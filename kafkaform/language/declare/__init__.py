"""In: the files of a folder. Out: what the folder declares: blocks by name and address, variables
with their values, the tree of modules; expressions stay unevaluated.
Must not know: instances of blocks, schemas of resource types, live objects.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Only JSON files need `json_bodies`; stores need the others for a backend block.
if TYPE_CHECKING:
    from . import folder, json_bodies, settings
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["folder", "json_bodies", "settings"]
