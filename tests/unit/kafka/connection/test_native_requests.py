"""What the native client is asked for."""

from __future__ import annotations

import ast
import inspect

from kafkaform_kafka.connection import native

HARMLESS = {"describe_cluster", "list_topics", "poll"}


def test_only_harmless_requests_are_sent_by_the_native_client() -> None:
    """Its ListOffsets has crashed a process of ours while a plan was made."""
    tree = ast.parse(inspect.getsource(native))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "client"
    }
    assert used == HARMLESS
