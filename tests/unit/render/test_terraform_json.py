"""Types as Terraform's JSON writes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from kafkaform.core.schema import (
    ANY,
    BOOL,
    NUMBER,
    STRING,
    Type,
    list_of,
    map_of,
    object_of,
    set_of,
)
from kafkaform.core.value import FrozenMap, Value
from kafkaform.render.terraform import infer_type, render_type


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (STRING, "string"),
        (NUMBER, "number"),
        (BOOL, "bool"),
        (ANY, "dynamic"),
        (list_of(STRING), ["list", "string"]),
        (set_of(list_of(BOOL)), ["set", ["list", "bool"]]),
        (map_of(ANY), ["map", "dynamic"]),
        (object_of({"a": NUMBER}), ["object", {"a": "number"}]),
        (object_of({"a": NUMBER}, {"a": None}), ["object", {"a": "number"}, ["a"]]),
        (Type("tuple", items=(STRING, NUMBER)), ["tuple", ["string", "number"]]),
    ],
)
def test_types(kind: Type, data: Any) -> None:
    """Each kind of type has the form that cty gives it."""
    assert render_type(kind) == data


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, "dynamic"),
        (True, "bool"),
        (1, "number"),
        (Decimal("0.5"), "number"),
        ("x", "string"),
        ((1, "x"), ["tuple", ["number", "string"]]),
        (FrozenMap(a=(True,)), ["object", {"a": ["tuple", ["bool"]]}]),
    ],
)
def test_types_of_values(value: Value, data: Any) -> None:
    """What a value itself tells of its type."""
    assert infer_type(value) == data
