"""The outputs of a configuration as the state records them."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.resource import Output
from ...core.secret import mask_secrets
from ...core.value import EMPTY, FrozenMap, Value


def record_outputs(outputs: Sequence[Output], recorded: FrozenMap = EMPTY) -> FrozenMap:
    """The outputs as the state records them: sensitive ones without their values, and no secret of
    this run. Deferred ones, whose objects were not read, stay as they are recorded."""
    return FrozenMap(
        {
            **{
                output.name: recorded[output.name]
                for output in outputs
                if output.deferred and output.name in recorded
            },
            **{
                output.name: FrozenMap(
                    value=None if output.sensitive else _mask_value(output.value),
                    sensitive=output.sensitive,
                )
                for output in outputs
                if not output.deferred
            },
        }
    )


def _mask_value(value: Value) -> Value:
    """The value with the secrets in its strings masked."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, FrozenMap):
        return FrozenMap({mask_secrets(key): _mask_value(item) for key, item in value.items()})
    return tuple(map(_mask_value, value)) if isinstance(value, tuple) else value


def read_recorded_outputs(outputs: FrozenMap) -> tuple[Output, ...]:
    """The outputs that a state records."""
    return tuple(Output(name, o["value"], o["sensitive"]) for name, o in sorted(outputs.items()))
