"""A folder to look into: a state, a log with two runs, and saved plans."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from kafkaform.audit.journal import Journal, make_state_edit_body
from kafkaform.audit.records import RecordKind, decode
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.address import Address
from kafkaform.core.change import PathChange
from kafkaform.core.head import Head
from kafkaform.core.resource import Fault, FaultClass, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.plan.codec import encode as encode_plan
from kafkaform.state.codec import encode
from kafkaform.state.model import Row, State
from kafkaform.window.server import WindowServer
from kafkaform.window.sources import Sources
from kafkaform.workflow.stores import AUDIT_FILE, STATE_FILE, open_folder_store
from kafkaform_kafka.protocol.acl import Acl

from ...kit.audit_story import (
    DENIED,
    NEW_USER,
    OLD,
    ORDERS,
    USER,
    Ticking,
    begin,
    conclude,
    end,
    intend,
    journal,
)
from ...kit.states import SMALL, state_of
from ..render import plans
from ..render.hostile import hostile


def acl(
    principal: str,
    operation: str,
    name: str,
    permission: str = "Allow",
    pattern: str = "Literal",
) -> Row:
    """The row of an ACL on a topic."""
    made = Acl(principal, "*", operation, permission, "Topic", name, pattern)
    identity = Identity("kafka", "kafka_acl", made.key)
    return Row(identity, ("kafka_acl.rights",), 4, made.attributes)


def make_state() -> State:
    rows = (
        *SMALL.objects.values(),
        acl("User:ci", "Read", "orders"),
        acl("User:ada", "Write", "orders"),
    )
    return state_of(*rows)


def make_folder(folder: Path) -> Path:
    """The folder, which exists afterwards."""
    folder.mkdir(exist_ok=True)
    sink = LocalSink(folder / AUDIT_FILE)
    clock = Ticking()
    for run in ("run-1", "run-2"):
        log = journal(sink, run, clock)
        begin(log, plan=plans.everything())
        intend(log, ORDERS)
        conclude(log, ORDERS, incarnation="id-orders", duration_ms=41)
        if run == "run-1":
            intend(log, OLD, None)
            conclude(log, OLD, "failed", fault=DENIED)
        else:
            intend(log, USER, NEW_USER)
        end(log, complete=run == "run-1")
    last = sink.last()
    assert last is not None
    record = decode(last)
    state = replace(make_state(), audit_head=Head(record.seq, record.hash))
    (folder / STATE_FILE).write_bytes(encode(state))
    newest = replace(plans.everything(), created="2026-11-21T10:00:00Z")
    (folder / "everything.kfplan").write_bytes(encode_plan(newest))
    (folder / "review.kfplan").write_bytes(encode_plan(plans.review(60)))
    (folder / "notes.txt").write_text("no plan")
    (folder / "link.kfplan").symlink_to(folder / "review.kfplan")
    return folder


HOSTILE_NAME = 'evil-"><script>alert(1)</script>\u202egnp\x1b[2J\r\n::error::x' + "x" * 5_000
"""A name with markup, reversed text and control characters, and longer than any page is wide."""


def make_hostile_folder(folder: Path, text: str = HOSTILE_NAME) -> Path:
    """The same with this text in every name."""
    folder.mkdir(exist_ok=True)
    identity = Identity(text, text, text)
    values = FrozenMap({text: text, "config": FrozenMap({text: text})})
    address = str(Address("kafka_topic", "x", text))
    row = Row(identity, (address,), 4, values, text, "default", text, FrozenMap({text: text}))
    sink = LocalSink(folder / AUDIT_FILE)
    log = Journal(sink, Ticking(), text, text, text)
    begin(log, plan=plans.everything())
    subject = replace(
        ORDERS,
        identity=identity,
        address=address,
        step=text,
        incarnation=text,
        paths=(PathChange((text,), text, text + "x"),),
        owners=(address,),
    )
    intend(log, subject, values)
    conclude(log, subject, "failed", fault=Fault(text, text, FaultClass.PERMISSION, text))
    intend(log, replace(subject, step=f"{text}-2"), values)
    last = log.write(RecordKind.STATE, make_state_edit_body(7, text, text, {identity: None}))
    rights = [acl(text, "Read", text), acl(f"User:{text}", "Write", "orders")]
    objects = {one.identity: one for one in (row, *rights)}
    head = Head(last.seq, last.hash)
    state = State(text, 3, objects, FrozenMap({text: text}), audit_head=head)
    (folder / STATE_FILE).write_bytes(encode(state))
    (folder / f"{text[:12].replace('/', '_')}.kfplan").write_bytes(encode_plan(hostile(text)))
    return folder


def make_sources(folder: Path, fleet_root: str | None = None) -> Sources:
    return Sources(folder, open_folder_store(folder, None, None), fleet_root)


@dataclass
class Window:
    """A running window, and a client that was let in."""

    server: WindowServer
    faults: list[BaseException]

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.gate.port}"

    def ask(
        self, target: str, method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers in lower case, and body. headers: with `_` for `-`."""
        line = http.client.HTTPConnection("127.0.0.1", self.server.gate.port, timeout=60)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            line.putrequest(method, target, skip_host="Host" in given)
            for name, value in given.items():
                line.putheader(name, value)
            line.endheaders()
            answer = line.getresponse()
            body = answer.read().decode()
            return answer.status, {n.lower(): v for n, v in answer.getheaders()}, body
        finally:
            line.close()

    def open(self, path: str = "") -> tuple[int, dict[str, str], str]:
        """A page below the root, with the cookie."""
        return self.ask(self.server.gate.root + path, Cookie=f"kafkaform={self.server.gate.cookie}")

    def page(self, path: str = "") -> str:
        status, _, body = self.open(path)
        assert status == 200, body
        return body


@contextmanager
def open_window(sources: Sources) -> Iterator[Window]:
    faults: list[BaseException] = []
    with WindowServer(sources, 0, faults.append) as server:
        running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        running.start()
        try:
            yield Window(server, faults)
        finally:
            server.shutdown()
            running.join()
