"""The site is built without a network or a warning, needs no other server, and is whole."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import mkdocs
import pytest

from ...kit.browser import NAMES, Browser, browser, executable
from ...kit.web_page import DESK

pytestmark = pytest.mark.slow("builds the whole site")
ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
COMMAND = executable()
BUILD = """
import socket, sys
def refuse(*_, **__): raise OSError("the site is built without a network")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from mkdocs.__main__ import cli
cli(["build", "--strict", "--quiet", "--site-dir", sys.argv[1]])
"""
ELSEWHERE = re.compile(r"(?:https?:)?//")
SEARCH = """(() => {
  document.querySelector('input[name=query]').dispatchEvent(new Event('keyup'));
  return [...document.querySelectorAll('.md-search-result__link')].map(a => a.href);
})()"""
"""Lets go of a key in the search box; what was found so far."""
LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}
"""Element -> the attribute with the address of what a browser loads for it."""


class Page(HTMLParser):
    """What a page links to, loads, and offers as anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel") != "canonical":
            self.loads.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    assert mkdocs.__version__
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Each page of the site but the one for addresses that do not exist."""
    found = (path for path in site.rglob("*.html") if path.name != "404.html")
    return {path: Page(path.read_text(encoding="utf-8")) for path in found}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if COMMAND is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)} is on the path")
    with browser(COMMAND, tmp_path_factory.mktemp("profile")) as started:
        yield started


def test_each_document_is_a_page(site: Path, pages: dict[Path, Page]) -> None:
    """No document is left out but the fragments of the change log. The build itself refuses one
    that is not in the navigation."""
    documents = {path.relative_to(DOCS) for path in DOCS.rglob("*.md")}
    wanted = {path for path in documents if "." not in path.stem}
    made = {path.relative_to(site) for path in pages}
    for path in wanted:
        name = "index.html" if path.name in ("README.md", "index.md") else f"{path.stem}.html"
        assert path.with_name(name) in made, path


def test_each_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    """Links within the site name a page that is there, and an anchor in it."""
    dead = []
    for path, page in pages.items():
        for link in page.links:
            if ELSEWHERE.match(link) or link.startswith("mailto:"):
                continue
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            other = pages.get(target)
            there = target.exists() if other is None else unquote(parts.fragment) in other.anchors
            dead += [] if there else [(path.name, link)]
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    """Pages, styles and pictures load files of the site only."""
    loads = {(path.name, load) for path, page in pages.items() for load in page.loads}
    assert [one for one in loads if ELSEWHERE.match(one[1])] == []
    for path in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        used = re.findall(r"url\(\s*[\"']?([^)\"']+)", path.read_text(encoding="utf-8"))
        assert [one for one in used if ELSEWHERE.match(one)] == [], path


def test_the_search_knows_every_page(site: Path, pages: dict[Path, Page]) -> None:
    """The index has an entry for each page, and one for each error message's area."""
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    known = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {path.relative_to(site).as_posix() for path in pages} <= known
    assert "messages.html#state-lock-and-stores" in {entry["location"] for entry in index["docs"]}


def test_a_message_is_found_on_a_disk(site: Path, chromium: Browser) -> None:
    """Opened from a disk, the site loads nothing from elsewhere, and its search finds an error
    message by its words."""
    chromium.size(DESK)
    chromium.open(site / "index.html")
    chromium.run("document.querySelector('[data-md-toggle=search]').click()")
    chromium.run("document.querySelector('input[name=query]').focus()")
    chromium.ask("Input.insertText", text="the last record was changed")
    found, deadline = [], time.monotonic() + 120
    while not found and time.monotonic() < deadline:
        found = chromium.run(SEARCH)
        time.sleep(0.2)
    assert any("messages.html" in one or "troubleshooting.html" in one for one in found), found
    asked = [event["request"]["url"] for event in chromium.told("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert chromium.told("Runtime.exceptionThrown", "Log.entryAdded") == []


def test_the_figures_of_the_comparison_were_measured() -> None:
    """Each time that the comparison names is one of the page about speed."""
    text = (DOCS / "comparison.md").read_text(encoding="utf-8")
    named = re.findall(r"\d+\.\d\d s", text)
    measured = (DOCS / "performance.md").read_text(encoding="utf-8")
    assert named and [one for one in named if f"| {one} |" not in measured] == []


@pytest.mark.parametrize("name", ["terminal-plan.svg", "terminal-apply.svg"])
def test_a_picture_shows_what_its_command_prints(name: str) -> None:
    """It is text of kafkaform, needs no font of another server, and stands on a page."""
    picture = (DOCS / "assets" / name).read_text(encoding="utf-8")
    assert "kafka_topic.orders" in picture and "@font-face" not in picture
    assert any(name in path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
