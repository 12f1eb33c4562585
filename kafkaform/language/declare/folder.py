"""Parse the files of a configuration folder. The bytes are passed in; nothing is read from disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors
from ...syntax.limits import ALL_FILES_BYTES
from ...syntax.nodes import File
from ...syntax.parse import parse
from .override_files import merge_overrides


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
        replaced = _list_replaced(selected)
        return [name for name in selected if name not in replaced]

    def select_values(self, names: Collection[str]) -> list[str]:
        """The value files among these names, weakest first."""
        automatic = [n for n in sorted(names) if n.endswith(self.automatic) and n[0] != "."]
        return [n for n in self.values if n in names] + automatic

    def is_override(self, name: str) -> bool:
        """Whether a configuration file is merged into the others, such as `override.tf`."""
        stem = next(name.removesuffix(end) for end in self.configuration if name.endswith(end))
        return stem == "override" or stem.endswith("_override")


def _list_replaced(names: Collection[str]) -> frozenset[str]:
    """The files of Terraform that a file of OpenTofu with the same name replaces."""
    existing = set(names)
    return frozenset(
        name.removesuffix(opentofu_ending) + ending
        for ending, opentofu_ending in _OPENTOFU.items()
        for name in names
        if name.endswith(opentofu_ending)
        and name.removesuffix(opentofu_ending) + ending in existing
    )


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


def parse_configuration(content: bytes, name: str) -> tuple[File, Diagnostics]:
    """Parse a configuration file in HCL or JSON."""
    if not name.endswith(".json"):
        return parse(content, name)
    from .json_bodies import parse_json_file  # noqa: PLC0415  # only JSON files need it

    return parse_json_file(content, name)


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
        return Tree((), (), {}, (_make_size_fault(size),), family.terraform)
    if not names:
        return Tree((), (), {}, (_make_nothing_fault(folder),), family.terraform)
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
        from .json_bodies import parse_json_values  # noqa: PLC0415  # only JSON files need it

        file, faults = parse_json_values(content, name)
    else:
        file, faults = parse(content, name)
    return file, tuple(replace(fault, excerpt=None) for fault in faults)


def _make_nothing_fault(folder: str) -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        f"There is no configuration in {folder}" if folder else "There is no configuration here",
        "The folder has no file whose name ends in .kf.hcl, .kf.json, .tf, .tf.json, .tofu or "
        ".tofu.json.",
        advice="Write one, such as main.kf.hcl, or change to the folder of your configuration.",
    )


def _make_size_fault(size: int) -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        f"The configuration is too large: {size:,} bytes",
        f"All files together can have {ALL_FILES_BYTES:,} bytes.",
    )
