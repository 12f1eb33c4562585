"""A configuration folder as parsed files; the bytes are passed in, nothing is read here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors
from ...syntax.limits import ALL_FILES_BYTES
from ...syntax.nodes import File
from ...syntax.parse import parse
from .override_files import merge_overrides


class Tree(Struct, frozen=True):
    """configuration: in order of file names, override files merged into the others; values: files
    of variable values that are read without being asked for, weakest first; contents: file name ->
    its bytes; terraform: the files are Terraform's; modules: folder, seen from this
    one -> what it holds, for every folder that a module names (of the root only); names: how
    modules spell their folders -> the folders' own names there."""

    configuration: tuple[File, ...]
    values: tuple[File, ...]
    contents: Mapping[str, bytes]
    diagnostics: Diagnostics = ()
    terraform: bool = False
    modules: Mapping[str, Tree] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


class Family(Struct, frozen=True):
    """A set of file names. configuration, automatic: how they end (the latter are further value
    files); values: whole names, the weaker first."""

    configuration: tuple[str, ...]
    values: tuple[str, ...]
    automatic: tuple[str, ...]
    terraform: bool = False

    def select_configuration(self, names: Iterable[str]) -> list[str]:
        """The configuration files among these names, in their order."""
        return [n for n in sorted(names) if n.endswith(self.configuration) and n[0] != "."]

    def select_values(self, names: Collection[str]) -> list[str]:
        """The value files among these names, weakest first."""
        more = [n for n in sorted(names) if n.endswith(self.automatic) and n[0] != "."]
        return [n for n in self.values if n in names] + more

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
        (".tf", ".tf.json"),
        ("terraform.tfvars", "terraform.tfvars.json"),
        (".auto.tfvars", ".auto.tfvars.json"),
        terraform=True,
    ),
)
"""The first family that has configuration files is read, so that a folder which moves over from
Terraform can keep its old files beside the new ones."""

_NATIVE_VALUES = (".kfvars.hcl", ".tfvars")


def is_read(name: str) -> bool:
    """Whether a file of this name can matter to a folder's configuration."""
    return any(
        family.select_configuration([name]) or family.select_values([name]) for family in FAMILIES
    )


def load_folder(files: Mapping[str, bytes], folder: str = "") -> Tree:
    """Parse a folder. files: name without folder -> content; other names are passed over.

    folder: of a module, as diagnostics and contents name it; its value files do not count.
    """
    family = next((f for f in FAMILIES if f.select_configuration(files)), FAMILIES[0])
    names = family.select_configuration(files)
    values = [] if folder else family.select_values(files)
    size = sum(len(files[name]) for name in names + values)
    if size > ALL_FILES_BYTES:
        return Tree((), (), {}, (_make_size_fault(size),), family.terraform)
    if not names:
        return Tree((), (), {}, (_make_nothing_fault(folder),), family.terraform)
    prefix = f"{folder}/" if folder else ""
    parsed = {name: _parse_configuration(files[name], prefix + name) for name in names}
    given = [parse_values(files[name], name) for name in values]
    faults = [fault for _, problems in (*parsed.values(), *given) for fault in problems]
    over = {name for name in names if family.is_override(name)}
    configuration = tuple(file for name, (file, _) in parsed.items() if name not in over)
    overrides = tuple(parsed[name][0] for name in names if name in over)
    # What a faulty file declares is not known, so much would seem to be missing.
    if overrides and not any(has_errors(problems) for _, problems in parsed.values()):
        configuration, problems = merge_overrides(configuration, overrides)
        faults += problems
    return Tree(
        configuration,
        tuple(file for file, _ in given),
        {prefix + n: files[n] for n in sorted(names + values)},
        tuple(faults),
        family.terraform,
    )


def _parse_configuration(content: bytes, name: str) -> tuple[File, Diagnostics]:
    if not name.endswith(".json"):
        return parse(content, name)
    from .json_bodies import parse_json_file  # noqa: PLC0415  # only JSON files need it

    return parse_json_file(content, name)


def parse_values(content: bytes, name: str) -> tuple[File, Diagnostics]:
    """A file of variable values. A name that says neither form, such as a pipe's, may hold either.
    The faults come without the source line, which may hold a secret."""
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
        "The folder holds no file whose name ends in .kf.hcl, .kf.json, .tf or .tf.json.",
        advice="Write one, such as main.kf.hcl, or go to the folder that has them.",
    )


def _make_size_fault(size: int) -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        f"The configuration is too large: {size:,} bytes",
        f"All files together may have {ALL_FILES_BYTES:,} bytes.",
    )
