"""Secrets: resolved after approval, held in memory only, never stored or shown."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any

from ..core.diagnostics import Diagnostic, Severity
from ..core.errors import ConfigurationError
from ..core.value import SecretRef
from ..plan.model import Plan
from ..provider.contract import Secrets

Lookup = Callable[[SecretRef], str | None]
"""Where secrets come from: the environment, files, input variables; None = not there."""

HOW = {
    "env": "Set the environment variable {name}.",
    "file": "Write the secret to the file {name}.",
    "variable": "Give the variable with KF_VAR_{name} or a var file.",
}
_ELEMENT = "Give the variable {name} with its element {element}: KF_VAR_{name} or a var file."


def references(value: Any) -> Iterator[SecretRef]:
    """Every secret reference inside a frozen value."""
    if isinstance(value, SecretRef):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from references(item)


def in_plan(plan: Plan, done: Container[str] = ()) -> frozenset[SecretRef]:
    """The secrets that the plan's requests need. done: ids of steps that are not sent again."""
    steps = (step for change in plan.effective for step in change.steps if step.id not in done)
    return frozenset(ref for step in steps for ref in references(step.payload))


def resolve(refs: Iterable[SecretRef], lookup: Lookup) -> Secrets:
    """str(ref) -> secret. Raises ConfigurationError naming every one that is missing."""
    found = {ref: lookup(ref) for ref in set(refs)}
    missing = sorted(ref for ref, secret in found.items() if not secret)
    if missing:
        raise ConfigurationError(
            "secrets are missing",
            diagnostics=tuple(
                Diagnostic(
                    Severity.ERROR,
                    f"The secret {ref} is not there or empty",
                    advice=f"{_how(ref)} Nothing was sent.",
                )
                for ref in missing
            ),
        )
    return {str(ref): secret for ref, secret in found.items() if secret}


def _how(ref: SecretRef) -> str:
    """Where to put the secret; a variable is given whole, not by its elements."""
    name, bracket, rest = ref.name.partition("[")
    if ref.source == "variable" and bracket:
        return _ELEMENT.format(name=name, element=bracket + rest)
    return HOW[ref.source].format(name=ref.name)
