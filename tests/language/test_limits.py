"""Hostile configurations end with one diagnostic that has a line, soon."""

from __future__ import annotations

import pytest

from .example import desired


def _doubling(first: str, step: str, count: int = 60) -> str:
    lines = [
        f"s0 = {first}",
        *(f"s{n + 1} = {step.replace('@', f'local.s{n}')}" for n in range(count)),
    ]
    return "locals {\n" + "\n".join(lines) + "\n}\n"


BOMBS = {
    "strings": (_doubling('"aaaaaaaaaa"', '"${@}${@}"'), "is too long"),
    "lists": (_doubling('["a"]', "[@, @]"), "is too large"),
    "concat": (_doubling('["a"]', "concat(@, @)"), "elements"),
    "numbers": (_doubling("99999999", "@ * @"), "cannot be computed"),
    "depth": (_doubling("1", "[@]", 500), "is too large"),
    "loops": (
        "locals {\n  r = range(1000)\n"
        "  a = [for x in local.r : [for y in local.r : [for z in local.r : z]]]\n}",
        "too many steps",
    ),
    "long loop": ("locals {\n  a = range(1000000)\n}", "is too large"),
    "copies": (
        'locals {\n  s = join("", range(100000))\n'
        '  a = [for i in range(100000) : "${local.s}x"]\n}',
        "too many steps",
    ),
    "ranges": ("locals {\n  a = [for i in range(99999) : range(99999)]\n}", "too many steps"),
    "json": ('locals {\n  a = jsondecode("' + "[" * 800 + "]" * 800 + '")\n}', "cannot be"),
    "instances": (
        'resource "kafka_topic" "a" {\n  count = 1000000\n  name = "a"\n}',
        "is too large",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.timeout(30)
def test_bombs(name: str) -> None:
    """Each bomb is stopped with its line, before it uses up memory or patience."""
    text, words = BOMBS[name]
    found = desired(text)
    assert len(found.diagnostics) == 1
    assert words in found.diagnostics[0].summary
    assert found.diagnostics[0].range is not None


def test_running_out_of_steps_is_said_once() -> None:
    """What comes after the place where the steps ran out adds no further messages."""
    later = "".join(f"locals {{ n{n} = length([{n}]) }}\n" for n in range(50))
    found = desired(f'{BOMBS["loops"][0]}\n{later}output "o" {{ value = local.n3 }}\n')
    assert [item.summary for item in found.diagnostics] == [
        "The configuration takes too many steps to evaluate"
    ]


def test_long_chains_of_local_values() -> None:
    """Thousands of local values that need each other are evaluated without recursion."""
    lines = [f"s{n + 1} = local.s{n} + 1" for n in range(3000)]
    text = "locals {\ns0 = 0\n" + "\n".join(lines) + '\n}\noutput "o" { value = local.s3000 }\n'
    assert desired(text).outputs[0].value == 3000
