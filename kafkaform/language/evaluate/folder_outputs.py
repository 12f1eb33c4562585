"""`data "kafkaform_outputs"`: what another folder has recorded. It is the one data source that no
provider answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...core.schema import ANY, STRING, AttributeSchema, list_of, make_schema
from ...core.value import FrozenMap
from ..expressions.references import RecordedOutputs
from ..values.conversion import lift_value
from ..values.value import ObjectVal, Val

OWN_PREFIX = "kafkaform"
"""What the names of kafkaform's own data sources begin with, in place of a provider's name."""
OUTPUTS = f"{OWN_PREFIX}_outputs"
SCHEMA = make_schema(
    "The outputs that the last apply of another folder has recorded.",
    AttributeSchema(
        "folder",
        STRING,
        'Path of the other folder, seen from this configuration: `"../platform"`.',
        required=True,
    ),
    AttributeSchema(
        "outputs",
        ANY,
        "Name of an output -> its value. Sensitive outputs are left out, because their values are "
        "never recorded.",
        computed=True,
    ),
    AttributeSchema(
        "sensitive", list_of(STRING), "The names of the sensitive outputs.", computed=True
    ),
)


def lift_answer(answer: FrozenMap) -> Mapping[str, Val]:
    """The answer as expressions see it. An output that is not there has a fault of its own."""
    folder: str = answer["folder"]
    sensitive: Iterable[str] = answer["sensitive"]
    values = {name: lift_value(value) for name, value in answer["outputs"].items()}
    return {
        "folder": folder,
        "outputs": ObjectVal(RecordedOutputs(values, folder, frozenset(sensitive))),
        "sensitive": lift_value(tuple(sensitive), list_of(STRING)),
    }
