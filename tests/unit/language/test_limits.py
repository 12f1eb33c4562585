"""The limits of evaluation: what runs into one is told once, and nothing is left out silently."""

from __future__ import annotations

import gc
from time import process_time

import pytest

from kafkaform.core.diagnostics import Diagnostic, Range, Severity, has_errors
from kafkaform.core.schema import STRING, Type, object_of
from kafkaform.language.desired import load_tree
from kafkaform.language.evaluate.evaluation_state import SHOWN_FAULTS, Collector
from kafkaform.language.values.faults import LIMITS, Budget
from kafkaform.language.values.value import ObjectVal
from kafkaform.syntax.parse import pause_collector

from .example import desired, evaluate, plain
from .test_modules import sound

LOOPS = (
    "locals {\n  r = range(1000)\n"
    "  a = [for x in local.r : [for y in local.r : [for z in local.r : z]]]\n}\n"
)


def warning(number: int) -> Diagnostic:
    place = Range("main.kf.hcl", number + 1, 1, number + 1, 2)
    return Diagnostic(Severity.WARNING, f"warning {number}", range=place)


def test_running_out_of_steps_is_said_once() -> None:
    """What comes after the place where the steps ran out adds no further messages."""
    later = "".join(f"locals {{ n{n} = length([{n}]) }}\n" for n in range(50))
    found = desired(f'{LOOPS}{later}output "o" {{ value = local.n3 }}\n')
    assert [item.summary for item in found.diagnostics] == [
        "The configuration takes too many steps to evaluate"
    ]


def test_what_may_fail_does_not_hide_a_limit() -> None:
    """`try` and `can` pass a limit on, or a bomb would be a way to waste time again and again."""
    for call in ("try(range(1e9), 1)", "can(range(1e9))", 'try(yamldecode("*a"), range(1e9), 1)'):
        (fault,) = desired(f"locals {{\n  a = {call}\n}}\n").diagnostics
        assert "exceeds a limit" in fault.summary


def test_values_do_not_outlive_the_evaluation() -> None:
    """What objects are made from can be larger than the objects, and what comes next needs room. No
    value refers to itself, so none has to wait for the garbage collector."""
    text = """
locals { names = { a = "topic-a", b = "topic-b" } }
resource "kafka_topic" "m" {
  for_each = local.names
  name     = each.value
}
output "o" { value = kafka_topic.m["a"].name }
"""
    gc.collect()
    before = _count_objects()
    with pause_collector():
        declared = desired(text).declared
        after = _count_objects()
    assert (len(declared), after) == (2, before)


def _count_objects() -> int:
    return sum(isinstance(item, ObjectVal) for item in gc.get_objects())


def test_evaluation_that_ends_early_is_an_error() -> None:
    """However many warnings there are: what was not evaluated must not seem to be gone."""
    collector = Collector(Budget(1_000_000))
    for number in range(20_000):
        collector.add(warning(number))
    found = collector.diagnostics
    assert has_errors(found)
    assert len(found) == SHOWN_FAULTS + 2
    assert "19,000 more warnings are not shown" in [item.summary for item in found]
    assert "The configuration has too many faults" in [item.summary for item in found]


def test_long_chains_of_local_values() -> None:
    """Thousands of local values that need each other are evaluated without recursion."""
    lines = [f"s{n + 1} = local.s{n} + 1" for n in range(3000)]
    text = "locals {\ns0 = 0\n" + "\n".join(lines) + '\n}\noutput "o" { value = local.s3000 }\n'
    assert desired(text).outputs[0].value == 3000


@pytest.mark.parametrize(
    "make", [lambda t: Type("tuple", items=(t, t)), lambda t: object_of({"a": t, "b": t})]
)
def test_types_with_shared_parts_are_compared_quickly(make: Type) -> None:
    """The type of a value that holds itself twice on sixty levels has 2^60 parts, written out."""
    one = other = STRING
    for _ in range(60):
        one, other = make(one), make(other)
    begun = process_time()
    assert one == other and hash(one) == hash(other)
    assert one != make(other)
    assert process_time() - begun < 1


def test_values_with_shared_parts_are_used_freely() -> None:
    """What only moves such a value costs nothing, so that one big value may serve many."""
    lines = "".join(f"  s{n + 1} = [local.s{n}, local.s{n}]\n" for n in range(5))
    text = f"locals {{\n  s0 = [1]\n{lines}"
    text += "  all = [for n in range(10000) : { n = n, shared = local.s5 }]\n"
    text += "  one = merge(local.all[5], { m = 1 }).n\n}\n"
    assert desired(text + 'output "o" { value = local.one }\n').outputs[0].value == 5


def test_conversions_that_change_nothing() -> None:
    """A value that has its type already is passed on as it is, and costs nothing."""
    value = evaluate("[for n in range(50000) : { name = tostring(n), n = n }]")
    assert evaluate("[x.all, x.all]", x=evaluate_object(value)) is not None


def evaluate_object(value: object) -> object:
    from kafkaform.language.values.value import ObjectVal

    return ObjectVal({"all": value})


@pytest.mark.slow("evaluates ten thousand topics")
def test_a_large_fleet_fits() -> None:
    """Ten thousand topics through one module, each with several values of its own, are no bomb."""
    main = """
locals { topics = { for i in range(10000) : "t${i}" => { partitions = i % 12 + 1 } } }
module "topic" {
  source     = "./m"
  for_each   = local.topics
  name       = each.key
  partitions = each.value.partitions
  config     = { "cleanup.policy" = "delete" }
}
output "names" { value = length([for t in module.topic : t.name]) }
"""
    module = """
variable "name" { type = string }
variable "partitions" { type = number }
variable "config" { type = map(string) }
locals { full = "${var.name}.v1" }
resource "kafka_topic" "this" {
  name       = local.full
  partitions = var.partitions
  config     = merge(var.config, { "x" = lookup(var.config, "y", "z") })
}
output "name" { value = kafka_topic.this.name }
"""
    found = sound({"main.kf.hcl": main, "m/main.kf.hcl": module})
    assert len(found.declared) == found.outputs[0].value == 10_000


def test_many_names_of_one_folder_are_one_module() -> None:
    """A folder that is reached through links is read once and knows its callers."""
    reads = []

    def read(folder: str) -> dict[str, bytes]:
        reads.append(folder)
        return {"main.kf.hcl": b'module "again" { source = "./link" }\n'}

    own = {"a": "a", "b": "a", "a/link": "a"}
    main = b'module "x" { source = "./a" }\nmodule "y" { source = "./b" }\n'
    tree = load_tree({"main.kf.hcl": main}, read, own.__getitem__)
    assert reads == ["a"]
    assert tree.names == own


def test_modules_are_bounded_in_all() -> None:
    """A thousand folders may be named, in all modules together."""
    calls = "".join(f'module "m{n}" {{ source = "./m{n}" }}\n' for n in range(LIMITS.calls + 1))
    tree = load_tree(
        {"main.kf.hcl": calls.encode()}, lambda _: {"main.kf.hcl": b"locals { a = 1 }\n"}
    )
    (fault,) = tree.diagnostics
    assert fault.summary == "The modules of the configuration are too large"
    assert str(fault.range) == "main.kf.hcl:1001:1"


def test_long_messages_keep_their_ends() -> None:
    """A key of a megabyte is not told in full, but what is wrong with it is."""
    key = "k" * 1_000_000
    found = desired(f'locals {{\n  a = {{ "{key}" = 1 }}["{key}x"]\n}}\n')
    (fault,) = found.diagnostics
    assert len(fault.summary) < 600
    assert fault.summary.startswith('There is no element with the key "kkk')
    assert fault.summary.endswith('kx"')
    assert plain("1") == 1
