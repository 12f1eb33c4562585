"""In: the texts of open files, a position, and what the folder declares. Out: faults, completions,
explanations, places and edits, which `server` hands to an editor; JSON Schemas. Must not know:
plans, states, terminals; it connects nowhere, runs nothing and reads no secret. What a log and a
live system say, the command line hands to it.
"""

from typing import TYPE_CHECKING

from ..core.lazy import load_on_use

# Only editors need the server, whose library is optional.
if TYPE_CHECKING:
    from . import json_schema, server
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["json_schema", "server"]
