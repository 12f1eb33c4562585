"""The conformance suite finds what only a provider that is not Kafka gets wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.provider import blocks
from kafkaform.provider.contract import ResourceType
from kafkaform.provider.workbench import Violation
from kafkaform_textstore import file
from kafkaform_textstore.server import Server, Store

from .conftest import EXAMPLE


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The example's own fixture, with a store."""
    monkeypatch.syspath_prepend(EXAMPLE / "tests")
    import textstore_systems

    with Server(Store(textstore_systems.USERS)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield textstore_systems.FileSystem(server)
        server.shutdown()
        thread.join()


LABELLED = replace(
    file.TYPE, schema=make_schema("A file.", AttributeSchema("labels", STRING, "Its labels."))
)
AS_WRITTEN = replace(
    file.TYPE,
    target=lambda declared, *_: FrozenMap({n: declared[n] for n in ("name", "content", "headers")}),
)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (LABELLED, blocks.a_schema_leaves_meta_arguments_alone),
        (AS_WRITTEN, blocks.canonical_is_idempotent),
    ],
    ids=["an attribute called labels", "a target as the block spells it"],
)
def test_a_type_that_breaks_a_promise_is_found(
    system: object, broken: ResourceType, check: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sound type passes the check, the broken one does not."""
    check(system)
    monkeypatch.setattr(system, "type", broken)
    with pytest.raises(Violation):
        check(system)
