"""`schema_registry_config`: the compatibility level and the mode of the whole registry.

Both always have a value, so the object always exists: a block takes it over. Nothing can remove it;
what nobody declares any more stays as it is.
"""

from __future__ import annotations

from kafkaform.core.change import Change, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ResourceType

from .levels import LEVELS, MODES
from .steps import CLOSE_MODE, OPEN_MODE, SET_LEVEL, SILENT, list_paths, make_step
from .subject_config import SETTINGS

KIND = "schema_registry_config"
KEY = "global"


def _import_key(text: str) -> str:
    if text != KEY:
        raise ValueError(f'the import id of a {KIND} is "{KEY}"')
    return text


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return FrozenMap({name: declared.get(name) for name in SETTINGS})


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    after = change.after or EMPTY
    if change.action in SILENT:
        return ()
    changed = [path[0] for path in list_paths(change, *SETTINGS) if after.get(path[0])]
    return tuple(
        make_step(
            change,
            number,
            SET_LEVEL
            if name == "compatibility"
            else CLOSE_MODE
            if after[name] == "READONLY"
            else OPEN_MODE,
            {"subject": None, name: after[name]},
            list_paths(change, name),
        )
        for number, name in enumerate(changed, 1)
    )


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "The compatibility level and the mode of the registry, for all subjects without their own. "
        f'They always have a value, so a block has to adopt them. The import id is "{KEY}".',
        AttributeSchema(
            "compatibility",
            STRING,
            "What a new version has to be compatible with; not managed if left out.",
            choices=LEVELS,
        ),
        AttributeSchema(
            "mode",
            STRING,
            "Whether schemas can be registered; not managed if left out.",
            choices=MODES,
        ),
    ),
    key=lambda _: KEY,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=_import_key,
    # There is nothing to delete: whoever stops declaring it leaves everything as it is.
    left=lambda live, _: live,
)
