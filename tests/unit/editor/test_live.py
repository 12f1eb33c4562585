"""What a hover shows of a live system, and whom it holds up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lsprotocol import types

from ...kit.editor import Editor

SERVER = """
import os, time
from kafkaform.editor.server import run_server

def look(folder, address):
    with (folder / "asked").open("a") as file:
        file.write(address + "\\n")
    if address.endswith("slow"):
        time.sleep(3)
    if address.startswith("kafka_acl"):
        return ()
    return ("Now:", "```", "billing `x` <b>\\x1b[2J", "7,810 records")

run_server(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), look=look)
"""
TEXT = """\
variable "parts" { default = 3 }
resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = var.parts
}
resource "kafka_topic" "slow" { name = "slow" }
resource "kafka_acl" "reads" {
  principal = "User:app"
  topic     = kafka_topic.orders.name
}
"""


class LiveEditor(Editor):
    """An editor whose server looks at a system of the test."""

    words = ("-c", SERVER)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One server for this file: to start it takes longer than all that is asked of it."""
    editor = LiveEditor(tmp_path_factory.mktemp("live"))
    editor.write("main.kf.hcl", TEXT)
    yield editor
    editor.close()


@pytest.fixture
def editor(started: Editor) -> Editor:
    (started.folder / "asked").unlink(missing_ok=True)
    return started


def list_asked(editor: Editor) -> list[str]:
    asked = editor.folder / "asked"
    return asked.read_text().split() if asked.exists() else []


def hover(editor: Editor, word: str) -> str:
    return editor.hover("main.kf.hcl", TEXT.replace(word, f"{word[0]}|{word[1:]}", 1))


def test_a_hover_over_a_resource_asks(editor: Editor) -> None:
    """At its block and where it is used. Foreign text stays in the block of code."""
    for word in ("orders", "orders.name"):
        shown = hover(editor, word)
        assert "kafka_topic.orders" in shown and "7,810 records" in shown
        code = shown.partition("```text\n")[2]
        assert code.count("```") == 1 and code.endswith("\n```")
        assert "billing 'x' <b>\\x1b[2J" in code
    assert list_asked(editor) == ["kafka_topic.orders"] * 2


@pytest.mark.parametrize("word", ["partitions", "var.parts", "principal", "kafka_topic"])
def test_another_word_asks_nobody(editor: Editor, word: str) -> None:
    """An argument, a variable, a type: they are explained as before."""
    assert "7,810" not in hover(editor, word)
    assert list_asked(editor) == []


def test_a_resource_that_nobody_looks_at_is_only_explained(editor: Editor) -> None:
    """There is nothing to show, so the page has no empty block."""
    shown = hover(editor, "reads")
    assert "kafka_acl.reads" in shown and "```" not in shown


def test_a_slow_system_holds_up_nobody_else(editor: Editor) -> None:
    """Completion, and explanations of other words, are answered meanwhile."""
    cursor = editor.put("main.kf.hcl", TEXT.replace('"slow"', '"s|low"', 1))
    params = types.HoverParams(**editor.place("main.kf.hcl", cursor))
    pending = editor.loop.create_task(editor.client.text_document_hover_async(params))
    try:
        assert hover(editor, "partitions")
        assert editor.complete("main.kf.hcl", TEXT.replace("var.parts", "var.|"))
        assert not pending.done()
    finally:
        found = editor.do(pending)  # type: ignore[arg-type]
    assert found is not None and isinstance(found.contents, types.MarkupContent)
    assert "7,810 records" in found.contents.value
