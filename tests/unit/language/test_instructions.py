"""`removed`, `moved`, `import` and the `kafkaform` block."""

from __future__ import annotations

import pytest

from kafkaform.core.address import Address
from kafkaform.language.declare.settings import read_settings
from kafkaform.language.desired import load_tree

from .example import desired, faults, sound

A = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
MANY = 'resource "kafka_topic" "m" {\n  for_each = { x = 1 }\n  name = each.key\n}\n'


def test_instructions() -> None:
    """Each block becomes an instruction; removal forgets unless it says destroy."""
    text = (
        A
        + MANY
        + """
removed { from = kafka_topic.old }
removed {
  from = kafka_topic.m["gone"]
  lifecycle { destroy = true }
}
moved {
  from = kafka_topic.b
  to   = kafka_topic.a
}
moved {
  from = kafka_topic.single
  to   = kafka_topic.m["x"]
}
import {
  to = kafka_topic.a
  id = "name-of-${"a"}"
}
import {
  for_each = { x = "id-x" }
  to       = kafka_topic.m[each.key]
  id       = each.value
}
"""
    )
    found = sound(text)
    assert [(str(r.source), r.destroy) for r in found.removed] == [
        ("kafka_topic.old", False),
        ('kafka_topic.m["gone"]', True),
    ]
    assert [(str(m.source), str(m.target)) for m in found.moved] == [
        ("kafka_topic.b", "kafka_topic.a"),
        ("kafka_topic.single", 'kafka_topic.m["x"]'),
    ]
    assert [(i.target, i.id) for i in found.imports] == [
        (Address("kafka_topic", "a"), "name-of-a"),
        (Address("kafka_topic", "m", "x"), "id-x"),
    ]


WRONG = [
    ("removed { from = kafka_topic.a }", "4:18: kafka_topic.a is still declared"),
    ('removed { from = "a" }', "4:18: This is not the address of a resource"),
    ("removed { from = kafka_topik.z }", '4:18: There is no resource type "kafka_topik"'),
    ("removed {}", '4:1: removed needs "from"'),
    (
        "moved {\n  from = kafka_topic.a\n  to = kafka_topic.z\n}",
        "5:10: kafka_topic.a is still declared",
    ),
    (
        "moved {\n  from = kafka_topic.z\n  to = kafka_user.z\n}",
        "5:10: A kafka_topic cannot become a kafka_user",
    ),
    (
        'import {\n  to = kafka_topic.b\n  id = "b"\n}',
        "4:1: kafka_topic.b is imported but not declared",
    ),
    ('import {\n  to = kafka_topic.a\n  id = ""\n}', "6:8: An import needs an id"),
    (
        'import {\n  to = kafka_topic.a\n  id = "a"\n}\n'
        'import {\n  to = kafka_topic.a\n  id = "b"\n}',
        "8:1: kafka_topic.a is imported twice",
    ),
]


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_contradictions(text: str, expected: str) -> None:
    """An instruction that contradicts the declarations is refused where it stands."""
    assert faults(desired(A + text)) == [f"main.kf.hcl:{expected}"]


def test_instances_of_a_declared_block_can_be_removed_and_moved() -> None:
    """Only addresses that are still declared stand in the way."""
    assert sound(MANY + 'removed { from = kafka_topic.m["y"] }').removed
    assert faults(desired(MANY + 'removed { from = kafka_topic.m["x"] }'))
    assert sound(MANY + 'moved {\n  from = kafka_topic.m["y"]\n  to = kafka_topic.m["x"]\n}').moved
    assert faults(desired(MANY + 'moved {\n  from = kafka_topic.m["x"]\n  to = kafka_topic.q\n}'))


def _moved(source: str, target: str) -> str:
    return f"moved {{\n  from = {source}\n  to = {target}\n}}\n"


AMBIGUOUS = {
    "from one address to two": (
        _moved("kafka_topic.x", "kafka_topic.a") + _moved("kafka_topic.x", "kafka_topic.z"),
        "9:10: kafka_topic.x is moved to two addresses",
    ),
    "in a circle": (
        _moved("kafka_topic.x", "kafka_topic.y") + _moved("kafka_topic.y", "kafka_topic.x"),
        "5:10: These moved blocks lead back to where they start",
    ),
    "in a circle of modules": (
        _moved("module.x", "module.y") + _moved("module.y.kafka_topic.t", "module.x.kafka_topic.t"),
        "5:10: These moved blocks lead back to where they start",
    ),
}


@pytest.mark.parametrize("way", AMBIGUOUS)
def test_moves_that_contradict_each_other(way: str) -> None:
    """Which of them is applied must not depend on the order of the text."""
    text, expected = AMBIGUOUS[way]
    assert faults(desired(A + text)) == [f"main.kf.hcl:{expected}"]


SOUND_MOVES = {
    "the same twice": _moved("kafka_topic.x", "kafka_topic.a") * 2,
    "to an instance of the same block": _moved("kafka_topic.m", 'kafka_topic.m["x"]'),
    "from two addresses to one": (
        _moved("kafka_topic.x", "kafka_topic.a") + _moved("kafka_topic.y", "kafka_topic.a")
    ),
    "from numbers to keys": (
        _moved("kafka_topic.m[0]", 'kafka_topic.m["x"]')
        + _moved("kafka_topic.m[1]", 'kafka_topic.m["y"]')
    ),
    "a module and something in another": (
        _moved("module.x", "module.y") + _moved("module.z.kafka_topic.t", "kafka_topic.a")
    ),
}


@pytest.mark.parametrize("way", SOUND_MOVES)
def test_moves_that_go_together(way: str) -> None:
    """Terraform and OpenTofu take them, too."""
    assert sound(A + MANY + SOUND_MOVES[way]).moved


@pytest.mark.parametrize("turned", [False, True])
def test_a_chain_of_moves_is_followed_in_its_own_order(turned: bool) -> None:
    """`x → y` comes before `y → a`, wherever the two are written."""
    blocks = [_moved("kafka_topic.x", "kafka_topic.y"), _moved("kafka_topic.y", "kafka_topic.a")]
    found = sound(A + "".join(reversed(blocks) if turned else blocks))
    assert [str(one.source) for one in found.moved] == ["kafka_topic.x", "kafka_topic.y"]


def test_faulty_resources_do_not_make_imports_wrong() -> None:
    """An import into a block with faults reports the block's fault alone."""
    text = A.replace('"a"\n', "1 / 0\n") + 'import {\n  to = kafka_topic.a\n  id = "b"\n}'
    assert faults(desired(text)) == ["main.kf.hcl:2:10: This cannot be computed"]


def test_settings() -> None:
    """The kafkaform block is data: a version and a backend with constant arguments."""
    text = (
        'kafkaform {\n  required_version = ">= 0.1"\n'
        '  backend "s3" {\n    bucket = "b"\n    retries = 1 + 2\n  }\n}\n'
    )
    found, problems = read_settings(load_tree({"main.kf.hcl": text.encode()}))
    assert problems == ()
    assert (found.required_version, found.backend) == (">= 0.1", "s3")
    assert found.options == {"bucket": "b", "retries": 3}
    refused = read_settings(load_tree({"main.kf.hcl": text.replace('"b"', "var.b").encode()}))[1]
    assert [str(item.range) for item in refused] == ["main.kf.hcl:4:14"]
    assert sound(text).declared == ()
