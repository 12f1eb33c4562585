"""`schema_registry_subject_config`: the compatibility level and the mode of one subject.

The object exists as long as the subject has one of its own. What a block leaves out is the
registry's, and the plan shows its removal.
"""

from __future__ import annotations

from kafkaform.core.change import Action, Change, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ResourceType

from . import subject_names as names
from .levels import INHERITED, LEVELS, MODES
from .steps import (
    CLOSE_MODE,
    OPEN_MODE,
    REMOVE_LEVEL,
    REMOVE_MODE,
    SET_LEVEL,
    SILENT,
    list_paths,
    make_step,
)

KIND = "schema_registry_subject_config"
SETTINGS = ("compatibility", "mode")


def _target(declared: FrozenMap, observed: Observed | None, _: Facts, keep: bool) -> FrozenMap:
    live = observed.attributes if observed is not None and keep else EMPTY
    return FrozenMap(
        subject=names.name_subject(declared),
        **{name: _choose(declared.get(name), live.get(name)) for name in SETTINGS},
    )


def _choose(declared: object, live: object) -> object:
    return live or INHERITED if declared in (None, INHERITED) else declared


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    after = change.after or EMPTY
    return tuple(
        _make_step(change, number, name, after.get(name) or INHERITED)
        for number, name in enumerate(_list_changed(change), 1)
    )


def _list_changed(change: Change) -> list[str]:
    """The settings to send. A new object has only what is not inherited, which is nothing."""
    changed = {path[0] for path in list_paths(change, *SETTINGS)}
    before, after = change.before or EMPTY, change.after or EMPTY
    return [
        name
        for name in SETTINGS
        if name in changed and (before.get(name) or INHERITED) != (after.get(name) or INHERITED)
    ]


def _make_step(change: Change, number: int, name: str, value: str) -> Step:
    """The first step of a creation or a deletion makes all paths true that no other one does."""
    first = change.action in (Action.CREATE, Action.DELETE) and number == 1
    separate = {attribute for attribute in _list_changed(change) if attribute != name}
    paths = tuple(
        path
        for path in list_paths(change)
        if path[0] == name or (first and path[0] not in separate)
    )
    removed = value == INHERITED
    payload = {"subject": change.identity.key, name: None if removed else value}
    if name == "compatibility":
        request = REMOVE_LEVEL if removed else SET_LEVEL
    else:
        request = REMOVE_MODE if removed else CLOSE_MODE if value == "READONLY" else OPEN_MODE
    return make_step(change, number, request, payload, paths)


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "The compatibility level and the mode of one subject. The import id is the subject.",
        names.SUBJECT,
        names.TOPIC_NAME,
        names.PART,
        AttributeSchema(
            "compatibility",
            STRING,
            "What a new version has to be compatible with. INHERITED: the registry's own level.",
            default=INHERITED,
            choices=(*LEVELS, INHERITED),
        ),
        AttributeSchema(
            "mode",
            STRING,
            "Whether schemas can be registered. INHERITED: the registry's own mode.",
            default=INHERITED,
            choices=(*MODES, INHERITED),
        ),
        conflicts=names.CONFLICTS,
    ),
    key=names.name_subject,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=names.check_subject,
    settings=True,
)
