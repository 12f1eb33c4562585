"""`dynamic` blocks: nested blocks that are made once for each element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.resource import Desired
from kafkaform.language.desired import VariableInputs

from .example import faults
from .test_json import built

START = 'provider "kafka" {\n  bootstrap_servers = ["a:1"]\n'


def _with(block: str, more: str = "", inputs: VariableInputs | None = None) -> Desired:
    """A provider with this block in it, which begins in line 3."""
    return built({"main.kf.hcl": f"{START}{block}\n}}\n{more}"}, inputs)


def _dynamic(collection: str, content: str = "", iterator: str = "") -> str:
    word = f"    iterator = {iterator}\n" if iterator else ""
    return (
        f'  dynamic "authorizer" {{\n    for_each = {collection}\n{word}'
        f"    content {{\n      {content}\n    }}\n  }}"
    )


def _made(found: Desired) -> Any:
    assert found.diagnostics == ()
    return found.providers["kafka"].config["authorizer"]


VALUE = "super_users = [authorizer.value]"
BOTH = 'super_users = ["${authorizer.key}=${authorizer.value}"]'
COLLECTIONS = [
    ('["User:a"]', VALUE, "", {"super_users": ("User:a",)}),
    ('["a"]', BOTH, "", {"super_users": ("0=a",)}),
    ('toset(["a"])', BOTH, "", {"super_users": ("a=a",)}),
    ('{ k = "v" }', BOTH, "", {"super_users": ("k=v",)}),
    ('tomap({ k = "v" })', BOTH, "", {"super_users": ("k=v",)}),
    ('[{ who = ["x"] }]', "super_users = it.value.who", "it", {"super_users": ("x",)}),
    ('[{ who = "x" }]', "super_users = [for it in [it.value] : it.who]", "it",
     {"super_users": ("x",)}),
    ("var.on ? [1] : []", "", "", {"super_users": None}),
    ("[]", VALUE, "", None),
    ("{}", VALUE, "", None),
]  # fmt: skip


@pytest.mark.parametrize(("collection", "content", "iterator", "expected"), COLLECTIONS)
def test_one_block_or_none(
    collection: str, content: str, iterator: str, expected: Mapping[str, Any] | None
) -> None:
    """Lists, sets, maps and objects; the block's name or `iterator` stands for the element."""
    on = 'variable "on" {\n  default = true\n}\n'
    assert _made(_with(_dynamic(collection, content, iterator), on)) == expected


def test_beside_a_block_that_stands_there() -> None:
    """A dynamic block without elements leaves the other one alone."""
    static = "  authorizer {\n    super_users = []\n  }\n"
    assert _made(_with(static + _dynamic("[]"))) == {"super_users": ()}


def test_no_second_block() -> None:
    """What may stand there once is told with both keys, or with the place of the other."""
    found = _with(_dynamic("{ b = 1, a = 2 }"))
    assert faults(found) == ['main.kf.hcl:4:16: "authorizer" can occur only once']
    assert found.diagnostics[0].detail == 'It occurs for "a" and for "b".'
    found = _with("  authorizer {}\n" + _dynamic("[1]"))
    assert found.diagnostics[0].detail == "It occurs at main.kf.hcl:3:3 and for 0."


WRONG = [
    (_dynamic("5"), "4:16: for_each must be a list, a set, a map or an object"),
    (_dynamic("null"), "4:16: for_each must be a list, a set, a map or an object"),
    (_dynamic("var.secret"), "4:16: for_each cannot depend on a sensitive value"),
    (_dynamic("toset(var.secret)"), "4:16: for_each cannot depend on a sensitive value"),
    (_dynamic("[1]", "super_users = [nope.value]"), '6:22: Nothing is named "nope" here'),
    (_dynamic("[1]", "super_users = [authorizer.valu]"), '6:22: There is no attribute "valu"'),
    (_dynamic("[1]", "user = 1"), '6:7: provider "kafka" authorizer has no argument "user"'),
    (_dynamic("[1]", "", '"it"'), "5:16: iterator must be one word"),
    (_dynamic("authorizer.value"), '4:16: Nothing is named "authorizer" here'),
    ('  dynamic "authoriser" {\n    for_each = []\n    content {}\n  }',
     '3:3: provider "kafka" has no "authoriser" blocks'),
    ('  dynamic "bootstrap_servers" {\n    for_each = []\n    content {}\n  }',
     '3:3: "bootstrap_servers" is an argument'),
    ('  dynamic "authorizer" {\n    for_each = []\n  }',
     '3:3: dynamic "authorizer" needs a "content" block'),
    ('  dynamic "authorizer" {\n    for_each = []\n    content {}\n    content {}\n  }',
     '6:5: dynamic "authorizer" has a second "content" block'),
    ('  dynamic "authorizer" {\n    content {}\n  }', '3:3: dynamic "authorizer" needs "for_each"'),
    ('  dynamic "authorizer" {\n    for_each = []\n    labels = []\n    content {}\n  }',
     '5:5: dynamic "authorizer" has no argument "labels"'),
    ("  dynamic {\n    for_each = []\n    content {}\n  }",
     "3:3: A dynamic block needs the type of block"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "fault"), WRONG)
def test_faults(block: str, fault: str) -> None:
    """Each mistake has its place and reason."""
    more = 'variable "secret" {\n  default   = ["x"]\n  sensitive = true\n}\n'
    assert faults(_with(block, more)) == [f"main.kf.hcl:{fault}"]


def test_sensitive_elements_do_not_leak() -> None:
    """The elements may be secret where the collection is not; then they go nowhere else."""
    more = 'variable "pw" {\n  sensitive = true\n}\n'
    found = _with(_dynamic("[var.pw]", VALUE), more, VariableInputs({"KF_VAR_pw": "hunter2"}))
    assert faults(found) == ['main.kf.hcl:6:21: "super_users" cannot contain a sensitive value']
    assert "hunter2" not in str(found)


def test_resources_have_no_dynamic_blocks_of_the_language() -> None:
    """`lifecycle` is no block that could be made from a collection."""
    text = (
        START + '}\nresource "kafka_topic" "a" {\n  name = "a"\n  dynamic "lifecycle" {\n'
        "    for_each = []\n    content {}\n  }\n}\n"
    )
    assert faults(built({"main.kf.hcl": text})) == [
        'main.kf.hcl:6:3: kafka_topic.a has no "lifecycle" blocks'
    ]
