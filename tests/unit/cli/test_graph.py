"""`graph`: the references of a configuration as Graphviz reads them."""

from __future__ import annotations

import re

from ...kit.commands.here import Here

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = [var.bootstrap]\n}\nvariable "bootstrap" {}\n'
EDGE = re.compile(r'^  ("(?:[^"\\]|\\.)*") -> ("(?:[^"\\]|\\.)*");$', re.MULTILINE)


def edges(text: str) -> set[tuple[str, str]]:
    return {(a.strip('"'), b.strip('"')) for a, b in EDGE.findall(text)}


def test_references_are_edges(here: Here) -> None:
    """An arrow leads to what is needed: variables, locals, objects, providers; unset variables
    do not matter."""
    here.write(
        "main.kf.hcl",
        PROVIDER
        + 'locals { names = toset(["x"]) }\n'
        + 'resource "kafka_topic" "a" {\n  for_each = local.names\n  name = each.key\n}\n'
        + 'resource "kafka_topic" "b" {\n  name = "b"\n  depends_on = [kafka_topic.a]\n}\n'
        + 'output "id" {\n  value = kafka_topic.b.topic_id\n}\n',
    )
    text = here.done("graph").out
    assert text.startswith("digraph G {\n") and text.endswith("}\n")
    assert edges(text) == {
        ("provider.kafka", "var.bootstrap"),
        ("kafka_topic.a", "local.names"),
        ("kafka_topic.a", "provider.kafka"),
        ("kafka_topic.b", "kafka_topic.a"),
        ("kafka_topic.b", "provider.kafka"),
        ("output.id", "kafka_topic.b"),
    }
    for name in {name for edge in edges(text) for name in edge}:
        assert f'\n  "{name}" [label="{name}"];\n' in text


def test_modules_are_in_it(here: Here) -> None:
    """What happens in a module is drawn under its name, and so is what goes in and out."""
    here.write(
        "main.kf.hcl",
        PROVIDER
        + 'module "m" {\n  source = "./m"\n  name = var.bootstrap\n}\n'
        + 'output "o" {\n  value = module.m.n\n}\n',
    )
    here.write(
        "m/main.kf.hcl",
        'variable "name" {}\nresource "kafka_topic" "t" {\n  name = var.name\n}\n'
        'output "n" {\n  value = kafka_topic.t.name\n}\n',
    )
    assert {
        ("output.o", "module.m.output.n"),
        ("module.m.output.n", "module.m.kafka_topic.t"),
        ("module.m.kafka_topic.t", "module.m.var.name"),
    } <= edges(here.done("graph").out)


def test_faults_are_told(here: Here) -> None:
    """A configuration with errors has no graph."""
    here.write("main.kf.hcl", "locals { a = nope() }\n")
    assert "nope" in here.fails("graph")
