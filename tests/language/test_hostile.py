"""Hostile configurations, typed at commands: each ends with what is wrong and where, within seconds
and half a gigabyte, and never with a traceback."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from .arena import FAT, SLOW, Arena, Outcome

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["a:9092"]\n}\n'
CANARY = "hunter2-canary"
VALIDATE = (("validate",), "")


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    opened = Arena()
    yield opened
    opened.close()


def chain(first: str, step: str, length: int) -> str:
    """Local values of which each is made of the one before."""
    lines = [f"  x0 = {first}\n"]
    lines += [f"  x{n + 1} = {step.replace('X', f'local.x{n}')}\n" for n in range(length)]
    return "locals {\n" + "".join(lines) + "}\n"


def output(value: str) -> str:
    return f'output "o" {{\n  value = {value}\n}}\n'


def topic(body: str, name: str = "t") -> str:
    return f'resource "kafka_topic" "{name}" {{\n{body}\n}}\n'


BOMB = "".join(
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\n",
        *(
            f"{two}: &{two} [{','.join([f'*{one}'] * 9)}]\n"
            for one, two in zip("abcdefgh", "bcdefghi", strict=True)
        ),
    ]
)

REFUSED: Mapping[str, str] = {
    "a billion instances": topic('  count = 1000000000\n  name  = "t${count.index}"'),
    "a million keys": topic(
        "  for_each = toset([for i in range(1000000) : tostring(i)])\n  name = each.key"
    ),
    "loops in loops": output(
        "length([for a in range(9999) : [for b in range(9999) : [for c in range(9999) : 1]]])"
    ),
    "doubled strings": chain('"xxxxxxxxxxxxxxxx"', '"${X}${X}"', 40) + output("local.x40"),
    "doubled lists": chain("[1]", "concat(X, X)", 40) + output("local.x40"),
    "shared parts": chain("[1]", "[X, X]", 60) + output("jsonencode(local.x60)"),
    "compared shared parts": chain("[1]", "[X, X]", 60)
    + chain("[1]", "[X, X]", 60).replace("x", "y")
    + output("local.x60 == local.y60"),
    "products": output("length(setproduct(range(999), range(999), range(999)))"),
    "wide formats": output('format("%999999999d", 1)'),
    "deep indents": output('indent(1000000000, "a\\nb")'),
    "huge powers": output("pow(10, 1000000000)"),
    "huge products": chain("99999999999999999999", "X * X", 60) + output("local.x60"),
    "long joins": output('length(join("x", [for i in range(99999) : "xxxxxxxxxxxxxxxxxxxxxx"]))'),
    "replacements": output(
        'replace(join("", [for i in range(99999) : "y"]), "y", "zzzzzzzzzzzzzzzzzzzzzzz")'
    ),
    "backtracking": output(
        'regexall("(a+)+$", join("", [for i in range(5000) : "a"]))'
        '\n}\noutput "p" {\n  value = regex("^(a|aa)+$", '
        '"${join("", [for i in range(5000) : "a"])}b")'
    ),
    "billion laughs": f"locals {{\n  bomb = <<E\n{BOMB}E\n}}\n" + output("yamldecode(local.bomb)"),
    "deep YAML": output('yamldecode(join("", [for i in range(9999) : "["]))'),
    "deep JSON": output('jsondecode(join("", [for i in range(9999) : "["]))'),
    "wide CSV": output('csvdecode(join(",", [for i in range(99999) : "a"]))'),
    "a template of itself": output('templatefile("self.tpl", {})'),
    "a device": output('file("/dev/zero")'),
    "out of the root": output('file("../../../../../../etc/passwd")'),
    "a link out of the root": output('file("link")'),
    "a path with a zero": output('file("a\\u0000b")'),
    "a pipe": output('file("pipe")'),
    "a long cycle": chain("local.x3000", "X", 3000),
    "duplicates": topic('  name = "t"\n  name = "u"'),
    "the same block a thousand times": topic('  name = "t"') * 1000,
    "faults without end": "".join(topic(f"  nmae = {n}", f"t{n}") for n in range(5000)),
    "modules of themselves": 'module "m" {\n  source = "./"\n}\n',
    "modules out of the root": 'module "m" {\n  source = "../../../../../../etc"\n}\n',
    "equal keys in other spelling": topic(
        '  for_each = { "\u00e9" = 1, "e\u0301" = 2 }\n  name     = "x${each.value}"'
    ).replace("name     =", "nmae     ="),
    "moves in a circle": "".join(
        f"moved {{\n  from = kafka_topic.a{n}\n  to   = kafka_topic.a{(n + 1) % 500}\n}}\n"
        for n in range(500)
    )
    + topic('  name = "x"', "a0"),
    "many dynamic blocks": PROVIDER.replace(
        "}\n",
        '  dynamic "authorizer" {\n    for_each = range(99999)\n    content {}\n  }\n}\n',
    ).replace('provider "kafka" {', 'provider "kafka" {\n  alias = "b"'),
}


def laid(folder: Path, text: str) -> Path:
    """A folder with this configuration, and with what some attacks lead to."""
    folder.mkdir()
    (folder / "main.kf.hcl").write_text(text, "utf-8", "surrogatepass")
    (folder / "provider.kf.hcl").write_text(PROVIDER)
    (folder / "self.tpl").write_text('${templatefile("self.tpl", {})}' * 3)
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    return folder


def bounded(outcome: Outcome) -> None:
    """It ended by itself, within the limits, and said nothing that only we understand."""
    assert outcome.signal == 0, outcome
    assert "Traceback" not in outcome.text and "failed unexpectedly" not in outcome.text
    assert outcome.cpu < SLOW, outcome.cpu
    assert outcome.memory < FAT, outcome.memory
    assert len(outcome.text) < 1_000_000


@pytest.mark.parametrize("name", REFUSED)
def test_attacks_are_refused_with_their_place(name: str, arena: Arena, tmp_path: Path) -> None:
    """Exit 1, a file and a line, in less than 5 seconds and 512 MB."""
    outcome = arena.run(laid(tmp_path / "f", REFUSED[name]), VALIDATE)
    bounded(outcome)
    assert outcome.codes == (1,), outcome.text
    assert re.search(r"on (main|provider)\.kf\.hcl:\d+:\d+", outcome.err), outcome.err


LEGAL: Mapping[str, str] = {
    "a long chain": chain("1", "X", 5000) + output("local.x5000"),
    "ten thousand values": "".join(
        f'variable "v{n}" {{\n  default = {n}\n}}\n' for n in range(10_000)
    )
    + topic('  name = "x${var.v9999}"'),
    "moves in a row": "".join(
        f"moved {{\n  from = kafka_topic.a{n}\n  to   = kafka_topic.a{n + 1}\n}}\n"
        for n in range(2000)
    )
    + topic('  name = "x"', "a2000"),
    "keys that are not plain": topic(
        '  for_each = { "a\\nb" = 1, "\\u001b[31m" = 2, "]\\"" = 3, "" = 4, "\\u202e" = 5 }\n'
        '  name     = "x${each.value}"'
    ),
    "ten thousand globs": topic(
        '  name = "x"\n  lifecycle {\n    ignore_changes = ['
        + ", ".join(f'config["a{n}.*"]' for n in range(10_000))
        + "]\n  }"
    ),
    "regular expressions in linear time": output('length(regexall("a", join("", [for i in '
                                                 'range(50000) : "a"])))'),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGAL)
def test_what_is_legal_is_done_within_the_limits(name: str, arena: Arena, tmp_path: Path) -> None:
    """Size alone is no fault; nothing that was written reaches the terminal as a control."""
    folder = laid(tmp_path / "f", LEGAL[name])
    outcome = arena.run(folder, VALIDATE, (("graph",), ""), (("validate", "--json"), ""))
    bounded(outcome)
    assert outcome.codes == (0, 0, 0), outcome.text
    assert not set(outcome.text) & {"\x1b", "\u202e", "\x07"}


MISUSES: tuple[Callable[[str], str], ...] = (
    lambda s: topic(f"  name = {s}"),
    lambda s: topic(f'  name = "x"\n  partitions = {s}'),
    lambda s: topic(f'  name = "x"\n  config = {{ (({s})) = 1 }}'),
    lambda s: topic(f'  name = "x"\n  config = {{ a = {s} }}'),
    lambda s: topic(f"  for_each = toset([{s}])\n  name = each.key"),
    lambda s: topic(f"  count = {s}\n  name = 1"),
    lambda s: topic(f'  name = "x"\n  owner = {s}'),
    lambda s: topic(f'  name = "x"\n  labels = {{ a = {s} }}'),
    lambda s: output(s),
    lambda s: output(f"nonsensitive(1) + {s}"),
    lambda s: output(f"{s}.attribute"),
    lambda s: output(f"{s}[0]"),
    lambda s: output(f"{{ a = 1 }}[{s}]"),
    lambda s: output(f"[1][{s}]"),
    lambda s: output(f"-{s}"),
    lambda s: output(f"{s} ? 1 : 2"),
    lambda s: output(f"tonumber({s})"),
    lambda s: output(f"jsondecode({s})"),
    lambda s: output(f"yamldecode({s})"),
    lambda s: output(f'regex({s}, "x")'),
    lambda s: output(f'regex("(", {s})'),
    lambda s: output(f"file({s})"),
    lambda s: output(f"templatestring({s}, {{}})"),
    lambda s: output(f"retention({s})"),
    lambda s: output(f"bytes({s})"),
    lambda s: output(f"[for x in {s} : x]"),
    lambda s: output(f"merge({s}, 1)"),
    lambda s: output(f"formatdate({s}, {s})"),
    lambda s: output(f"base64decode({s})"),
    lambda s: output(f"cidrhost({s}, 1)"),
    lambda s: output(f'lookup({{}}, {s})'),
    lambda s: f'import {{\n  to = kafka_topic.t\n  id = {s}\n}}\n' + topic('  name = "x"'),
    lambda s: topic(
        f'  name = "x"\n  lifecycle {{\n    precondition {{\n      condition = {s} == 1\n'
        f'      error_message = "it is ${{{s}}}"\n    }}\n  }}'
    ),
    lambda s: 'variable "b" {\n  type = number\n  default = 1\n  validation {\n    condition = '
    'var.b == 2\n    error_message = "b ${var.b} {}"\n  }\n}\n' + output(s),
    lambda s: 'module "m" {\n  source = "./m"\n  v = ' + s + "\n}\n" + output("module.m.o"),
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_a_secret_is_never_told(number: int, arena: Arena, tmp_path: Path) -> None:
    """A sensitive variable, wrongly used in every way, does not show its value anywhere."""
    declared = 'variable "s" {\n  sensitive = true\n}\n'
    folder = laid(tmp_path / "f", declared + MISUSES[number]("var.s"))
    (folder / "m").mkdir()
    inner = 'variable "v" {\n  type = number\n}\noutput "o" {\n  value = var.v\n}\n'
    (folder / "m/main.kf.hcl").write_text(inner)
    given = ("--var", f"s={CANARY}")
    outcome = arena.run(
        folder,
        (("validate", *given), ""),
        (("validate", "--json", *given), ""),
        (("graph", *given), ""),
        (("console", *given), "var.s\n[var.s]\nupper(var.s)\nvar.s.x\nlength(var.s)\n"),
    )
    bounded(outcome)
    assert CANARY not in outcome.text
    assert CANARY.upper() not in outcome.text
