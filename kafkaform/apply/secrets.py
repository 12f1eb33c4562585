"""Secrets: looked up by a plan, resolved after the approval, never stored or shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from typing import Any

from msgspec import Struct

from ..core.canonical import dumps
from ..core.change import Change
from ..core.diagnostics import Diagnostic, Range, Severity
from ..core.errors import ConfigurationError
from ..core.resource import Desired, ProviderConfig
from ..core.secret import NoSecret, Secret, holds_secret
from ..core.value import COMMAND, EMPTY, SecretRef, Value, find_references
from ..plan.model import Plan
from ..provider.contract import Secrets

Lookup = Callable[[Collection[SecretRef]], Mapping[SecretRef, Secret | NoSecret | None]]
"""Reads secrets from where they are, all at once; None for one that is not there."""


class Missing(Struct, frozen=True):
    """A secret that is missing or empty."""

    needs: str
    """The address of the object, or the provider instance, that needs it."""
    range: Range | None
    """Its block."""
    cause: NoSecret


NOTHING_SENT = "Nothing was sent."
HOW = {
    "env": "Set the environment variable {name}.",
    "file": "Write the secret to the file {name}.",
    COMMAND: "Let the command print the secret.",
    "variable": "Set the variable with KF_VAR_{name} or in a variables file.",
}
_ELEMENT = (
    "Set the variable {name} including its element {element}, with KF_VAR_{name} or in a "
    "variables file."
)


def find_plan_secrets(plan: Plan, applied: Container[str] = ()) -> Mapping[SecretRef, Change]:
    """Each secret that the requests of a plan need -> the first change that needs it.

    done: ids of steps that are not sent again.
    """
    changes: dict[SecretRef, Change] = {}
    for change in plan.effective:
        for step in change.steps:
            if step.id not in applied:
                for ref in find_references(step.payload):
                    changes.setdefault(ref, change)
    return changes


def resolve_instance_secrets(block: ProviderConfig, lookup: Lookup) -> Secrets:
    """str(ref) -> secret, for all that connecting an instance needs. Raises ConfigurationError
    naming every missing or empty one."""
    needed = set(find_references(block.config))
    answers = lookup(needed) if needed else {}
    user = f'provider "{block.instance}"'
    missing = {
        ref: Missing(user, block.range, _explain(ref, answers[ref]))
        for ref in needed
        if not answers[ref]
    }
    if missing:
        raise make_missing_error(missing)
    return {str(ref): secret for ref, secret in answers.items() if isinstance(secret, Secret)}


def resolve_plan_secrets(plan: Plan, lookup: Lookup, applied: Container[str] = ()) -> Secrets:
    """str(ref) -> secret, for the requests of a plan. Raises ConfigurationError naming every
    missing or empty one, and its block."""
    needed = find_plan_secrets(plan, applied)
    answers = lookup(needed) if needed else {}
    missing = _list_missing(needed, answers)
    if missing:
        raise make_missing_error(missing)
    return {str(ref): secret for ref, secret in answers.items() if isinstance(secret, Secret)}


def find_missing(needed: Mapping[SecretRef, Change], lookup: Lookup) -> Mapping[SecretRef, Missing]:
    """Those of the secrets that are missing or empty. The others are masked from now on in
    everything that is written."""
    return _list_missing(needed, lookup(needed))


def _list_missing(
    needed: Mapping[SecretRef, Change], answers: Mapping[SecretRef, Secret | NoSecret | None]
) -> Mapping[SecretRef, Missing]:
    return {
        ref: Missing(change.address, change.range, _explain(ref, answers[ref]))
        for ref, change in needed.items()
        if not answers[ref]
    }


def _explain(ref: SecretRef, answer: Secret | NoSecret | None) -> NoSecret:
    return answer if isinstance(answer, NoSecret) else NoSecret("", _advise_source(ref))


def refuse_foreign_commands(plan: Plan, desired: Desired, applied: Container[str] = ()) -> None:
    """Raises ConfigurationError if the plan gets a secret from a command that the configuration
    does not have."""
    # A saved plan is a file that anybody can have written. What it changes in the system is shown
    # and approved; it must not choose what runs on this computer.
    needed = {
        ref: c for ref, c in find_plan_secrets(plan, applied).items() if ref.source == COMMAND
    }
    if not needed:
        return
    own = {ref for item in desired.declared for ref in find_references(item.attributes)}
    foreign = {
        ref: Missing(
            change.address,
            change.range,
            NoSecret("The configuration does not have this command.", "Plan again."),
        )
        for ref, change in needed.items()
        if ref not in own
    }
    if foreign:
        raise make_missing_error(foreign)


def make_missing_error(
    missing: Mapping[SecretRef, Missing], advice: str = ""
) -> ConfigurationError:
    """The error that names every missing secret, where it is needed and how to give it.

    advice: what else the user can do.
    """
    return ConfigurationError(
        "secrets are missing",
        diagnostics=tuple(
            Diagnostic(
                Severity.ERROR,
                f"The secret {ref} "
                f"{'cannot be read' if gap.cause.reason else 'is missing or empty'}: "
                f"{gap.needs} needs it",
                gap.cause.reason,
                range=gap.range,
                advice=" ".join(filter(None, (gap.cause.advice, advice or NOTHING_SENT))),
            )
            for ref, gap in sorted(missing.items(), key=lambda item: item[0])
        ),
    )


def _advise_source(ref: SecretRef) -> str:
    """Where the secret has to be put."""
    # A variable is given as a whole, not element by element.
    name, bracket, key = ref.name.partition("[")
    if ref.source == "variable" and bracket:
        return _ELEMENT.format(name=name, element=bracket + key)
    return HOW[ref.source].format(name=ref.name)


def refuse_exposed(plan: Plan) -> None:
    """Raises ConfigurationError if a value of the plan is or contains a secret of this run.

    Called before a plan is saved and before the first record of a run.
    """
    # Everything at once first, which is cheap and almost always finds nothing.
    if not holds_secret(dumps([_select_shown(change) for change in plan.changes])):
        return
    # A record with the secret masked would not be what was approved, and one with the secret stays
    # for ever.
    exposed = [
        Diagnostic(
            Severity.ERROR,
            f"{change.address} contains a secret in plain text, in {location}",
            range=change.range,
            advice="Declare it as a reference, such as secret_env, or choose another secret. "
            "Nothing was sent.",
        )
        for change in plan.changes
        for location in _find_exposed(change)
    ]
    if exposed:
        raise ConfigurationError("the plan contains a secret", diagnostics=tuple(exposed))


def _find_exposed(change: Change) -> Iterator[str]:
    """The names of the arguments of a change that contain a secret."""
    # The name of an object does not count: a user whose password is the user name is no reason to
    # refuse a plan.
    for name, value in sorted(_select_shown(change).items()):
        if any(holds_secret(t) and t not in change.identity.key for t in _walk_texts(value)):
            yield name


def _select_shown(change: Change) -> dict[str, Value]:
    """The values of a change that a plan shows, by the name of their argument."""
    return {**(change.after or EMPTY), "owner": change.owner, "labels": change.labels}


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
