"""Write what a provider proposes as an override file of the configuration's folder.

An override file changes arguments of blocks that other files declare, so that nobody has to edit
them. Each proposal replaces the file of the one before it, and no other file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ...core.address import Address
from ...core.diagnostics import has_errors
from ...core.errors import ConfigurationError, StorageError, UsageError
from ...core.resource import Declared
from ...core.storage import read_named_file
from ...core.value import FrozenMap, Value
from ...language.declare.folder import FAMILIES
from ...syntax.nodes import FILE_BYTES
from ...syntax.write import Code, NewBlock, Writable, quote_string, write_blocks, write_value
from ..configuration.evaluation import Configuration
from ..connection import Connection
from ..plan_documents import save_file

_MARK = "# Proposed by `kafkaform propose`"
_HEAD = f"""\
{_MARK}. The next proposal replaces this file.
# It overrides arguments of blocks that other files declare.

"""


def read_declared(connection: Connection, scope_id: str) -> tuple[Declared, ...] | None:
    """What the configuration declares in the system of this connection, None without a
    configuration. scope_id: of the system that answered. Raises ConfigurationError."""
    configuration = connection.configuration
    if configuration is None:
        return None
    configuration.asking.systems.note(connection.settings, scope_id, connection.provider.words)
    try:
        desired = configuration.evaluate().desired
    finally:
        configuration.asking.close()
    if has_errors(desired.diagnostics):
        raise ConfigurationError("the configuration has faults", diagnostics=desired.diagnostics)
    return tuple(d for d in desired.declared if d.identity.instance == connection.instance)


def choose_override_file(configuration: Configuration | None, path: Path) -> Path:
    """The file to write. Raises UsageError for a name that does not make it an override file of
    the folder, and for a file that no proposal has written."""
    if configuration is None:
        raise UsageError(
            "a file overrides blocks of a configuration, and flags name the system",
            "Leave --out away, or run it in the folder of a configuration without these flags.",
        )
    family = FAMILIES[1 if configuration.tree.terraform else 0]
    ending = family.configuration[0]
    inside = path.resolve().parent == configuration.folder.resolve()
    if not (inside and path.name.endswith(ending) and family.is_override(path.name)):
        raise UsageError(
            f"{path} would not override the files of this folder",
            f"Name a file of this folder that ends in _override{ending}, such as "
            f"proposal_override{ending}.",
        )
    if path.exists() and not _read_head(path).startswith(_MARK):
        raise UsageError(
            f"{path} was not written by a proposal, and is not overwritten",
            "Name another file with --out.",
        )
    return path


def _read_head(path: Path) -> str:
    try:
        return read_named_file(path, FILE_BYTES)[: len(_HEAD)].decode("utf-8", "replace")
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read: {error.strerror}", "Choose another place."
        ) from None


def save_overrides(
    path: Path, arguments: Mapping[Address, FrozenMap], declared: Sequence[Declared]
) -> None:
    """Write the arguments of these objects, and replace an earlier proposal. Raises
    StorageError."""
    save_file(path, render_overrides(arguments, declared).encode(), private=False)


def render_overrides(arguments: Mapping[Address, FrozenMap], declared: Iterable[Declared]) -> str:
    """The text of the file. declared: everything that the blocks of these objects declare. Other
    instances of a block keep the values that they have."""
    instances: dict[Address, dict[Address, FrozenMap]] = defaultdict(dict)
    blocks = {address.resource for address in arguments}
    for item in sorted(declared, key=lambda item: str(item.address)):
        if item.address.resource in blocks:
            instances[item.address.resource][item.address] = item.attributes
    return _HEAD + write_blocks(_make_blocks(instances, arguments))


def _make_blocks(
    instances: Mapping[Address, Mapping[Address, FrozenMap]],
    arguments: Mapping[Address, FrozenMap],
) -> Iterator[NewBlock]:
    for block, values in sorted(instances.items(), key=lambda item: str(item[0])):
        assert not block.module, f"{block} is in a module"
        names = sorted({name for identity in values for name in arguments.get(identity, ())})
        yield NewBlock(
            "resource",
            (block.type, block.name),
            {
                name: _join_values(
                    {
                        address.key: arguments[address].get(name, attributes.get(name))
                        if address in arguments
                        else attributes.get(name)
                        for address, attributes in values.items()
                    }
                )
                for name in names
            },
        )


def _join_values(values: Mapping[str | int | None, Value]) -> Writable:
    """One expression for the values of all instances of a block, by their keys."""
    first, *remaining = values.values()
    if all(value == first for value in remaining):
        return _render(first)
    numbers = sorted(key for key in values if isinstance(key, int))
    if numbers:  # `count` has made them
        listed = "".join(f"{_render(values[number]).text},\n" for number in numbers)
        return Code(f"[\n{listed}][count.index]")
    lines = "".join(
        f"{quote_string(str(key))} = {_render(item).text}\n" for key, item in values.items()
    )
    return Code(f"{{\n{lines}}}[each.key]")


def _render(value: Value) -> Code:
    return Code("null" if value is None else write_value(value))
