"""A configuration folder as parsed files; the bytes are passed in, nothing is read here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from ..syntax.limits import ALL_FILES_BYTES
from ..syntax.nodes import File
from ..syntax.parse import parse


@dataclass(frozen=True, slots=True)
class Tree:
    """configuration: in order of file names; values: files of variable values that are read
    without being asked for, weakest first; digests: file name -> SHA-256 of its content."""

    configuration: tuple[File, ...]
    values: tuple[File, ...]
    digests: Mapping[str, str]
    diagnostics: Diagnostics = ()


@dataclass(frozen=True, slots=True)
class Family:
    """A set of file names: configuration, the one value file, further value files."""

    configuration: str
    values: str
    automatic: str


FAMILIES = (
    Family("*.kf.hcl", "kafkaform.kfvars.hcl", "*.auto.kfvars.hcl"),
    Family("*.tf", "terraform.tfvars", "*.auto.tfvars"),
)
"""The first family that has configuration files is read, so that a folder which moves over from
Terraform can keep its old files beside the new ones."""
_JSON = ("*.kf.json", "*.kfvars.json", "*.tf.json", "*.tfvars.json")


def load(files: Mapping[str, bytes]) -> Tree:
    """Parse a folder. files: name without folder -> content; other names are passed over."""
    family = next((f for f in FAMILIES if any(_matching(files, f.configuration))), FAMILIES[0])
    configuration = list(_matching(files, family.configuration))
    values = [name for name in files if name == family.values]
    values += [name for name in _matching(files, family.automatic) if name != family.values]
    faults = [*_json_faults(files), *_size_faults(files, configuration + values)]
    if not configuration:
        faults.append(_nothing())
    if any(fault.severity is Severity.ERROR for fault in faults):
        return Tree((), (), {}, tuple(faults))
    parsed = {}
    for name in configuration + values:
        parsed[name], problems = parse(files[name], name)
        faults.extend(problems)
    return Tree(
        tuple(parsed[name] for name in configuration),
        tuple(parsed[name] for name in values),
        {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(parsed)},
        tuple(faults),
    )


def _matching(files: Mapping[str, bytes], pattern: str) -> Iterator[str]:
    return (name for name in sorted(files) if fnmatchcase(name, pattern))


def _nothing() -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        "There is no configuration here",
        "The folder holds no file whose name ends in .kf.hcl.",
        advice="Write one, such as main.kf.hcl, or go to the folder that has them.",
    )


def _json_faults(files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    for name in sorted(files):
        if any(fnmatchcase(name, pattern) for pattern in _JSON):
            yield Diagnostic(
                Severity.ERROR,
                f"{name} is not read: the JSON form is not supported yet",
                advice="Write it as HCL, or move it out of the folder.",
            )


def _size_faults(files: Mapping[str, bytes], names: list[str]) -> Iterator[Diagnostic]:
    total = sum(len(files[name]) for name in names)
    if total > ALL_FILES_BYTES:
        yield Diagnostic(
            Severity.ERROR,
            f"The configuration is too large: {total:,} bytes",
            f"All files together may have {ALL_FILES_BYTES:,} bytes.",
        )
