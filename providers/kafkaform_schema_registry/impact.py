"""What the deletion of a subject takes away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Impact
from kafkaform.core.resource import Fault, Identity
from kafkaform.core.value import FrozenMap

from .api.answers import read_numbers
from .api.calls import list_referring, list_versions
from .api.errors import parse_answer
from .context import RegistryContext

MAX_VERSIONS = 20
"""The latest versions of a subject whose references are counted."""


def measure_deletions(
    context: RegistryContext, ids: Sequence[Identity]
) -> Mapping[Identity, Impact]:
    """How many versions each subject has, and how many schemas refer to them. What cannot be read
    is left out."""
    calls = [list_versions(identity.key) for identity in ids]
    answers = context.client.ask_all(calls)
    found: dict[Identity, Impact] = {}
    for identity, call, answer in zip(ids, calls, answers, strict=True):
        versions = parse_answer(answer, call, read_numbers)
        if not isinstance(versions, Fault):
            found[identity] = _describe(context, identity.key, versions)
    return found


def _describe(context: RegistryContext, subject: str, versions: tuple[int, ...]) -> Impact:
    asked = [list_referring(subject, version) for version in sorted(versions)[-MAX_VERSIONS:]]
    referring: set[int] = set()
    for call, answer in zip(asked, context.client.ask_all(asked), strict=True):
        ids = parse_answer(answer, call, read_numbers)
        referring |= set() if isinstance(ids, Fault) else {*ids}
    text = f"deletes {_count(len(versions), 'version')}"
    if referring:
        text += f"; {_count(len(referring), 'schema')} of other subjects refer to it"
    figures = FrozenMap(versions=len(versions), referring=len(referring))
    return Impact(f"{text[0].upper()}{text[1:]}.", figures)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
