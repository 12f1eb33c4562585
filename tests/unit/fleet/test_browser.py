"""The report in a real browser: what it looks like, what it does, and that it asks for nothing."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from kafkaform.fleet.report import documents
from kafkaform.fleet.report.causes import MAX_CAUSES, SHOWN_CAUSES
from kafkaform.fleet.report.documents import render_html
from kafkaform.fleet.tables.reader import Gold, read_current

from ...kit.browser import HEIGHT, NAMES, Browser, browser, executable
from ...kit.fleet import sample
from ...kit.fleet.lake import NOW, publish
from ...kit.web_page import CUT, DEAD, DESK, FOLLOW, PALE, PAPER, PHONE, WIDE, complaints
from .test_report import HOSTILE

COMMAND = executable()
pytestmark = pytest.mark.skipif(
    COMMAND is None, reason=f"no browser is installed: none of {', '.join(NAMES)} is on the path"
)
SCREEN = 1400
"""The width of a usual window, in CSS pixels."""
FOCUS = """(() => {
  const e = document.activeElement;
  const all = [...document.querySelectorAll('a, button, summary, .scroll')]
    .filter(e => e.checkVisibility());
  const box = e.getBoundingClientRect();
  return {
    at: all.indexOf(e), of: all.length, is: e.matches('.skip') ? 'skip' : e.tagName,
    outline: getComputedStyle(e).outlineStyle,
    seen: box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight,
  };
})()"""
"""Where the focus is among all that can have it, and whether a reader sees it there."""
COLUMN = """(() => {
  const table = [...document.querySelectorAll('table')]
    .find(t => t.caption.textContent.startsWith('Objects that differ: edited'));
  const heads = [...table.tHead.rows[0].cells];
  const n = heads.findIndex(h => h.textContent === 'Object');
  return {
    sorts: heads.map(h => h.getAttribute('aria-sort')),
    cells: [...table.tBodies[0].rows].map(r => r.cells[n].textContent),
  };
})()"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the sample's second build, and one whose every name is hostile."""
    folder = tmp_path_factory.mktemp("browser")
    root, hostile = folder / "root", folder / "hostile"
    publish(root, "b-1", sample.tables(Random(7)), NOW - timedelta(days=1))
    publish(root, "b-2", sample.tables(Random(7), grown=2))
    publish(hostile, "b-1", sample.hostile(sample.tables(Random(7)), HOSTILE))
    for name in ("root", "hostile"):
        page = render_html(
            documents.make_report(Gold(read_current(str(folder / name))), csv="fleet")
        )
        (folder / f"{name}.html").write_text(page, "utf-8")
    return folder


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert COMMAND is not None
    with browser(COMMAND, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def report(made: Path, chromium: Browser) -> Browser:
    """The sample's page in a window of a desk, with scripts."""
    chromium.scripts(run=True)
    chromium.size(DESK)
    chromium.open(made / "root.html")
    return chromium


@pytest.mark.parametrize("name", ["root", "hostile"])
def test_nothing_goes_wrong_and_nothing_is_asked_for(
    made: Path, report: Browser, name: str
) -> None:
    """No message of the policy, no error, no request, no dialog; also when names are hostile."""
    report.open(made / f"{name}.html")
    assert report.run("document.querySelectorAll('th button').length") > 50
    assert complaints(report) == []
    assert len(report.told("Network.requestWillBeSent")) == 1


def test_every_link_leads_somewhere(report: Browser) -> None:
    """Each names an element; the first and the last one of the contents bring it into view."""
    assert report.run(DEAD) == []
    for link in ("nav li:first-child a", "nav li:last-child a"):
        top = report.run(FOLLOW.replace("LINK", link))
        assert -1 <= top < HEIGHT


@pytest.mark.parametrize("name", ["root", "hostile"])
@pytest.mark.parametrize("width", [SCREEN, DESK, PHONE])
def test_it_fits_the_window(made: Path, report: Browser, width: int, name: str) -> None:
    """On a desk and on a telephone: nothing stands beyond the window's edge."""
    report.size(width)
    report.open(made / f"{name}.html")
    assert report.run(WIDE) == [False, []]


@pytest.mark.parametrize("name", ["root", "hostile"])
def test_it_prints(made: Path, report: Browser, name: str) -> None:
    """On paper, figures are unfolded, no table is cut off, and links of the window are gone."""
    report.size(PAPER, media="print")
    report.open(made / f"{name}.html")
    assert report.run(CUT) == []
    assert report.run(WIDE)[0] is False
    assert report.run("document.querySelector('nav').getClientRects().length") == 0
    hidden = "[...document.querySelectorAll('.figures table')].filter(t => !t.offsetHeight).length"
    assert report.run(hidden) == 0
    button = "getComputedStyle(document.querySelector('th button')).display"
    assert report.run(button) == "contents", "headings of later pages would be empty"
    paper = report.paper()
    assert paper.startswith(b"%PDF-") and len(paper) > 50_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(report: Browser, scheme: str) -> None:
    """As it is drawn: each text has at least 4.5 to 1 to its ground, by day and by night."""
    report.size(DESK, scheme=scheme)
    seen, pale = report.run(PALE)
    assert seen > 1000
    assert pale == []


def test_tables_are_sorted_by_keyboard(report: Browser) -> None:
    """Up, then down; the heading says which; all rows stay. Numbers are sorted as numbers."""
    before = report.run(COLUMN)["cells"]
    button = """[...document.querySelectorAll('table')]
      .find(t => t.caption.textContent.startsWith('Objects that differ: edited'))
      .tHead.rows[0].cells[1].querySelector('button')"""
    report.run(f"{button}.focus()")
    for direction, backwards in (("ascending", False), ("descending", True)):
        report.press("Enter")
        after = report.run(COLUMN)
        assert after["cells"] == sorted(before, reverse=backwards) != before
        assert after["sorts"] == [None, direction, *[None] * 8]
    assert complaints(report) == []


@pytest.mark.parametrize("width", [SCREEN, PHONE])
def test_it_is_read_by_keyboard(report: Browser, width: int) -> None:
    """Tab goes first to the link that skips the menu, and then through everything in the order of
    the page. Whatever has the focus is in the window and has an outline."""
    report.size(width)
    report.run("document.documentElement.style.scrollBehavior = 'auto'")
    places = []
    for _ in range(report.run(FOCUS)["of"]):
        report.press("Tab")
        focus = report.run(FOCUS)
        assert focus["seen"] and focus["outline"] not in ("none", ""), focus
        places.append(focus["at"])
    assert places == list(range(len(places))) and len(places) > 60


def test_the_menu_is_skipped_and_details_open_by_keyboard(report: Browser) -> None:
    """Enter on the first link leads to the coverage; Enter on the further causes shows them."""
    report.press("Tab")
    assert report.run(FOCUS)["is"] == "skip"
    report.press("Enter")
    assert report.run("location.hash") == "#coverage"
    shown = "[...document.querySelectorAll('.causes li')].filter(e => e.checkVisibility()).length"
    before = report.run(shown)
    report.run("document.querySelector('.further summary').focus()")
    report.press("Enter")
    assert (before, report.run(shown)) == (SHOWN_CAUSES, MAX_CAUSES)


def test_numbers_are_sorted_as_numbers(report: Browser) -> None:
    """2 stands before 10, a missing one last, in both directions."""
    cells = """(() => {
      const table = [...document.querySelectorAll('table')]
        .find(t => t.caption.textContent.startsWith('Capacity by cluster'));
      const heads = [...table.tHead.rows[0].cells];
      const n = heads.findIndex(h => h.textContent === 'Limit, replicas');
      const m = heads.findIndex(h => h.textContent === 'Replicas');
      heads[AT].querySelector('button').click();
      const rows = [...table.tBodies[0].rows];
      return rows.map(r => r.cells[AT].dataset.v);
    })()"""
    replicas = [int(v) for v in report.run(cells.replace("AT", "m"))]
    assert replicas == sorted(replicas) and len(set(map(str, replicas))) > 3
    for _ in range(2):
        limits = report.run(cells.replace("AT", "n"))
        assert limits[-1] == "" and "" not in limits[:-1]


def test_it_works_without_scripts(made: Path, report: Browser) -> None:
    """All is there but the buttons that sort; figures unfold."""
    rows = "document.querySelectorAll('td').length"
    with_scripts = report.run(rows)
    report.scripts(run=False)
    report.open(made / "root.html")
    assert report.run(rows) == with_scripts
    assert report.run("document.querySelectorAll('button').length") == 0
    assert complaints(report) == []


@pytest.mark.parametrize("width", [SCREEN, DESK, PHONE])
def test_a_picture_of_it(report: Browser, tmp_path: Path, width: int) -> None:
    """It is drawn: the picture is as wide as the window and holds more than one colour.
    KAFKAFORM_PICTURES=FOLDER keeps it."""
    report.size(width)
    picture = report.picture()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(picture[16:20], "big") == width
    assert int.from_bytes(picture[20:24], "big") > 3000
    folder = Path(os.environ.get("KAFKAFORM_PICTURES", tmp_path))
    (folder / f"fleet-{width}.png").write_bytes(picture)
    assert len(zlib.compress(picture)) > 100_000


def test_what_a_screen_reader_is_told(report: Browser) -> None:
    """Every drawing, table, region and button has a name; headings are in order."""
    report.ask("Accessibility.enable")
    nodes = report.ask("Accessibility.getFullAXTree")["nodes"]
    named = {"image", "table", "region", "button", "navigation", "link", "columnheader"}
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in named
    ]
    assert {role for role, _ in told} == named
    assert [role for role, name in told if not name.strip()] == []
