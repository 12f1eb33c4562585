"""Fixtures of the conformance suite: how to reach a store, and how to touch it from outside."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from kafkaform.core.clock import Clock, SystemClock
from kafkaform.core.resource import FaultClass
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef
from kafkaform.provider.contract import Provider, ResourceType, Secrets, Session
from kafkaform.provider.testing.workbench import INSTANCE, About, Edit, Question
from kafkaform_textstore import file, link
from kafkaform_textstore.provider import DATA, PROVIDER
from kafkaform_textstore.server import Server, Store, User

USERS = {"admin-token": User("admin"), "nobody-token": User("nobody", None)}
TOKEN = SecretRef("env", "TEXTSTORE_TOKEN")
TARGETS = ("conformance/one", "conformance/two")
"""Files that are always there, for links."""


def headers(**given: str) -> FrozenMap:
    """Keyword `cache_control` is the header `cache-control`."""
    return FrozenMap(headers=FrozenMap({k.replace("_", "-"): v for k, v in given.items()}))


class BriskClock(SystemClock):
    """Goes as the computer's; who waits for a change sooner sees that there is none."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / 20)


class System:
    """What both types share: a server, and doors to it."""

    type: ResourceType
    provider: Provider = PROVIDER
    edits: Sequence[Edit] = ()
    bad: FrozenMap = EMPTY
    data: Mapping[str, ObjectSchema] = EMPTY
    questions: Sequence[Question] = ()
    secrets: Secrets = EMPTY
    incarnations = True
    unfit: Mapping[str, str] = EMPTY

    def __init__(self, server: Server) -> None:
        self.clock: Clock = BriskClock()
        self._server = server
        self._store: Store = server.store
        for name in TARGETS:
            self.write("create", "file", name, content=name, headers={})

    def open(self, *, privileged: bool) -> Session:
        token = "admin-token" if privileged else "nobody-token"
        config = FrozenMap(url=self._server.url, token=TOKEN, timeout=2)
        return PROVIDER.open(INSTANCE, config, {str(TOKEN): Secret(token)})

    def write(self, do: str, kind: str, name: str, **given: object) -> None:
        """One operation as the store's own administrator."""
        operation = {"do": do, "kind": kind, "name": name, **given}
        self._store.write(USERS["admin-token"], [operation])


class FileSystem(System):
    """Files of a store."""

    type = file.TYPE
    bad = headers(cache_control="")
    data = {file.KIND: DATA}
    edits = (
        Edit("change the content", wish=FrozenMap(content="other")),
        Edit("set a header", wish=headers(etag="x")),
        Edit("spell a header otherwise", headers(etag="x"), headers(ETag="y")),
        Edit(
            "remove a header",
            headers(etag="x", cache_control="max-age=60"),
            headers(etag="x"),
            fallbacks=FrozenMap({"headers.cache-control": "no-cache"}),
        ),
        Edit(
            "set what somebody else has set meanwhile",
            wish=FrozenMap(content="mine"),
            meanwhile=FrozenMap(content="theirs"),
        ),
        Edit("write too much", wish=FrozenMap(content="x" * 70_000), expect=FaultClass.DEFINITE),
        Edit("set nonsense", wish=FrozenMap(headers=FrozenMap({"a b": "1"})), blocked=True),
    )
    questions = (
        Question(
            file.KIND,
            About.OBJECT,
            lambda attributes: FrozenMap(name=attributes["name"]),
            lambda answer, attributes: answer["content"] == attributes["content"],
        ),
    )

    def fresh(self, given: FrozenMap) -> FrozenMap:
        name = f"conformance/{uuid.uuid4().hex[:12]}"
        return FrozenMap(name=name, content="text", headers=EMPTY).with_items(given)

    def make(self, attributes: FrozenMap) -> None:
        self.write("create", "file", **attributes)

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        self.write("update", "file", attributes["name"], **given)

    def recreate(self, attributes: FrozenMap) -> None:
        self.write("delete", "file", attributes["name"])
        self.make(attributes)


ASKED = "the data sources are asked in the suite of textstore_file"


class LinkSystem(System):
    """Links of a store."""

    type = link.TYPE
    bad = FrozenMap(target="conformance/no-such-file")
    edits = (
        Edit("lead elsewhere", wish=FrozenMap(target=TARGETS[1])),
        Edit("lead nowhere", wish=bad, expect=FaultClass.DEFINITE),
    )
    incarnations = False
    unfit = {
        "delete_takes_only_that_incarnation": "a link is nothing but where it leads to",
        "a_removed_path_says_what_takes_effect": "nothing of a link can be removed",
        "a_query_answers_as_its_schema_says": ASKED,
        "a_query_does_not_guess": ASKED,
    }

    def fresh(self, given: FrozenMap) -> FrozenMap:
        name = f"conformance/{uuid.uuid4().hex[:12]}"
        return FrozenMap(name=name, target=TARGETS[0]).with_items(given)

    def make(self, attributes: FrozenMap) -> None:
        self.write("put", "link", **attributes)

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        self.make(attributes.with_items(given))

    def recreate(self, attributes: FrozenMap) -> None:
        self.write("delete", "link", attributes["name"])
        self.make(attributes)
