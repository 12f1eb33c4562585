"""Text: strings for which lists may be written, as Kafka's configs have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.resource import Desired
from kafkaform.core.schema import STRING, TEXT, AttributeSchema, make_schema, map_of
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import Schemas, TypeInfo, VariableInputs, build_desired, load_tree

from .example import BLOCK, SCHEMAS, faults

THING = make_schema(
    "A thing.",
    AttributeSchema("name", STRING, "Its name.", required=True),
    AttributeSchema("config", map_of(TEXT), "Configs."),
)
TYPES = {"kafka_thing": TypeInfo(THING, lambda attributes: str(attributes["name"]), "kafka")}


def declared(config: str, more: str = "", variables: Mapping[str, str] | None = None) -> Desired:
    block = f'resource "kafka_thing" "a" {{\n  name   = "a"\n  config = {config}\n}}\n'
    tree = load_tree({"main.kf.hcl": (block + more).encode(), "provider.kf.hcl": BLOCK.encode()})
    inputs = VariableInputs(variables=dict(variables or {})) if variables else VariableInputs()
    return build_desired(tree, inputs, Schemas(TYPES, SCHEMAS.data, SCHEMAS.providers))


def config(text: str, more: str = "") -> FrozenMap:
    found = declared(text, more)
    assert found.diagnostics == ()
    return FrozenMap(found.declared[0].attributes["config"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{ a = ["x", "y"] }', {"a": "x,y"}),
        ('{ a = ["x"], b = "y", c = 3, d = true }', {"a": "x", "b": "y", "c": "3", "d": "true"}),
        ("{ a = [] }", {"a": ""}),
        ("{ a = [1, 2.5, true] }", {"a": "1,2.5,true"}),
        ('{ a = tolist(["x", "y"]) }', {"a": "x,y"}),
        ('{ for k in ["a", "b"] : k => [k, "z"] }', {"a": "a,z", "b": "b,z"}),
        ('merge({ a = ["x"] }, { b = "y" })', {"a": "x", "b": "y"}),
    ],
)
def test_lists_are_joined_with_commas(text: str, expected: dict[str, str]) -> None:
    """Beside strings, numbers and switches, and wherever the map comes from."""
    assert config(text) == expected


def test_a_null_is_told_to_the_provider() -> None:
    """It means that this config is left alone, which is not the same as not naming it."""
    assert config('{ a = null, b = "x" }') == {"a": None, "b": "x"}


def test_references_see_strings() -> None:
    """What was written as a list is a string for everybody who refers to it."""
    more = 'output "all" {\n  value = upper(kafka_thing.a.config["a"])\n}\n'
    found = declared('{ a = ["x", "y"] }', more)
    assert found.diagnostics == ()
    assert found.outputs[0].value == "X,Y"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{ a = ["x,y"] }', "An element with a comma would become two elements (at .a[0])."),
        ('{ a = [["x"]] }', "Expected a string, got a list (at .a[0])."),
        ("{ a = [null] }", "Expected a string, got null (at .a[0])."),
        ('{ a = { b = "x" } }', "Expected a string or a list of strings"),
        ('{ a = toset(["x"]) }', "Expected a string or a list of strings"),
        ('["x"]', "Expected a map of strings, got a list."),
    ],
)
def test_what_is_no_text_is_refused(text: str, detail: str) -> None:
    """With the place in the map, and never by guessing."""
    (fault,) = declared(text).diagnostics
    assert fault.summary == '"config" must be a map of strings'
    assert detail.rstrip(".") in fault.detail


def test_a_sensitive_element_stays_out() -> None:
    """A list does not carry a secret past the check for secrets."""
    more = (
        'variable "password" {\n  type      = string\n  sensitive = true\n  default   = "hush"\n}\n'
    )
    found: Any = declared('{ a = ["x", var.password] }', more)
    assert any("sensitive value cannot go into" in text for text in faults(found))
    assert "hush" not in repr([d for d in found.diagnostics if "default" not in d.summary])
