"""States that somebody edited and sealed again: whatever a member is made to be, each command says
what is wrong and where, or works; none fails unexpectedly."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kafkaform.core.errors import StorageError
from kafkaform.state.codec import decode

from ...kit.commands.here import Here
from ...test_cases import cluster_of
from . import edited

COMMANDS = (
    *("state list", "state show kafka_topic.a", "show", "show --json", "output", "output --json"),
    *("output --raw url", "plan", "state pull", "state mv kafka_topic.a kafka_topic.z"),
    *("state rm kafka_topic.a", "import kafka_topic.a a", "import --all", "apply --auto-approve"),
    *("destroy --confirm simulated", "audit verify", "state push pushed.json"),
)
STATE, LOG = "kafkaform.state.json", "kafkaform.audit.jsonl"
SHARE = 1 if "KAFKAFORM_LONG" in os.environ else 40
"""One edit of so many is tried with every command; the codec is tried with each."""


@pytest.fixture
def applied(here: Here) -> tuple[bytes, bytes]:
    """State and log of an apply with objects of five kinds, on a simulated cluster."""
    edited.simulate(here.monkeypatch, cluster_of())
    here.write("main.kf.hcl", edited.CONFIGURATION)
    here.done("apply", "--auto-approve", "--accept-unproven-access")
    return (here.path / STATE).read_bytes(), (here.path / LOG).read_bytes()


def test_each_member_that_cannot_be_is_named(here: Here, applied: tuple[bytes, bytes]) -> None:
    """Some three thousand edits: the codec takes one for a state, or says by a StorageError which
    member is wrong."""
    refused = 0
    for _, body in edited.edits(json.loads(applied[0])):
        try:
            decode(edited.sealed_state(body), "state")
        except StorageError as error:
            refused += 1
            named = ("cannot be used: ", "has state format")
            assert any(words in error.message for words in named) and error.advice
    assert refused > 1000


@pytest.mark.slow("types every command for each of many states")
@pytest.mark.timeout(900)
def test_no_command_fails_unexpectedly(here: Here, applied: tuple[bytes, bytes]) -> None:
    """`Here` refuses every trace and every fault of ours in what is said."""
    data = json.loads(applied[0])
    for number, (_, body) in enumerate(edited.edits(data)):
        if number % SHARE:
            continue
        run_all(here, applied, edited.sealed_state(body))


FOUND = (
    {"objects.0.owners": ["x"]},
    {"objects.0.depends_on": ["x"]},
    {"objects.0.identity": "x"},
    {"objects.4.identity": ""},
    {"objects.0.kind": "\ud800"},
    {"objects.0.attributes.config": 7},
    {"outputs.url": {}},
    {"outputs.url.value": "\ud800"},
    {"outputs.all.value": {"$secret": ""}},
)
"""Edits that each had a command of its own to bring down."""


@pytest.mark.parametrize("change", FOUND, ids=lambda change: next(iter(change)))
def test_edits_that_brought_commands_down(
    here: Here, applied: tuple[bytes, bytes], change: dict[str, object]
) -> None:
    """Each with every command, and plan and apply end with 9 where a member cannot be."""
    ((path, value),) = change.items()
    body = json.loads(applied[0])
    *outer, last = (int(step) if step.isdigit() else step for step in path.split("."))
    inner = body
    for step in outer:
        inner = inner[step]
    inner[last] = value
    codes = run_all(here, applied, edited.sealed_state(body))
    if "value" not in path and "kind" not in path:
        assert codes["plan"] == codes["apply --auto-approve"] == 9, codes


def run_all(here: Here, applied: tuple[bytes, bytes], state: bytes) -> dict[str, int]:
    codes = {}
    for command in COMMANDS:
        true = command.startswith("state push")
        here.write("pushed.json", state)
        here.write("pushed.audit.jsonl", applied[1])
        here.write(STATE, applied[0] if true else state)
        here.write(LOG, applied[1])
        codes[command] = here.run(*command.split()).code
        assert codes[command] in (0, 1, 2, 4, 5, 6, 7, 8, 9)
    return codes


def test_a_variable_that_is_no_text(here: Here) -> None:
    """Bytes of the environment that are no UTF-8 are an error of the variable, and reach neither
    state nor broker."""
    here.write("main.kf.hcl", 'variable "x" {}\noutput "o" { value = var.x }\n')
    here.monkeypatch.setitem(os.environ, "KF_VAR_x", "\udcff")
    assert 'The value of "x" from KF_VAR_x is not UTF-8 text' in here.fails("plan")
    assert not Path(STATE).exists()
