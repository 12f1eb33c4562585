"""Write live objects into new configuration files of a folder, and prove that the files declare
them. New files are written all or none, and never over one that exists."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import Diagnostic, Range, Severity
from ...core.errors import KafkaformError, StorageError, UsageError
from ...core.resource import Declared, Identity
from ...core.schema import AttributeSchema
from ...core.secret import mask_secrets
from ...core.value import EMPTY, FrozenMap, SecretRef
from ...language.declare.folder import Tree
from ...language.declare.top_level import declare_blocks
from ...provider.contract import ResourceType
from ...render.text import inline
from ...syntax.parse import parse
from ...syntax.write import Code, quote_string
from ..configuration.evaluation import Configuration
from .blocks import (
    TakenNames,
    UndeclaredObject,
    fill_defaults,
    find_prefix,
    generate_blocks,
    render_imports,
)

_NOWHERE = Range("", 1, 1, 1, 1)

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120
"""Characters of a file name, without its ending."""
NAMES_SHOWN = 5


class Stock(Struct, frozen=True):
    """The objects to take over."""

    undeclared: tuple[UndeclaredObject, ...] = ()
    """Objects without a block."""
    declared: tuple[tuple[Address, str], ...] = ()
    """The address and the import id of objects that have a block."""
    gaps: tuple[str, ...] = ()
    """What is missing or can be missing, for people."""
    failed: bool = False
    """A listing did not answer."""

    def __add__(self, stock: Stock) -> Stock:
        return Stock(
            self.undeclared + stock.undeclared,
            self.declared + stock.declared,
            tuple(dict.fromkeys((*self.gaps, *stock.gaps))),
            self.failed or stock.failed,
        )

    @property
    def count(self) -> int:
        return len(self.undeclared) + len(self.declared)


class GeneratedConfiguration(Struct, frozen=True):
    """Configuration for objects."""

    text: str
    """HCL with a block for each object, and import blocks that take the objects over."""
    texts: Mapping[str, str]
    """Further files, if the configuration was split: the first part of the names -> HCL."""
    count: int
    """The number of objects."""
    gaps: tuple[str, ...]
    """What is missing or can be missing, for people."""
    complete: bool
    """Every listing answered."""
    documents: Mapping[str, str] = {}
    """Files that the configuration reads with `file()`, such as schemas: path -> text."""


def generate_configuration(
    configuration: Configuration,
    tree: Tree,
    types: Mapping[str, ResourceType],
    stock: Stock,
    *,
    name: str,
    source: str = "",
    split: bool = False,
    documents: bool = False,
) -> GeneratedConfiguration:
    """Write and prove the files of a stock. source, split: as for `render_stock`; name: as for
    `prove_files`; documents: keep long texts in files of their own.

    Raises KafkaformError as `prove_files` does.
    """
    files, texts = {"": ""}, dict[str, str]()
    if stock.count:
        files = render_stock(types, tree, stock, source=source, split=split)
        # With the texts inside, since files cannot be read before they are written.
        prove_files(configuration, tree, files, stock, name)
        if documents:
            objects, texts = extract_documents(stock.undeclared, types)
            outside = replace(stock, undeclared=objects)
            files = render_stock(types, tree, outside, source=source, split=split)
    # The second line of defence: a plain attribute of a live object can contain a known secret.
    masked = {file_name: mask_secrets(text) for file_name, text in files.items()}
    texts = {path: mask_secrets(text) for path, text in texts.items()}
    return GeneratedConfiguration(
        masked.pop(""), masked, stock.count, stock.gaps, not stock.failed, texts
    )


def render_stock(
    types: Mapping[str, ResourceType],
    tree: Tree,
    stock: Stock,
    *,
    source: str = "",
    split: bool = False,
) -> dict[str, str]:
    """Write the stock as more files of the folder with this tree: the first part of the names ->
    HCL. "" is the main file, and the only one without `split`.

    source: the words after `import --from`, if the objects are those of files. split: give a file
    to each first part that several objects have.
    """
    names, items = _find_taken_names(tree), stock.undeclared
    if tree.terraform:
        # Terraform, which may read the same files, has no function for a time or a size.
        types = {name: replace(kind, unit=None) for name, kind in types.items()}
    elif not source:
        # Terraform has no composites. And an import of one creates those of its objects that are
        # missing, as objects of files can be.
        composites, covered = gather_composites(items, types)
        items = (*(i for i in items if i.identity not in covered), *composites)
    groups = _divide(items, types) if split else {"": items}
    head = _render_header(stock, f"--from {source}" if source else "--all")
    files = {}
    for prefix, members in sorted(groups.items()):
        above = () if prefix else (head, render_imports(sorted(stock.declared)))
        blocks = generate_blocks(members, types, names)
        files[prefix] = "\n".join(text for text in (*above, blocks) if text)
    return files


def _divide(
    items: Iterable[UndeclaredObject], types: Mapping[str, ResourceType]
) -> dict[str, Sequence[UndeclaredObject]]:
    """The objects by the first part of their names; "" for what stands alone."""
    groups: dict[str, list[UndeclaredObject]] = defaultdict(list)
    for item in items:
        groups[find_prefix(item, types[item.identity.kind])].append(item)
    large = {prefix for prefix, members in groups.items() if prefix and len(members) > 1}
    remaining = [item for prefix in groups if prefix not in large for item in groups[prefix]]
    return {"": remaining, **{prefix: groups[prefix] for prefix in large}}


def _render_header(stock: Stock, command: str) -> str:
    head = (
        f"# Written by `kafkaform import {inline(command)}`.\n"
        "# Once it is applied, the import blocks have done their work and can go.\n"
    )
    return head + "".join(f"# {inline(gap)}\n" for gap in stock.gaps)


def _find_taken_names(tree: Tree) -> TakenNames:
    """The names of the folder's own blocks and locals."""
    names = TakenNames()
    declarations, _ = declare_blocks(tree)
    names.locals.update(declarations.locals)
    for address in declarations.resources:
        names.blocks[address.type].add(address.name)
    return names


def prove_files(
    configuration: Configuration, own: Tree, files: Mapping[str, str], stock: Stock, name: str
) -> None:
    """Evaluate the generated files together with the folder's own.

    files: as from `render_stock`; name: of the main file in faults. Raises KafkaformError if they
    do not declare exactly the stock.
    """
    # A wrong generator must not become a plan that changes the live objects.
    parsed = [
        parse(text.encode(), _name_part(name, part_name)) for part_name, text in files.items()
    ]
    tree = replace(own, configuration=(*own.configuration, *(file for file, _ in parsed)))
    desired = replace(configuration, tree=tree).evaluate(offline=True).desired
    attributes_by_identity = {item.identity: item.attributes for item in desired.declared}
    wrong = [
        str(item.identity)
        for item in stock.undeclared
        if not _has_arguments(attributes_by_identity.get(item.identity, EMPTY), item.arguments)
    ]
    generated_names = {_name_part(name, part_name) for part_name in files}
    stock_identities = {item.identity for item in stock.undeclared}
    wrong += [
        str(item.identity)
        for item in desired.declared
        if item.range
        and item.range.file in generated_names
        and item.identity not in stock_identities
    ]
    faults = (
        *(fault for _, parse_faults in parsed for fault in parse_faults),
        *desired.diagnostics,
    )
    broken = tuple(d for d in faults if d.severity is Severity.ERROR)
    if broken or wrong:
        mismatch = f": {', '.join(wrong[:NAMES_SHOWN])}" if wrong else ""
        fault = Diagnostic(
            Severity.ERROR,
            f"The generated text does not match the objects{mismatch}; nothing was written",
            advice="Exclude these objects with --match or --type.",
        )
        raise KafkaformError(fault.summary, diagnostics=(fault, *broken))


def _name_part(name: str, prefix: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _has_arguments(attributes: FrozenMap, arguments: FrozenMap) -> bool:
    """Whether a declared object has these arguments. Secrets are placeholders on both sides."""
    for name, value in arguments.items():
        declared = attributes.get(name)
        entries = declared.values() if isinstance(declared, FrozenMap) else (declared,)
        if declared != value and not any(isinstance(entry, SecretRef) for entry in entries):
            return False
    return bool(attributes)


def gather_composites(
    objects: Sequence[UndeclaredObject], types: Mapping[str, ResourceType]
) -> tuple[list[UndeclaredObject], frozenset[Identity]]:
    """The composites, and the objects that they stand for."""
    by_instance: dict[str, list[UndeclaredObject]] = defaultdict(list)
    for item in objects:
        by_instance[item.identity.instance].append(item)
    composites: list[UndeclaredObject] = []
    covered = set[Identity]()
    for instance, items in sorted(by_instance.items()):
        identities = {item.identity for item in items}
        attributes = [
            (item.identity.kind, fill_defaults(item.arguments, types[item.identity.kind].schema))
            for item in items
        ]
        for kind in types.values():
            for arguments in kind.gather(attributes) if kind.gather is not None else ():
                members = set(_expand(kind, instance, arguments))
                # A composite that stands for more than what is live would create the rest.
                if members and members <= identities:
                    key = f"{len(composites):06}"
                    identity = Identity(instance, kind.name, key)
                    composites.append(UndeclaredObject(identity, arguments, None))
                    covered |= members
    return composites, frozenset(covered)


def _expand(kind: ResourceType, instance: str, arguments: FrozenMap) -> Iterable[Identity]:
    if kind.expand is None:
        return
    identity = Identity(instance, kind.name, "")
    address = Address(type=kind.name, name="new")
    whole = fill_defaults(arguments, kind.schema)
    for component in kind.expand(Declared(identity, address, whole, _NOWHERE)):
        yield component.identity


def extract_documents(
    items: Iterable[UndeclaredObject], types: Mapping[str, ResourceType]
) -> tuple[tuple[UndeclaredObject, ...], dict[str, str]]:
    """The objects with `file("schemas/NAME.avsc")` in place of each long text, and the files: path
    -> text. The paths are the same for the same objects, whatever their order is."""
    documents: dict[str, str] = {}
    paths: set[str] = set()
    changed: dict[int, UndeclaredObject] = {}
    indexed = sorted(enumerate(items), key=lambda pair: pair[1].identity)
    for index, item in indexed:
        codes: dict[str, Code] = {}
        for attribute, ending in list_texts(item.arguments, types[item.identity.kind]):
            path = choose_path(item.identity, ending, paths)
            documents[path] = str(item.arguments[attribute.name])
            codes[attribute.name] = Code(f"file({quote_string(path)})")
        arguments: Mapping[str, object] = {**item.arguments, **codes}
        changed[index] = replace(item, arguments=FrozenMap(arguments)) if codes else item
    return tuple(changed[index] for index in sorted(changed)), documents


def list_texts(arguments: FrozenMap, kind: ResourceType) -> Iterator[tuple[AttributeSchema, str]]:
    """The arguments that are files, with the endings of these."""
    for attribute in kind.schema.attributes.values():
        value = arguments.get(attribute.name)
        if attribute.ending is not None and isinstance(value, str) and value:
            yield attribute, attribute.ending(arguments)


def choose_path(identity: Identity, ending: str, paths: set[str]) -> str:
    """A path that no other document has, also where the case of letters makes no difference.
    paths: the paths of the others, in small letters."""
    folder = f"{identity.kind.rpartition('_')[2]}s"
    stem = _UNSAFE.sub("_", identity.key).strip("._")[:_LONGEST] or "document"
    number, name = 1, stem
    while f"{folder}/{name}{ending}".lower() in paths:
        number += 1
        name = f"{stem}_{number}"
    paths.add(f"{folder}/{name}{ending}".lower())
    return f"{folder}/{name}{ending}"


def refuse_existing(path: Path) -> None:
    """Raises UsageError for a file that exists, StorageError for a path that cannot be one."""
    try:
        exists = path.exists()
    except OSError as error:  # such as a name that is too long
        raise StorageError(
            f"{path} cannot be written: {error.strerror}", "Choose another place."
        ) from None
    if exists:
        raise UsageError(f"{path} exists, and is not overwritten", "Name a new file with --out.")


def write_new_files(texts: Mapping[Path, str]) -> None:
    """Write these files, and the folders that they are in. Raises UsageError, StorageError; then
    none of the files is there."""
    for path in texts:
        refuse_existing(path)
    written: list[Path] = []
    for path, text in texts.items():
        try:
            path.parent.mkdir(exist_ok=True)
            # "x": a file that somebody has written since then is not overwritten.
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
        except OSError as error:
            for written_file in written:
                written_file.unlink(missing_ok=True)
            raise StorageError(
                f"{path} cannot be written: {error.strerror}", "Choose another place."
            ) from None
