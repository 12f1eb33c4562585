"""`export acls --for folders GLOB`: blocks with the rights that a login of each folder needs for
what its boundary covers. Nothing is read but the repository file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...core.errors import UsageError
from ...provider.registry import Registry
from ...render.text import inline
from ...syntax.write import Code, NewBlock, Writable, quote_string, write_blocks
from ..configuration.repository import RepositoryFolder
from ..configuration.repository_choice import choose_folders
from ..generate.blocks import make_identifier, make_unique
from ..generate.files import GeneratedConfiguration

TOOL, NOUN = "acls", "folders"
VARIABLE = "logins"
_HEAD = """\
# Written by `kafkaform export acls`: the rights of each folder's login.
"""


def export_login_rights(tool: str, chosen: tuple[str, str] | None) -> GeneratedConfiguration:
    """The rights for the folders that the flag chooses: the word folders, and a glob. Raises
    UsageError, and ConfigurationError for a fault of the repository file."""
    if tool != TOOL or chosen is None or chosen[0] != NOUN:
        raise UsageError(
            "the rights of logins are exported for folders of a repository",
            f'Write: kafkaform export {TOOL} --for {NOUN} "teams/*"',
        )
    choice = choose_folders(Path(), False, (chosen[1],), None)
    registry, names = Registry(), set[str]()
    blocks: list[NewBlock] = []
    gaps: dict[str, None] = {}
    for folder in choice.folders:
        fence = folder.fence
        if fence is None:
            gaps[f"{folder.path} has no boundary, so any right can be needed there"] = None
            continue
        for block_or_gap in _list_rights(folder, fence.lists, registry, names):
            if isinstance(block_or_gap, str):
                gaps[block_or_gap] = None
            else:
                blocks.append(block_or_gap)
    variable = NewBlock(
        "variable",
        (VARIABLE,),
        {
            "type": Code("map(string)"),
            "description": "Folder -> the principal of its login, such as User:shop-pipeline.",
        },
    )
    comments = "".join(f"# {inline(gap)}.\n" for gap in gaps)
    text = f"{_HEAD}{comments}\n{write_blocks((variable, *blocks))}" if blocks else ""
    told = tuple(f"{gap}." for gap in gaps)
    return GeneratedConfiguration(text, {}, len(blocks), told, True, {})


def _list_rights(
    folder: RepositoryFolder,
    lists: Mapping[str, tuple[str, ...]],
    registry: Registry,
    names: set[str],
) -> Iterator[NewBlock | str]:
    """The blocks for one folder, and what no block can permit alone."""
    principal = Code(f"var.{VARIABLE}[{quote_string(folder.path)}]")
    for name in sorted({cluster.provider for cluster in folder.uses.values()} or registry.built_in):
        blocks, gaps = registry.load(name).list_login_rights(principal, lists)
        for kind, arguments in blocks:
            label = make_unique(make_identifier(folder.path, "login"), names)
            written: dict[str, Writable] = dict(arguments)
            yield NewBlock("resource", (kind, label), written)
        yield from gaps
