"""What the conformance suite cannot provoke: failures of one request among many."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from textstore_systems import TOKEN, FileSystem

from kafkaform.core.errors import ConnectError, OtherSystem
from kafkaform.core.resource import CoverageKind, Depth, Fault, FaultClass
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Session
from kafkaform_textstore import file
from kafkaform_textstore import server as server_module
from kafkaform_textstore.client import Client, Reply, RequestFailed, item_fault
from kafkaform_textstore.provider import PROVIDER
from kafkaform_textstore.server import PAGE, Server


@pytest.fixture
def system(server: Server) -> FileSystem:
    return FileSystem(server)


@pytest.fixture
def session(system: FileSystem) -> Iterator[Session]:
    opened = system.open(privileged=True)
    yield opened
    opened.close()


def make_client(server: Server, url: str = "", token: str = "admin-token") -> Client:
    return Client(url or server.url, Secret(token), 2.0, server.store.id)


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    opened = make_client(server)
    yield opened
    opened.close()


def test_a_listing_of_many_pages_is_whole(system: FileSystem, session: Session) -> None:
    """Every page is asked for, and only then the listing is complete."""
    for number in range(PAGE + 1):
        system.write("create", "file", f"many/{number:03}", content="", headers={})
    sweep = session.sweep(file.KIND, Depth.FULL)
    assert sweep.coverage.kind is CoverageKind.COMPLETE
    assert len(sweep.items) == PAGE + 3


def test_a_listing_without_its_second_page_has_failed(
    system: FileSystem, session: Session, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a listing is none: what it lacks would look like deleted files."""
    for number in range(PAGE + 1):
        system.write("create", "file", f"many/{number:03}", content="", headers={})
    whole = Client.page

    def broken(self: Client, kind: str, after: str, *, full: bool) -> Reply:
        if after:
            raise RequestFailed(Fault("NO_ANSWER", "reset", FaultClass.AMBIGUOUS))
        return whole(self, kind, after, full=full)

    monkeypatch.setattr(Client, "page", broken)
    sweep = session.sweep(file.KIND, Depth.NAMES)
    assert (sweep.coverage.kind, sweep.items) == (CoverageKind.FAILED, ())


@pytest.mark.parametrize(
    ("given", "closed", "kind"),
    [
        ({"url": "http://127.0.0.1:1"}, False, FaultClass.NOT_APPLIED),
        ({"token": "unknown"}, False, FaultClass.PERMISSION),
        ({}, True, FaultClass.NOT_APPLIED),
    ],
)
def test_what_was_never_sent_is_not_ambiguous(
    server: Server, given: dict[str, str], closed: bool, kind: FaultClass
) -> None:
    """A failure before the request says that nothing happened."""
    client = make_client(server, **given)
    if closed:
        client.close()
    with pytest.raises(RequestFailed) as caught:
        client.write([], validate_only=False)
    assert caught.value.fault.kind is kind
    client.close()


def test_a_request_that_comes_late_is_dropped(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store executes nothing that its sender has given up."""
    later = SimpleNamespace(time=lambda: time.time() + 3.0)
    monkeypatch.setattr(server_module, "time", later)
    operation = {"do": "create", "kind": "file", "name": "a", "content": "", "headers": {}}
    with pytest.raises(RequestFailed) as caught:
        client.write([operation], validate_only=False)
    assert caught.value.fault.kind is FaultClass.NOT_APPLIED
    assert not server.store.files


def test_a_code_that_nobody_knows_is_ambiguous() -> None:
    """A later version of the store may say it of something that it has done."""
    fault = item_fault({"code": "moderated"})
    assert fault is not None and fault.kind is FaultClass.AMBIGUOUS


def test_answers_without_proof_are_ambiguous(client: Client, server: Server) -> None:
    """If the token ends right after the write, nobody knows who has answered: the operations
    count as unknown, and not as refused for a missing right."""
    write = server.store.write

    def last(*given: Any, **also: Any) -> list[Reply]:
        server.store.users = {}
        return write(*given, **also)

    server.store.write = last  # type: ignore[method-assign]  # what happens between two requests
    with pytest.raises(RequestFailed) as caught:
        client.write([], validate_only=False)
    assert caught.value.fault.kind is FaultClass.AMBIGUOUS


def test_another_store_is_never_believed_again(
    session: Session, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once another one has answered, every call says so, also after the right one is back."""
    session.prove()
    with monkeypatch.context() as patch:
        patch.setattr(server.store, "id", "another")
        with pytest.raises(OtherSystem, match="another"):
            session.prove()
    with pytest.raises(OtherSystem):
        session.sweep(file.KIND, Depth.NAMES)


def test_a_store_that_is_not_there_is_named() -> None:
    """`open` says where it looked and what to do."""
    config = FrozenMap(url="http://127.0.0.1:1", token=TOKEN, timeout=1)
    with pytest.raises(ConnectError, match="127.0.0.1:1") as caught:
        PROVIDER.open("textstore", config, {str(TOKEN): Secret("x")})
    assert "whether the server runs" in caught.value.advice
