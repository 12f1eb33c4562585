"""`output`: recorded values for people, programs and scripts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from kafkaform.core.value import FrozenMap, freeze
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import State

from ...kit.commands.here import Here


def record(here: Here, sensitive: tuple[str, ...] = (), **values: Any) -> None:
    """A state that holds these outputs."""
    outputs = {
        name: FrozenMap(
            value=None if name in sensitive else freeze(value), sensitive=name in sensitive
        )
        for name, value in values.items()
    }
    backend = LocalBackend(here.path / "kafkaform.state.json")
    state = State("11111111-1111-4111-8111-111111111111")
    backend.save(State(state.lineage, 1, state.objects, outputs=FrozenMap(outputs)), None)


def test_the_list(here: Here) -> None:
    """One output after the other in HCL, by name; what is sensitive is not told."""
    record(here, ("secret",), b=["x", 1], a="é\x1b", m={"k": True}, secret="hunter2", n=None)
    assert here.done("output").out == (
        'a = "é\\u001b"\nb = ["x", 1]\nm = {\n  k = true\n}\nn = null\nsecret = (sensitive)\n'
    )


def test_json(here: Here) -> None:
    """Terraform's shape: sensitive, type and value of all; the value alone of one."""
    record(here, ("secret",), a="x", many=[1, "y"], secret="hunter2")
    assert here.json("output", "-json") == {
        "a": {"sensitive": False, "type": "string", "value": "x"},
        "many": {"sensitive": False, "type": ["tuple", ["number", "string"]], "value": [1, "y"]},
        "secret": {"sensitive": True, "type": "dynamic", "value": None},
    }
    assert here.json("output", "-json", "many") == [1, "y"]


@pytest.mark.parametrize(
    ("value", "text"),
    [("a b\n", "a b\n"), (12, "12"), (Decimal("1E+3"), "1000"), (True, "true"), ("é", "é")],
)
def test_raw(here: Here, value: Any, text: str) -> None:
    """A script gets the text alone: no quotes, no newline that is not the value's own."""
    record(here, x=value)
    assert here.done("output", "-raw", "x").out == text


def test_raw_takes_single_values_only(here: Here) -> None:
    """Lists, maps and nothing have no raw form; neither have all outputs together."""
    record(here, many=["x"], none=None)
    assert "not a single value" in here.fails("output", "-raw", "many")
    assert "Use --json" in here.fails("output", "-raw", "none")
    assert "name of one output" in here.fails("output", "-raw")


def test_a_name_that_is_not_there(here: Here) -> None:
    """A typing error gets a suggestion; a sensitive output says why it has no value."""
    record(here, ("secret",), topic_id="x", secret="hunter2")
    assert 'Did you mean "topic_id"?' in here.fails("output", "topic_ids")
    assert "kafkaform apply" in here.fails("output", "zzz")
    assert "its value was not stored" in here.fails("output", "secret")


def test_declared_but_not_recorded(here: Here) -> None:
    """What waits for an apply, or for what the cluster sets, is told by name."""
    here.write(
        "main.kf.hcl",
        'provider "kafka" {\n  bootstrap_servers = ["x:1"]\n}\n'
        'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
        'output "id" {\n  value = kafka_topic.a.topic_id\n}\noutput "plain" {\n  value = 1\n}\n',
    )
    record(here, other=1)
    said = here.done("output")
    assert said.out == "other = 1\n"
    assert "id is declared but not recorded: it needs what the cluster sets" in said.err
    assert "plain is declared but not recorded: no apply has run" in said.err
    assert "it needs what the cluster sets" in here.fails("output", "id")
    assert 'Did you mean "plain"?' in here.fails("output", "plein")
    assert here.json("output", "-json").keys() == {"other"}


def test_nothing_recorded(here: Here) -> None:
    """Without state and configuration the list is empty, and says so beside it."""
    said = here.done("output")
    assert (said.out, said.err) == ("", "No outputs are recorded.\n")
    assert here.json("output", "-json") == {}
