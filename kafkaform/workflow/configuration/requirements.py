"""Check the demands of the `kafkaform` block: the version of kafkaform, and the backend."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.diagnostics import Diagnostic, Diagnostics, Severity
from ...language.declare.folder import Tree
from ...language.declare.settings import read_settings
from ...version import VERSION
from .backend_block import find_backend_faults

_OPERATOR = re.compile(r"^\s*(~>|=(?!=))")
_PYTHON = {"~>": "~=", "=": "=="}
"""Terraform's spelling of version constraints to Python's, where they differ."""


def find_unmet_demands(tree: Tree) -> Diagnostics:
    """Why the demands of the block cannot be met; nothing if they are met."""
    settings, faults = read_settings(tree)
    if settings.required_version is not None:
        faults = (*faults, *_find_version_faults(settings.required_version))
    if settings.backend is not None:
        faults = (*faults, *find_backend_faults(settings))
    return faults


def _find_version_faults(text: str) -> Iterator[Diagnostic]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415  # it takes as long as Python itself to load
    from packaging.version import Version  # noqa: PLC0415  # it takes as long as Python itself to load

    try:
        allowed = SpecifierSet(",".join(map(_translate_constraint, text.split(","))))
    except InvalidSpecifier:
        yield Diagnostic(
            Severity.ERROR,
            f'required_version "{text}" is not a version constraint',
            advice='Write it as ">= 0.1, < 2.0" or "~> 0.1".',
        )
        return
    # A pre-release of ours satisfies ">= 0.1": Python's rules would refuse it by default.
    if not allowed.contains(Version(VERSION), prereleases=True):
        yield Diagnostic(
            Severity.ERROR,
            f"This configuration needs kafkaform {text}; this is {VERSION}",
            advice="Install a version that fits, or change required_version.",
        )


def _translate_constraint(constraint: str) -> str:
    # Terraform reads a version without an operator as "exactly this one"; Python needs one.
    text = _OPERATOR.sub(lambda match: _PYTHON[match[1]], constraint).strip()
    return text if text[:1] in "<>=!~" else f"=={text}"
