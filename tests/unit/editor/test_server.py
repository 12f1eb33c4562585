"""How the server takes turns: what takes long holds up nothing else, and can be cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from ...kit.editor import Editor
from ...kit.large_configuration import write_topics

FILES, TOPICS = 60, 5
FILE = "f0000.kf.hcl"


@pytest.fixture
def large(tmp_path: Path) -> Editor:
    """A server of its own, which has read nothing, in front of many files."""
    write_topics(tmp_path, FILES, TOPICS)
    support = types.ClientCompletionItemOptions(
        resolve_support=types.ClientCompletionItemResolveOptions(["documentation", "detail"])
    )
    capabilities = types.ClientCapabilities(
        text_document=types.TextDocumentClientCapabilities(
            completion=types.CompletionClientCapabilities(completion_item=support)
        )
    )
    return Editor(tmp_path, capabilities=capabilities)


def test_a_rename_holds_up_nothing_and_can_be_cancelled(large: Editor) -> None:
    """It is tried out on the whole configuration, while the outline of a file is asked for."""
    cursor = large.open(FILE, (large.folder / FILE).read_text("utf-8").replace("var.", "var.|", 1))
    place = large.place(FILE, cursor)
    order: list[str] = []

    async def ask() -> None:
        protocol = large.client.protocol
        requests = {
            name: protocol.send_request_async(method, params, msg_id=name)
            for name, method, params in (
                ("first", types.TEXT_DOCUMENT_RENAME, types.RenameParams(**place, new_name="a")),
                ("second", types.TEXT_DOCUMENT_RENAME, types.RenameParams(**place, new_name="b")),
                (
                    "outline",
                    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL,
                    types.DocumentSymbolParams(place["text_document"]),
                ),
            )
        }
        for name, request in requests.items():
            request.add_done_callback(lambda _, name=name: order.append(name))
        large.client.protocol.notify(types.CANCEL_REQUEST, types.CancelParams("second"))
        await asyncio.wait(requests.values())
        with pytest.raises(JsonRpcException) as refusal:
            requests["second"].result()
        assert refusal.value.code == types.LSPErrorCodes.RequestCancelled
        assert len(requests["outline"].result()) == TOPICS
        assert len(requests["first"].result().changes) == FILES + 1

    large.do(ask())
    assert order[-1] == "first"
    large.close()
    assert (large.code, large.errors) == (0, "")


def test_a_name_gets_its_page_when_it_is_looked_at(large: Editor) -> None:
    """If the editor says that it asks for pages; the list itself is short."""
    options = large.initialized.capabilities.completion_provider
    assert options is not None and options.resolve_provider
    text = (large.folder / FILE).read_text("utf-8") + 'output "x" {\n  value = kafka_topic.|\n}\n'
    items = large.complete(FILE, text)
    assert len(items) == FILES * TOPICS
    assert {item.documentation for item in items.values()} == {None}
    item = large.do(large.client.completion_item_resolve_async(items["t7"]))
    assert isinstance(item.documentation, types.MarkupContent)
    assert "Declared in f0001.kf.hcl." in item.documentation.value
    # An offer that has everything, and one that this server has not made.
    text = text.replace("kafka_topic.|", "|")
    function = large.complete(FILE, text)["format"]
    assert function.documentation is not None
    assert large.do(large.client.completion_item_resolve_async(function)) == function
    strange = types.CompletionItem("x", data={"other": 1})
    assert large.do(large.client.completion_item_resolve_async(strange)) == strange
    large.close()
    assert (large.code, large.errors) == (0, "")


def test_the_server_ends_while_it_works(large: Editor) -> None:
    """What waits for its turn is dropped, and nothing is written but answers."""
    cursor = large.open(FILE, (large.folder / FILE).read_text("utf-8").replace("var.", "var.|", 1))
    params = types.RenameParams(**large.place(FILE, cursor), new_name="a")

    async def ask() -> None:
        for _ in range(20):
            large.client.protocol.send_request(types.TEXT_DOCUMENT_RENAME, params)

    large.do(ask())
    large.close()
    assert (large.code, large.errors) == (0, "")
