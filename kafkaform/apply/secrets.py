"""Secrets: looked up by a plan, resolved after the approval, never stored or shown."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any

from ..core.canonical import dumps
from ..core.change import Change
from ..core.diagnostics import Diagnostic, Severity
from ..core.errors import ConfigurationError
from ..core.redaction import holds_secret
from ..core.secret import Secret
from ..core.value import EMPTY, FrozenMap, SecretRef
from ..plan.model import Plan
from ..provider.contract import Secrets

Lookup = Callable[[SecretRef], Secret | None]
"""Reads a secret from the environment, a file or an input variable; None if it is not there."""

HOW = {
    "env": "Set the environment variable {name}.",
    "file": "Write the secret to the file {name}.",
    "variable": "Set the variable with KF_VAR_{name} or in a variables file.",
}
_ELEMENT = (
    "Set the variable {name} including its element {element}, with KF_VAR_{name} or in a "
    "variables file."
)


def find_references(value: Any) -> Iterator[SecretRef]:
    """Every secret reference inside a frozen value."""
    if isinstance(value, SecretRef):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from find_references(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from find_references(item)


def find_plan_secrets(plan: Plan, done: Container[str] = ()) -> Mapping[SecretRef, Change]:
    """Each secret that the requests of a plan need -> the first change that needs it.

    done: ids of steps that are not sent again.
    """
    found: dict[SecretRef, Change] = {}
    for change in plan.effective:
        for step in change.steps:
            if step.id not in done:
                for ref in find_references(step.payload):
                    found.setdefault(ref, change)
    return found


def resolve_secrets(refs: Iterable[SecretRef], lookup: Lookup) -> Secrets:
    """str(ref) -> secret. Raises ConfigurationError naming every missing or empty one."""
    found = {ref: lookup(ref) for ref in set(refs)}
    missing = {ref: None for ref, secret in found.items() if not secret}
    if missing:
        raise make_missing_error(missing)
    return {str(ref): secret for ref, secret in found.items() if secret}


def resolve_plan_secrets(plan: Plan, lookup: Lookup, done: Container[str] = ()) -> Secrets:
    """What `resolve_secrets` does, for the requests of a plan; its error names their blocks."""
    needed = find_plan_secrets(plan, done)
    missing = find_missing(needed, lookup)
    if missing:
        raise make_missing_error(missing)
    return resolve_secrets(needed, lookup)


def find_missing(needed: Mapping[SecretRef, Change], lookup: Lookup) -> Mapping[SecretRef, Change]:
    """Those of the secrets that are missing or empty. The values of the others are dropped at
    once, but are masked from now on in everything that is written."""
    return {ref: change for ref, change in needed.items() if not lookup(ref)}


def make_missing_error(
    missing: Mapping[SecretRef, Change | None], advice: str = ""
) -> ConfigurationError:
    """The error that names every missing secret, where it is needed and how to give it.

    missing: each with the change that needs it; advice: what else the user can do.
    """
    return ConfigurationError(
        "secrets are missing",
        diagnostics=tuple(
            Diagnostic(
                Severity.ERROR,
                f"The secret {ref} is missing or empty"
                + (f": {change.address} needs it" if change else ""),
                range=change.range if change else None,
                advice=f"{_advise_source(ref)} {advice or 'Nothing was sent.'}",
            )
            for ref, change in sorted(missing.items(), key=lambda item: item[0])
        ),
    )


def _advise_source(ref: SecretRef) -> str:
    """Where the secret has to be put."""
    # A variable is given as a whole, not element by element.
    name, bracket, rest = ref.name.partition("[")
    if ref.source == "variable" and bracket:
        return _ELEMENT.format(name=name, element=bracket + rest)
    return HOW[ref.source].format(name=ref.name)


def refuse_exposed(plan: Plan) -> None:
    """Raises ConfigurationError if a value of the plan is or contains a secret of this run.

    Called before a plan is saved and before the first record of a run.
    """
    # A record with the secret masked would not be what was approved, and one with the secret stays
    # for ever.
    found = [
        Diagnostic(
            Severity.ERROR,
            f"{change.address} contains a secret in plain text, in {place}",
            range=change.range,
            advice="Declare it as a reference, such as secret_env, or choose another secret. "
            "Nothing was sent.",
        )
        for change in plan.changes
        for place in _find_exposed(change)
    ]
    if found:
        raise ConfigurationError("the plan contains a secret", diagnostics=tuple(found))


def _find_exposed(change: Change) -> Iterator[str]:
    """The names of the arguments of a change that contain a secret."""
    said = FrozenMap({**(change.after or EMPTY), "owner": change.owner, "labels": change.labels})
    # All at once first, which is cheap and almost always finds nothing. The name of an object does
    # not count: a user whose password is the user name is no reason to refuse a plan.
    if holds_secret(dumps(said)):
        for name, value in sorted(said.items()):
            if any(holds_secret(t) and t not in change.identity.key for t in _walk_texts(value)):
                yield name


def _walk_texts(value: Any) -> Iterator[str]:
    """Every text in a frozen value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _walk_texts(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _walk_texts(item)
