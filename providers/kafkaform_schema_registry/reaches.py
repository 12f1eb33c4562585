"""The subjects that an object has or refers to, for the boundary of a folder; small, because only
folders with a boundary load it."""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.resource import Reach
from kafkaform.core.value import FrozenMap

from .kinds import global_config, schema, subject_config
from .kinds.subject_names import name_subject


def list_reaches(kind: str, attributes: FrozenMap) -> tuple[Reach, ...] | None:
    """See `kafkaform.provider.contract.Provider`."""
    if kind == global_config.KIND:
        return (Reach("", "", "the level and the mode of the registry concern all subjects"),)
    if kind not in (schema.KIND, subject_config.KIND):
        return None
    return tuple(_reach_subjects(attributes))


def _reach_subjects(attributes: FrozenMap) -> Iterator[Reach]:
    subject = name_subject(attributes)
    attribute = "subject" if attributes.get("subject") is not None else "topic"
    yield Reach("subjects", subject, f'the subject "{subject}"', (attribute,))
    for reference in attributes.get("references") or ():
        name = str(reference["subject"])
        yield Reach("subjects", name, f'the reference to the subject "{name}"', ("references",))
