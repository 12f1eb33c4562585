"""What the deletion of a subject takes away. Shorter than a module should be, because sessions and
nothing else measure it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Impact
from kafkaform.core.resource import Fault, Identity
from kafkaform.core.text.quantity import render_count
from kafkaform.core.value import FrozenMap

from .api.answers import read_numbers
from .api.calls import list_versions
from .api.errors import parse_answer
from .context import RegistryContext


def measure_deletions(
    context: RegistryContext, ids: Sequence[Identity]
) -> Mapping[Identity, Impact]:
    """How many versions each subject has. What cannot be read is left out."""
    calls = [list_versions(identity.key) for identity in ids]
    answers = context.client.ask_all(calls)
    impacts: dict[Identity, Impact] = {}
    for identity, call, answer in zip(ids, calls, answers, strict=True):
        versions = parse_answer(answer, call, read_numbers)
        if not isinstance(versions, Fault):
            text = f"Deletes {render_count(len(versions), 'version')}."
            impacts[identity] = Impact(text, FrozenMap(versions=len(versions)))
    return impacts
