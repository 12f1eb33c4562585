"""Blocks that repeat a shape are compiled once, and mean what each of them says."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from kafkaform.core.resource import Desired
from kafkaform.language.desired import VariableInputs
from kafkaform.syntax.stamps import Stamper

from .example import desired

HEAD = """
variable "size" { default = 3 }
locals {
  base   = { "retention.ms" = "1" }
  broken = tonumber("x")
}
"""


def blocks(body: str, words: list[tuple[str, str]]) -> str:
    filled = [body.replace("NAME", name).replace("NUMBER", size) for name, size in words]
    return "".join(
        f'resource "kafka_topic" "t{number}" {{\n{text}}}\n' for number, text in enumerate(filled)
    )


def both(text: str, inputs: VariableInputs | None = None) -> Desired:
    """What the text declares; the same as if every block were compiled from its own text."""
    found = desired(text, inputs)
    with patch.object(Stamper, "pass_over", lambda self, at: at):
        assert desired(text, inputs) == found
    return found


GOOD = [("a", "1"), ("b", "22"), ("c", "333"), ("d", "4")]
BODIES = {
    "constants": '  name = "NAME"\n  partitions = NUMBER\n',
    "templates": '  name = "x-${var.size}-NAME"\n  partitions = var.size > 2 ? NUMBER : 1\n',
    "functions": '  name = upper("NAME")\n  config = merge(local.base, { "a" = "NUMBER" })\n',
    "loops": '  name = "NAME"\n  config = { for k in ["NAME", "z"] : k => NUMBER }\n',
    "meta": '  name = "NAME"\n  owner = "o-NUMBER"\n  labels = { l = "NAME" }\n',
    "providers": '  name = "NAME"\n  provider = kafka\n',
    "dependencies": '  name = "NAME"\n  depends_on = [kafka_topic.base]\n',
    "number as text": '  name = "NAME"\n  partitions = "NUMBER"\n',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_each_block_has_its_own_words(body: str) -> None:
    """The same objects come out, with the words of each block and its place."""
    base = 'resource "kafka_topic" "base" {\n  name = "base"\n}\n'
    found = both(HEAD.replace('  broken = tonumber("x")\n', "") + base + blocks(body, GOOD))
    assert found.diagnostics == ()
    assert len({item.identity for item in found.declared}) == 5
    assert len({item.range for item in found.declared}) == 5


WRONG = {
    "a name twice": (BODIES["constants"], [*GOOD[:3], ("a", "5")]),
    "one bad word": ('  name = "NAME"\n  config_mode = "NAME"\n', [("all", "1")] * 3 + GOOD),
    "not a number": ('  name = "NAME"\n  partitions = "NAME"\n', GOOD),
    "an unknown argument": ('  name = "NAME"\n  partition = NUMBER\n', GOOD),
    "an unknown name": ('  name = "NAME${local.nothing}"\n', GOOD),
    "a poisoned value": ('  name = "NAME${local.broken}"\n', GOOD),
    "an unknown function": ('  name = uper("NAME")\n', GOOD),
    "what the server sets": ('  name = "NAME${kafka_topic.base.topic_id}"\n', GOOD),
    "an index that is not there": ("  name = [1][NUMBER]\n", GOOD),
    "a label that is no name": (BODIES["constants"], GOOD),
    "a provider that is not there": ('  name = "NAME"\n  provider = kafka.x\n', GOOD),
    "a dependency that is not there": ('  name = "NAME"\n  depends_on = [kafka_topic.x]\n', GOOD),
}


@pytest.mark.parametrize("name", WRONG)
def test_faults_have_the_place_of_their_block(name: str) -> None:
    """Each fault is told where it is, with the words that stand there."""
    body, words = WRONG[name]
    base = 'resource "kafka_topic" "base" {\n  name = "base"\n}\n'
    text = HEAD + base + blocks(body, words)
    if "label" in name:
        text = text.replace('"t3"', '"3t"')
    assert both(text).diagnostics


@pytest.mark.slow("evaluates up to the limits")
def test_limits_count_once() -> None:
    """A run that ends in the middle of a shape is told as ever."""
    text = "locals {\n  a = range(100000)\n}\n" + blocks(
        '  name = "NAME-${length([for x in local.a : x if x == NUMBER])}"\n',
        [(f"n{n}", str(n)) for n in range(60)],
    )
    (fault,) = [f for f in both(text).diagnostics if "too many steps" in f.summary]
    assert fault.range is not None
