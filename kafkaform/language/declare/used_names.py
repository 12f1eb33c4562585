"""List the names of providers and of their types that a configuration uses, by its text alone.

They decide whether installed provider packages have to be looked for, which takes long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...syntax.nodes import Block
from .folder import Tree

_TYPE = re.compile(r'"?(?:module\.[\w-]+(?:\[[^]]*\])?\.)*(?P<type>[\w-]+)\.')
"""The resource type in an address, which is in quotes in JSON."""


def list_used_names(tree: Tree) -> frozenset[str]:
    """The providers, resource types and data sources that the files of the tree name."""
    block_names = (
        list_block_names(block) for file in tree.configuration for block in file.body.blocks
    )
    return frozenset[str]().union(*block_names, *map(list_used_names, tree.modules.values()))


def list_block_names(block: Block) -> Iterator[str]:
    """The providers, resource types and data sources that one block names."""
    if block.type in ("provider", "resource", "data", "ephemeral"):
        yield from (label.text for label in block.labels[:1])
    elif block.type == "check":
        for inner in block.list_blocks("data"):
            yield from list_block_names(inner)
    # Objects of a type can be left in the state when its last block is gone, so addresses count.
    # They are read from the text, because the address may have faults that are reported later.
    elif block.type in ("removed", "moved", "import"):
        for name in ("from", "to"):
            address = block.get_argument(name)
            match = _TYPE.match(address.source.text, address.start) if address else None
            if match is not None and match["type"] != "module":
                yield match["type"]
