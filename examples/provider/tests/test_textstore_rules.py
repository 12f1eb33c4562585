"""Each rule finds what it says, nothing near to it, and says the truth about the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textstore_systems import USERS, FileSystem

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Identity, Observed, Sweep
from kafkaform.core.rule import Scene
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_textstore import file, link
from kafkaform_textstore.rules import BOOK
from kafkaform_textstore.server import Server

FACTS = Facts("store")


def make_change(action: Action, before: FrozenMap | None, after: FrozenMap | None) -> Change:
    name = (after or before or EMPTY)["name"]
    return Change(Identity("textstore", file.KIND, name), "a", action, before, after)


def text(content: str, **headers: str) -> FrozenMap:
    return FrozenMap(name="a", content=content, headers=FrozenMap(headers))


def links_to(target: str) -> dict[str, Sweep]:
    """The listing of a store with one link."""
    identity = Identity("textstore", link.KIND, "today")
    item = Observed(identity, FrozenMap(name="today", target=target))
    return {link.KIND: Sweep(link.KIND, Depth.FULL, (item,), Coverage(CoverageKind.COMPLETE))}


def find(change: Change, target: str = "other") -> Iterator[Finding]:
    for judge in BOOK.judges:
        yield from judge.find(change, FACTS)
    for survey in BOOK.surveys:
        yield from (
            finding for _, finding in survey.find(Scene((change,), links_to(target), FACTS))
        )


@pytest.mark.parametrize(
    ("rule", "broken", "target", "harmless"),
    [
        (
            "file-header-invalid",
            make_change(Action.CREATE, None, text("", **{"a b": "1"})),
            "other",
            make_change(Action.CREATE, None, text("", etag="1")),
        ),
        (
            "file-emptied",
            make_change(Action.UPDATE, text("hello"), text("")),
            "other",
            make_change(Action.UPDATE, text("hello"), text("bye")),
        ),
        (
            "file-linked",
            make_change(Action.DELETE, text("hello"), None),
            "a",
            make_change(Action.FORGET, text("hello"), text("hello")),
        ),
    ],
)
def test_a_rule_finds_what_it_says(
    rule: str, broken: Change, target: str, harmless: Change
) -> None:
    """Once where it is broken, and not where it is nearly broken."""
    assert [finding.rule for finding in find(broken, target)] == [rule]
    assert not list(find(harmless, target))


def test_every_rule_is_tested() -> None:
    """Whoever adds a row adds a case and, if it says something about the store, a proof."""
    assert [rule.id for rule in BOOK.rules] == [
        "file-emptied",
        "file-header-invalid",
        "file-linked",
    ]


def test_a_text_is_gone_for_good(server: Server) -> None:
    """Nothing in the store remembers a text that was overwritten."""
    system = FileSystem(server)
    system.write("create", "file", "a", content="hello", headers={})
    system.write("update", "file", "a", content="")
    assert "hello" not in str(vars(server.store))


def test_a_file_is_kept_under_its_link(server: Server) -> None:
    """The store refuses the deletion, and takes it once the link is gone."""
    system = FileSystem(server)
    system.write("put", "link", "today", target="conformance/one")
    deletion = {"do": "delete", "kind": "file", "name": "conformance/one"}
    admin = USERS["admin-token"]
    assert server.store.write(admin, [deletion])[0]["code"] == "in_use"
    system.write("delete", "link", "today")
    assert server.store.write(admin, [deletion])[0]["code"] == "ok"
