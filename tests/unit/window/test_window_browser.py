"""The window in a real browser: the way in, every page, its links and forms, what it looks like."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform.core.resource import Identity
from kafkaform.window.page import MENU, make_id

from ...kit.browser import NAMES, Browser, browser, executable
from ...kit.web_page import DESK, PALE, PHONE, WIDE, complaints
from .test_live import System, live_window, system
from .test_repository import make_repository
from .test_repository import make_sources as make_repository_sources
from .world import HOSTILE_NAME, Window, make_folder, make_hostile_folder, make_sources, open_window

__all__ = ["live_window", "system"]
COMMAND = executable()
pytestmark = pytest.mark.skipif(
    COMMAND is None, reason=f"no browser is installed: none of {', '.join(NAMES)} is on the path"
)
ITEMS = {
    "plan": f"plans/{make_id('everything.kfplan')}",
    "object": f"objects/{make_id(str(Identity('kafka', 'kafka_topic', 'orders')))}",
    "run": f"log/{make_id('run-2')}",
    "records": f"records/{make_id('run-2')}",
    "answer": "access?kind=Topic&name=orders",
}
"""Pages of single things of the folder."""
ALL = {**{path or "overview": path for path in MENU}, **ITEMS}
LINKS = "[...document.querySelectorAll('main a, nav a')].map(a => a.href)"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    with open_window(make_sources(make_folder(tmp_path_factory.mktemp("window") / "f"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    folder = make_hostile_folder(tmp_path_factory.mktemp("hostile") / "f")
    with open_window(make_sources(folder)) as opened:
        yield opened


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert COMMAND is not None
    with browser(COMMAND, tmp_path_factory.mktemp("profile")) as started:
        yield started


def enter(page: Browser, window: Window) -> None:
    """As a user does: the printed address."""
    page.scripts(run=True)
    page.size(DESK)
    page.visit(window.server.gate.address)


def visit(page: Browser, window: Window, path: str) -> None:
    page.visit(f"http://{window.host}{window.server.gate.root}{path}")


def grumbles(page: Browser) -> list[object]:
    """What the browser complains about, without the icon that it asks every server for."""
    return [one for one in complaints(page) if not str(one).endswith("/favicon.ico")]


def test_the_printed_address_leads_in(window: Window, chromium: Browser) -> None:
    """The token is gone from the address bar, scripts cannot read the cookie, and without it the
    same page is refused."""
    enter(chromium, window)
    assert chromium.run("location.href") == f"http://{window.host}{window.server.gate.root}"
    assert chromium.run("document.querySelector('h1').textContent") == "Overview"
    assert chromium.run("document.cookie") == ""
    chromium.ask("Network.clearBrowserCookies")
    chromium.visit(f"http://{window.host}{window.server.gate.root}")
    assert "kafkaform serve" in chromium.run("document.body.textContent")
    assert chromium.run("document.querySelector('h1')") is None


def test_another_port_does_not_get_the_cookie(
    window: Window, hostile: Window, chromium: Browser
) -> None:
    """Cookies do not know ports, so this one belongs to a path that nobody else is asked for."""
    chromium.ask("Network.clearBrowserCookies")
    enter(chromium, window)
    for address in (f"http://{hostile.host}/", f"http://{hostile.host}{hostile.server.gate.root}"):
        found = chromium.ask("Network.getCookies", urls=[address])
        assert found["cookies"] == []


@pytest.mark.parametrize("name", ALL)
def test_nothing_goes_wrong_on_any_page(window: Window, chromium: Browser, name: str) -> None:
    """No message of the policy, no error, no request but the page; it fits a desk and a phone, and
    every text can be read."""
    enter(chromium, window)
    for width in (DESK, PHONE):
        chromium.size(width)
        visit(chromium, window, ALL[name])
        assert grumbles(chromium) == []
        assert chromium.run(WIDE) == [False, []]
    seen, pale = chromium.run(PALE)
    assert seen > 5 and pale == []
    assert chromium.run("getComputedStyle(document.body).fontFamily").startswith("system-ui")


def test_a_button_asks_the_cluster(live_window: Window, system: System, chromium: Browser) -> None:
    """The browser says that the form is one of our page, the answer is on the page, and loading it
    again asks nobody; by the same measures, by day and by night."""
    enter(chromium, live_window)
    visit(chromium, live_window, ITEMS["object"])
    chromium.run("document.querySelector('form[method=post] button').click()")
    deadline = time.monotonic() + 30
    while not chromium.run("location.hash") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert chromium.run("location.hash") == "#now"
    for scheme in ("light", "dark"):
        for width in (DESK, PHONE):
            chromium.size(width, scheme=scheme)
            visit(chromium, live_window, ITEMS["object"])
            assert "18,400 records" in chromium.run("document.body.textContent")
            assert grumbles(chromium) == [] and chromium.run(WIDE) == [False, []]
            assert chromium.run(PALE)[1] == []
    assert len(system.looks) == 1


@pytest.mark.parametrize("path", ["", f"folders/{make_id('teams/shop')}/"])
def test_a_repository_is_shown(tmp_path: Path, chromium: Browser, path: str) -> None:
    """Its page and those of its folders, by the same measures, by day and by night."""
    with open_window(make_repository_sources(make_repository(tmp_path / "top"))) as window:
        enter(chromium, window)
        for width in (DESK, PHONE):
            chromium.size(width, scheme="dark")
            visit(chromium, window, path)
            assert grumbles(chromium) == []
            assert chromium.run(WIDE) == [False, []]
            assert chromium.run(PALE)[1] == []
            chromium.size(width)
            assert chromium.run(PALE)[1] == []


@pytest.mark.parametrize("name", MENU)
def test_pages_are_read_by_night(window: Window, chromium: Browser, name: str) -> None:
    """Each text has at least 4.5 to 1 to its ground in the dark scheme, too."""
    enter(chromium, window)
    chromium.size(DESK, scheme="dark")
    visit(chromium, window, name)
    assert chromium.run(PALE)[1] == []


def test_every_link_leads_to_a_page(window: Window, chromium: Browser) -> None:
    """From the overview, all that can be reached answers, and stays inside the window."""
    enter(chromium, window)
    root = f"http://{window.host}{window.server.gate.root}"
    waiting, seen = [root], set()
    while waiting:
        address = waiting.pop().partition("#")[0]
        if address in seen:
            continue
        assert address.startswith(root)
        seen.add(address)
        status, _, body = window.open(address.removeprefix(root))
        assert status == 200, address
        waiting += [f"http://{window.host}{path}" for path in re.findall(r'href="(/[^"]*)"', body)]
    assert len(seen) > 15


def test_a_form_asks_for_another_page(window: Window, chromium: Browser) -> None:
    """The policy allows forms that lead here, and Enter in a field sends it."""
    enter(chromium, window)
    visit(chromium, window, "objects")
    chromium.events.clear()
    chromium.run("document.querySelector('input[name=q]').value = 'orders'")
    chromium.run("document.querySelector('form').submit()")
    while not chromium.told("Page.loadEventFired"):
        chromium.events.append(chromium._next())
    assert chromium.run("new URLSearchParams(location.search).get('q')") == "orders"
    rows = chromium.run("[...document.querySelectorAll('tbody tr')].map(r => r.textContent)")
    assert rows and all("orders" in row for row in rows)
    assert grumbles(chromium) == []


@pytest.mark.parametrize("path", MENU)
def test_hostile_names_are_text_in_the_browser(
    hostile: Window, chromium: Browser, path: str
) -> None:
    """Markup, reversed text and control characters in every name: nothing runs, nothing is drawn
    beyond the window."""
    enter(chromium, hostile)
    visit(chromium, hostile, path)
    assert grumbles(chromium) == []
    assert chromium.run("document.querySelectorAll('script, img, iframe, b b').length") == 0
    assert chromium.run(WIDE) == [False, []]
    if path == "objects":
        visible = chromium.run("document.body.textContent")
        assert "<script>" in visible and "\u202e" not in visible
        assert HOSTILE_NAME[:8] in visible


def test_it_works_without_scripts(window: Window, chromium: Browser) -> None:
    """No page of the window has one; only the search of a plan's page needs one."""
    enter(chromium, window)
    chromium.scripts(run=False)
    visit(chromium, window, "log")
    assert chromium.run("document.querySelectorAll('tbody tr').length") == 2
    assert grumbles(chromium) == []


@pytest.mark.parametrize("name", ALL)
def test_a_picture_of_it(window: Window, chromium: Browser, tmp_path: Path, name: str) -> None:
    """Each page is drawn. KAFKAFORM_PICTURES=FOLDER keeps the pictures."""
    enter(chromium, window)
    visit(chromium, window, ALL[name])
    picture = chromium.picture()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n") and len(picture) > 10_000
    folder = Path(os.environ.get("KAFKAFORM_PICTURES", tmp_path))
    (folder / f"window-{name}.png").write_bytes(picture)
