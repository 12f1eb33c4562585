"""Parse the files of a configuration folder, and merge override files, whose blocks change what the
other files declare. The bytes are passed in; nothing is read from disk.

The rules of override files are Terraform's: an argument replaces the one of the same name, nested
blocks replace all blocks of their type, `lifecycle` is merged argument by argument, and local
values one by one. Nodes keep the place where they were written, so that a fault is shown in the
file that caused it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors
from ...core.lazy import load
from ...syntax.nodes import ALL_FILES_BYTES, Attribute, Block, File, Lit
from ...syntax.parse import parse
from ..values.faults import Location, make_error, suggest_near
from .blocks import Header, Spot, render_title

_Key: TypeAlias = tuple[str, ...]
"""The identity of a block: its type, labels and alias."""


class _Rule(Struct, frozen=True):
    """How blocks of a type are overridden."""

    fixed: tuple[str, ...] = ()
    """Arguments and nested blocks that cannot be overridden."""
    deep: Mapping[str, _Rule] = field(default_factory=dict)
    """Nested blocks that are merged argument by argument."""
    alone: bool = False
    """Whether it can be in an override file without a block to override. A provider can only
    without alias, because the default instance always exists."""


_CHECKS = ("precondition", "postcondition")
_OBJECT = _Rule(("depends_on",), {"lifecycle": _Rule(_CHECKS)})
_RULES: Mapping[str, _Rule] = {
    "kafkaform": _Rule(alone=True),
    "provider": _Rule(alone=True),
    "variable": _Rule(("validation",)),
    "output": _Rule(("depends_on", *_CHECKS)),
    "module": _Rule(("depends_on",)),
    "resource": _OBJECT,
    "data": _OBJECT,
}
_NEVER = ("check", "import", "moved", "policy", "policy_set", "removed")
"""Types of blocks that are not allowed in override files."""


def merge_overrides(
    files: Sequence[File], overrides: Sequence[File]
) -> tuple[tuple[File, ...], Diagnostics]:
    """The files, with the override files merged into them in their order.

    A block that overrides nothing and does not have to stays in its file: a `terraform` block, or
    one that is not a block of the language.
    """
    merger = _Merger()
    for file in files:
        merger.add_file(file)
        for block in file.body.blocks:
            merger.keep_block(block)
    for file in overrides:
        merger.add_file(file)
        for block in file.body.blocks:
            merger.override(block)
    return tuple(merger.build_files()), tuple(merger.faults)


class _Merger(Struct, eq=False):
    """The files as merged so far."""

    files: list[File] = field(default_factory=list)
    blocks: list[list[Block]] = field(default_factory=list)
    """The merged blocks of each file."""
    indexes: dict[_Key, tuple[int, int]] = field(default_factory=dict)
    """Key of a block or local value -> the indexes of its file and of its block there."""
    faults: list[Diagnostic] = field(default_factory=list)

    def add_file(self, file: File) -> None:
        self.files.append(file)
        self.blocks.append([])

    def keep_block(self, block: Block) -> None:
        """Keep a block of the last file as it is."""
        indexes = len(self.files) - 1, len(self.blocks[-1])
        self.blocks[-1].append(block)
        for key in _list_keys(block):
            self.indexes.setdefault(key, indexes)

    def override(self, block: Block) -> None:
        rule = _RULES.get(block.type)
        if block.type in _NEVER:
            summary = f"{block.type} blocks are not allowed in an override file"
            advice = "Move it into a file that is not an override file."
            self.faults.append(make_error(Header(block), summary, advice=advice))
        elif block.type == "locals" and not block.body.blocks:
            for item in block.body.attributes.values():
                self.override_local(item)
        elif rule is None:
            self.keep_block(block)
        else:
            self.override_block(block, rule)

    def override_block(self, block: Block, rule: _Rule) -> None:
        (key,) = _list_keys(block)  # every block but `locals` has exactly one
        fixed_faults = list(_find_fixed(block, rule))
        self.faults.extend(fixed_faults)
        if fixed_faults:
            return
        if key in self.indexes:
            number, position = self.indexes[key]
            base = self.blocks[number][position]
            self.blocks[number][position] = _merge_block(base, block, rule)
        elif rule.alone and block.get_argument("alias") is None:
            self.keep_block(block)
        else:
            self.faults.append(self.make_missing_fault(Header(block), key, _render_name(block)))

    def override_local(self, item: Attribute) -> None:
        key = ("locals", item.name)
        if key not in self.indexes:
            location = Spot(item.name_range, item.excerpt)
            self.faults.append(self.make_missing_fault(location, key, f'local value "{item.name}"'))
            return
        number, position = self.indexes[key]
        body = self.blocks[number][position].body
        body = replace(body, attributes={**body.attributes, item.name: item})
        self.blocks[number][position] = replace(self.blocks[number][position], body=body)

    def make_missing_fault(self, location: Location, key: _Key, title: str) -> Diagnostic:
        return make_error(
            location,
            f"There is no {title} to override",
            "An override file changes what other files declare.",
            suggest_near(
                key[-1],
                [
                    existing_key[-1]
                    for existing_key in self.indexes
                    if existing_key[:-1] == key[:-1]
                ],
            )
            or "Declare it in another file.",
        )

    def build_files(self) -> Iterator[File]:
        for file, blocks in zip(self.files, self.blocks, strict=True):
            yield replace(file, body=replace(file.body, blocks=tuple(blocks)))


def _list_keys(block: Block) -> Iterator[_Key]:
    """The keys of what can be overridden in a block: the block itself, or each local value."""
    if block.type == "locals":
        yield from (("locals", name) for name in block.body.attributes)
        return
    labels = tuple(label.text for label in block.labels)
    alias = block.get_argument("alias") if block.type == "provider" else None
    alias_words = (str(alias.value),) if isinstance(alias, Lit) else ()
    yield (block.type, *labels, *alias_words)


def _render_name(block: Block) -> str:
    alias = block.get_argument("alias") if block.type == "provider" else None
    return render_title(block) + (
        f' with the alias "{alias.value}"' if isinstance(alias, Lit) else ""
    )


# ── two blocks ──────────────────────────────────────────────────────────────────────────


def _merge_block(base: Block, override_block: Block, rule: _Rule) -> Block:
    """The base with the arguments and nested blocks of the other block."""
    # Of blocks like `lifecycle`, the arguments are merged; they are only deep if the base has one.
    deep = {inner.type for inner in base.body.blocks if inner.type in rule.deep}
    # A nested block can also be written as an argument, or made by a `dynamic` block, so each of
    # these replaces all forms of the same name.
    new_attributes = override_block.body.attributes
    names = {
        *new_attributes,
        *(_get_kind(inner) for inner in override_block.body.blocks if inner.type not in deep),
    }
    attributes = {name: item for name, item in base.body.attributes.items() if name not in names}
    blocks: list[Block] = []
    for inner in base.body.blocks:
        changed = inner
        for override in override_block.body.blocks:
            if inner.type in deep and override.type == inner.type:
                changed = _merge_block(changed, override, rule.deep[inner.type])
        if _get_kind(inner) not in names:
            blocks.append(changed)
    blocks += (inner for inner in override_block.body.blocks if inner.type not in deep)
    body = replace(base.body, attributes={**attributes, **new_attributes}, blocks=tuple(blocks))
    return Block(base.source, base.start, base.end, base.type, base.labels, body)


def _find_fixed(override_block: Block, rule: _Rule) -> Iterator[Diagnostic]:
    """Errors for arguments and nested blocks that cannot be overridden."""
    items: dict[str, Location] = {inner.type: Header(inner) for inner in override_block.body.blocks}
    for name, item in override_block.body.attributes.items():
        items[name] = Spot(item.name_range, item.excerpt)
    for name in rule.fixed:
        if name in items:
            summary = f'"{name}" cannot be overridden'
            yield make_error(items[name], summary, advice="Change it where it is declared.")
    for inner in override_block.body.blocks:
        if inner.type in rule.deep:
            yield from _find_fixed(inner, rule.deep[inner.type])


def _get_kind(inner: Block) -> str:
    """The type of a nested block, or the type of the blocks that a `dynamic` block makes."""
    return inner.labels[0].text if inner.type == "dynamic" and inner.labels else inner.type


class Tree(Struct, frozen=True):
    """The parsed files of a folder."""

    configuration: tuple[File, ...]
    """In the order of file names; override files are merged into the others."""
    values: tuple[File, ...]
    """Files of variable values that are read without being named, the weakest first."""
    contents: Mapping[str, bytes]
    """File name -> its bytes, of all files that were read."""
    diagnostics: Diagnostics = ()
    terraform: bool = False
    """Whether the files are Terraform's."""
    modules: Mapping[str, Tree] = field(default_factory=dict)
    """For the root only: folder, seen from the root -> its files, for every folder of a module."""
    names: Mapping[str, str] = field(default_factory=dict)
    """How modules spell the path of a folder -> the folder's key in `modules`."""


_OPENTOFU = {".tf": ".tofu", ".tf.json": ".tofu.json"}
"""Ending of a file of Terraform -> that of OpenTofu, whose file replaces it."""


class Family(Struct, frozen=True):
    """The file names that belong together: kafkaform's, or Terraform's."""

    configuration: tuple[str, ...]
    """Endings of configuration files."""
    values: tuple[str, ...]
    """Whole names of value files, the weaker first."""
    automatic: tuple[str, ...]
    """Endings of further value files, which are stronger."""
    terraform: bool = False

    def select_configuration(self, names: Iterable[str]) -> list[str]:
        """The configuration files among these names, in their order."""
        # Editors keep copies of a file in its folder under a name with a leading dot.
        selected = [n for n in sorted(names) if n.endswith(self.configuration) and n[0] != "."]
        # The files of Terraform that a file of OpenTofu with the same name replaces.
        existing = set(selected)
        replaced = frozenset(
            name.removesuffix(opentofu_ending) + ending
            for ending, opentofu_ending in _OPENTOFU.items()
            for name in selected
            if name.endswith(opentofu_ending)
            and name.removesuffix(opentofu_ending) + ending in existing
        )
        return [name for name in selected if name not in replaced]

    def select_values(self, names: Collection[str]) -> list[str]:
        """The value files among these names, weakest first."""
        automatic = [n for n in sorted(names) if n.endswith(self.automatic) and n[0] != "."]
        return [n for n in self.values if n in names] + automatic

    def is_override(self, name: str) -> bool:
        """Whether a configuration file is merged into the others, such as `override.tf`."""
        stem = next(name.removesuffix(end) for end in self.configuration if name.endswith(end))
        return stem == "override" or stem.endswith("_override")


FAMILIES = (
    Family(
        (".kf.hcl", ".kf.json"),
        ("kafkaform.kfvars.hcl", "kafkaform.kfvars.json"),
        (".auto.kfvars.hcl", ".auto.kfvars.json"),
    ),
    Family(
        (".tf", ".tf.json", *_OPENTOFU.values()),
        ("terraform.tfvars", "terraform.tfvars.json"),
        (".auto.tfvars", ".auto.tfvars.json"),
        terraform=True,
    ),
)
"""Only the first family with configuration files is read, so that a folder that moves over from
Terraform can keep its old files."""

_ENDINGS = (".hcl", ".json", ".tf", ".tofu", ".tfvars")
_NATIVE_VALUES = (".kfvars.hcl", ".tfvars")


def is_read(name: str) -> bool:
    """Whether a file of this name can be part of the configuration of a folder."""
    # By the endings first: a folder can have thousands of files that kafkaform does not read.
    return name.endswith(_ENDINGS) and any(
        family.select_configuration([name]) or family.select_values([name]) for family in FAMILIES
    )


ParseFile: TypeAlias = Callable[[bytes, str], tuple[File, Diagnostics]]
"""Parses a configuration file from its content and its name."""
_JSON = {
    "configuration": "kafkaform.language.declare.json_bodies:parse_json_file",
    "values": "kafkaform.language.declare.json_bodies:parse_json_values",
}
"""What a file in JSON contains -> its parser, as `module:attribute`: few folders have one."""


def parse_configuration(content: bytes, name: str) -> tuple[File, Diagnostics]:
    """Parse a configuration file in HCL or JSON."""
    if not name.endswith(".json"):
        return parse(content, name)
    parse_json: ParseFile = load(_JSON["configuration"])
    return parse_json(content, name)


def load_folder(
    files: Mapping[str, bytes], folder: str = "", parse_file: ParseFile = parse_configuration
) -> Tree:
    """Parse a folder. files: name without folder -> content; unrelated files are ignored.

    folder: the path of a module, for diagnostics and contents. A module gets its values from its
    caller, so its value files are ignored. parse_file: an editor keeps what it has parsed.
    """
    # Without any configuration, the folder counts as one of kafkaform's, for the message.
    family = next((f for f in FAMILIES if f.select_configuration(files)), FAMILIES[0])
    names = family.select_configuration(files)
    values = [] if folder else family.select_values(files)
    size = sum(len(files[name]) for name in names + values)
    if size > ALL_FILES_BYTES:
        fault = Diagnostic(
            Severity.ERROR,
            f"The configuration is too large: {size:,} bytes",
            f"All files together can have {ALL_FILES_BYTES:,} bytes.",
        )
        return Tree((), (), {}, (fault,), family.terraform)
    if not names:
        fault = Diagnostic(
            Severity.ERROR,
            f"There is no configuration in {folder}"
            if folder
            else "There is no configuration here",
            "The folder has no file whose name ends in .kf.hcl, .kf.json, .tf, .tf.json, .tofu or "
            ".tofu.json.",
            advice="Write one, such as main.kf.hcl, or change to the folder of your configuration.",
        )
        return Tree((), (), {}, (fault,), family.terraform)
    prefix = f"{folder}/" if folder else ""
    parsed = {name: parse_file(files[name], prefix + name) for name in names}
    parsed_values = [parse_values(files[name], name) for name in values]
    faults = [fault for _, problems in (*parsed.values(), *parsed_values) for fault in problems]
    override_names = {name for name in names if family.is_override(name)}
    configuration = tuple(file for name, (file, _) in parsed.items() if name not in override_names)
    overrides = tuple(parsed[name][0] for name in names if name in override_names)
    # It is not known what a faulty file declares, so an override could seem to have no target.
    if overrides and not any(has_errors(problems) for _, problems in parsed.values()):
        configuration, problems = merge_overrides(configuration, overrides)
        faults += problems
    return Tree(
        configuration,
        tuple(file for file, _ in parsed_values),
        {prefix + n: files[n] for n in sorted(names + values)},
        tuple(faults),
        family.terraform,
    )


def parse_values(content: bytes, name: str) -> tuple[File, Diagnostics]:
    """Parse a file of variable values. Faults have no source line: it may contain a secret."""
    # A name without an ending, such as that of a pipe, says nothing about the form.
    guess = not name.endswith(_NATIVE_VALUES) and content.lstrip().startswith(b"{")
    if name.endswith(".json") or guess:
        parse_json: ParseFile = load(_JSON["values"])
        file, faults = parse_json(content, name)
    else:
        file, faults = parse(content, name)
    return file, tuple(replace(fault, excerpt=None) for fault in faults)
