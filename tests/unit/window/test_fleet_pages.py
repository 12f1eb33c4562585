"""The fleet's tables and report in the window, from a real build."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kafkaform.core.resource import Identity
from kafkaform.fleet.report.rows import Sheet
from kafkaform.fleet.tables.definitions import TABLES
from kafkaform.window.access import show_sheet
from kafkaform.window.fleet import REPORT, list_columns
from kafkaform.window.page import make_id
from kafkaform.window.server import find_page
from kafkaform.workflow import outside_changes

from ...kit.fleet import sample
from ...kit.fleet.lake import publish
from ...kit.markup import Page
from ..render.hostile import HOSTILE
from .world import acl, make_folder, make_sources

MANY = "unused_topics"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build, as `fleet run` makes it."""
    place = tmp_path_factory.mktemp("fleet") / "root"
    publish(place, "b-1", sample.tables(Random(7)))
    return place


def show(tmp_path: Path, root: Path, path: str, query: str = "") -> str:
    folder = tmp_path / "folder"
    if not folder.exists():
        make_folder(folder)
    found = find_page(make_sources(folder, str(root)), path, query, "/window/")
    assert found is not None, path
    return found


def words(page: str) -> str:
    return " ".join(" ".join(text for trail, text in Page(page).texts if "body" in trail).split())


def test_the_tables_are_listed(tmp_path: Path, root: Path) -> None:
    """Those for people, with their rows, and a link to the report."""
    page = show(tmp_path, root, "fleet")
    assert "b-1" in words(page) and MANY in words(page)
    links = [a["href"] for a in Page(page).all("a")]
    assert f"/window/fleet/{make_id(MANY)}" in links and f"/window/report/{REPORT}" in links


def test_a_table_shows_its_rows(tmp_path: Path, root: Path) -> None:
    """In the order of its key, in portions, without columns that only builds read."""
    rows = sample.tables(Random(7))[MANY]
    first = show(tmp_path, root, f"fleet/{make_id(MANY)}")
    assert len(Page(first).all("th")) == len(list_columns(MANY)) < len(TABLES[MANY].names)
    tags = [tag for tag, _ in Page(first).tags]
    assert tags.count("tr") - 1 == min(len(rows), 200)
    last = show(tmp_path, root, f"fleet/{make_id(MANY)}", "first=1000000")
    assert words(last)


def test_every_table_can_be_shown(tmp_path: Path, root: Path) -> None:
    """Each one that the listing links to, whatever its columns are."""
    page = show(tmp_path, root, "fleet")
    links = [str(a["href"]) for a in Page(page).all("a") if "/fleet/" in str(a["href"])]
    assert len(links) > 8
    for link in links:
        assert show(tmp_path, root, link.removeprefix("/window/"))


def test_the_report_is_a_page(tmp_path: Path, root: Path) -> None:
    """The same that `fleet report` writes."""
    assert "<h1>Fleet report</h1>" in show(tmp_path, root, f"report/{REPORT}")


def test_the_fleet_is_asked_who_can(tmp_path: Path, root: Path) -> None:
    """The answer of `fleet who-can`; what it cannot parse is explained on the page."""
    query = "operation=READ&resource=topic/orders"
    assert "READ topic/orders" in words(show(tmp_path, root, "access", query))
    wrong = words(show(tmp_path, root, "access", "operation=FLY&resource=topic/orders"))
    assert "FLY" in wrong and "Traceback" not in wrong


def test_a_topic_shows_who_uses_it(tmp_path: Path) -> None:
    """What the snapshots of its own cluster show, with the groups that read it."""
    tables = sample.tables(Random(7))
    use = tables["unused_topics"][0]
    tables["cluster"] = [
        {**tables["cluster"][0], "cluster": "here", "cluster_id": "cluster-1"},
        {**tables["cluster"][1], "cluster": "there", "cluster_id": "cluster-2"},
    ]
    here = {**use, "cluster": "here", "topic": "orders", "committed": {"billing": 7, "audit": 1}}
    there = {**here, "cluster": "there", "committed": {"stranger": 7}}
    tables["unused_topics"] = [here, there]
    publish(tmp_path / "root", "b-1", tables)
    path = f"objects/{make_id(str(Identity('kafka', 'kafka_topic', 'orders')))}"
    text = words(show(tmp_path, tmp_path / "root", path))
    assert "Consumer groups with offsets 2 Group audit billing" in text
    assert "no group has read it" in text and "stranger" not in text
    tables["unused_topics"] = [there]
    publish(tmp_path / "other", "b-1", tables)
    text = words(show(tmp_path, tmp_path / "other", path))
    assert "has no snapshot of this topic" in text


def test_acls_of_the_fleet_are_sentences(tmp_path: Path) -> None:
    """In the tables, which name objects by kind and key, and in the answers of who can."""
    identity = acl("User:ci", "Read", "orders").identity
    tables = sample.tables(Random(7))
    row = {**tables["drift"][0], "kind": identity.kind, "key": identity.key}
    publish(tmp_path / "root", "b-1", {**tables, "drift": [row]})
    text = words(show(tmp_path, tmp_path / "root", f"fleet/{make_id('drift')}"))
    assert 'Allow User:ci Read on topic "orders" from any host' in text and identity.key not in text
    table = show_sheet(Sheet(("via",), (((identity.key,),),)), "READ topic/orders")
    assert table.rows[0][0].text == 'Allow User:ci Read on topic "orders" from any host'


@pytest.mark.parametrize("text", HOSTILE[:12])
def test_hostile_cells_are_text(tmp_path: Path, text: str) -> None:
    """Names in the tables add no element."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    place = tmp_path / "root"
    tables = sample.tables(Random(7))
    publish(place, "b-1", sample.hostile({MANY: tables[MANY]}, text))
    made = Page(show(tmp_path, place, f"fleet/{make_id(MANY)}"))
    assert {tag for tag, _ in made.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "nav"),
        *("ul", "li", "a", "main", "section", "div", "table", "caption", "span", "b", "thead"),
        *("tr", "th", "tbody", "td", "footer", "code"),
    }


def test_missing_packages_are_named(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says what to install; all other pages work without it."""
    monkeypatch.setattr(outside_changes, "find_spec", lambda _: None)
    assert "[fleet-read]" in words(show(tmp_path, root, "fleet"))
    assert "Serial" in words(show(tmp_path, root, ""))


def test_a_root_without_a_build_is_explained(tmp_path: Path) -> None:
    """The page says that there is none yet, and how to make one."""
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no build yet" in words(show(tmp_path, empty, "fleet"))
