"""Looks at live systems from the window: only when somebody presses a button, one at a time, and
never for a page of somebody else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Identity
from kafkaform.core.secret import remember_secret, watch_secrets
from kafkaform.core.text import Grid
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer, Command, CommandGroup, Question
from kafkaform.provider.contract import LookBounds
from kafkaform.provider.registry import Registry
from kafkaform.window.page import make_id
from kafkaform.workflow import live_looks
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.live_looks import LiveLooks, Subject

from ...kit.markup import Page
from .test_read_only import crawl
from .test_repository import make_repository
from .test_repository import make_sources as make_repository_sources
from .world import HOSTILE_NAME, Window, make_folder, make_sources, open_window

ORDERS = f"objects/{make_id(str(Identity('kafka', 'kafka_topic', 'orders')))}"
DISKS = f"disks/{make_id('kafka')}"
SECRET = "a-password-of-seventeen"
SCOPE = "scope-of-the-test"


class System:
    """A system that counts its looks."""

    def __init__(self) -> None:
        self.looks: list[tuple[str, Sequence[str], LookBounds]] = []
        self.opened: list[tuple[Path, str]] = []
        self.closed = 0
        self.fault: Exception | None = None
        self.scope = SCOPE
        self.wait = threading.Event()
        self.wait.set()
        self.text = "nobody"

    def command(self, kind: str) -> Command:
        def make(keys: Sequence[str], bounds: LookBounds) -> Question:
            """Who uses it.

            Not shown.
            """

            def read(session: Any) -> Answer:
                self.looks.append((kind, keys, bounds))
                assert self.wait.wait(30)
                if self.fault is not None:
                    raise self.fault
                return Answer(FrozenMap(text=self.text))

            def page(document: FrozenMap) -> Iterator[str | Grid]:
                yield f"Used by {document['text']}."
                yield Grid((("Group", "Lag"), ("billing", "18,400 records")), frozenset({1}), "All")

            return Question(read, page)

        return Command(kind, make)

    def resolve(self, folder: Path, inputs: Inputs, instance: str) -> Any:
        def open_session() -> Any:
            self.opened.append((folder, instance))
            return SimpleNamespace(facts=SimpleNamespace(scope_id=self.scope), close=self.close)

        return SimpleNamespace(instance=instance, open=open_session)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    """What all looks lead to."""
    system = System()
    group = CommandGroup("kafka", "", (system.command("kafka_topic"), system.command("")))
    load_commands = Registry.load_commands
    monkeypatch.setattr(
        Registry,
        "load_commands",
        lambda self, name: (group,) if name == "look" else load_commands(self, name),
    )
    monkeypatch.setattr(live_looks, "resolve_instance", system.resolve)
    return system


@pytest.fixture
def live_window(tmp_path: Path, system: System) -> Iterator[Window]:
    sources = make_sources(make_folder(tmp_path / "folder"))
    state = sources.open_store().backend.load().state
    assert state is not None
    system.scope = str(state.providers["kafka"])
    with open_window(replace(sources, live=LiveLooks(Inputs()))) as opened:
        yield opened


@pytest.fixture
def window(live_window: Window) -> Window:
    return live_window


def press(window: Window, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    """Send the form of a page, as a browser does from the page itself."""
    usual = {
        "Cookie": f"kafkaform={window.server.gate.cookie}",
        "Sec_Fetch_Site": "same-origin",
        "Content_Length": "0",
    }
    return window.ask(window.server.gate.root + path, "POST", **{**usual, **headers})


def read(window: Window, path: str) -> str:
    return " ".join(" ".join(text for _, text in Page(window.page(path)).texts).split())


def test_no_page_looks_by_itself(window: Window, system: System) -> None:
    """Every page is loaded, some twice: nothing is asked, and what could be asked is offered."""
    assert crawl(window) > 15
    assert "Who uses it." in read(window, ORDERS) and "Look now" in read(window, ORDERS)
    assert "Not shown" not in read(window, ORDERS)
    assert "Disks" in read(window, "") and "Look now" in read(window, "disks")
    assert system.opened == [] == system.looks and window.faults == []


@pytest.mark.parametrize(
    ("path", "shown", "kind"), [(ORDERS, ORDERS, "kafka_topic"), (DISKS, "disks", "")]
)
def test_a_button_looks_once(
    window: Window, system: System, path: str, shown: str, kind: str
) -> None:
    """The answer leads to the page, which shows what was seen and when, and loading it again asks
    nobody. The session is closed, and the bounds are those of a plan."""
    status, headers, _ = press(window, path)
    address = headers["location"]
    assert status == 303 and address.startswith(window.server.gate.root + shown + "#")
    for _ in range(3):
        text = read(window, shown)
        assert "Used by nobody." in text and "18,400 records" in text and "s ago." in text
        assert "Look again" in text
    ((asked, keys, bounds),) = system.looks
    assert (asked, keys) == (kind, ["orders"] if kind else [""])
    assert (bounds.seconds, bounds.objects) == (5.0, 500)
    assert len(system.opened) == system.closed == 1
    assert press(window, path)[0] == 303 and len(system.looks) == 2, "asked again, looked again"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "none"}, 403),
        ({"Sec_Fetch_Site": ""}, 403),
        ({"Cookie": "kafkaform=wrong"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content_Length": "3"}, 400),
        ({"Transfer_Encoding": "chunked"}, 400),
    ],
)
def test_a_page_of_somebody_else_cannot_look(
    window: Window, system: System, headers: dict[str, str], status: int
) -> None:
    """Nor an address that somebody was led to, a stranger, or a request with a body (CSRF)."""
    assert press(window, ORDERS, **headers)[0] == status
    assert press(window, DISKS, **headers)[0] == status
    assert system.opened == []


def test_reading_methods_do_not_look(window: Window, system: System) -> None:
    """The same address by GET or HEAD is only the page."""
    gate = window.server.gate
    for method in ("GET", "HEAD", "PUT"):
        window.ask(gate.root + ORDERS, method, Cookie=f"kafkaform={gate.cookie}")
    assert system.opened == []


def test_a_browser_that_says_nothing_of_its_page_is_refused(window: Window, system: System) -> None:
    """Old browsers send no Sec-Fetch-Site; they see the pages, and look at nothing."""
    gate = window.server.gate
    cookie = f"kafkaform={gate.cookie}"
    assert window.ask(gate.root + ORDERS, "POST", Cookie=cookie, Content_Length="0")[0] == 403
    assert window.open(ORDERS)[0] == 200 and system.opened == []


@pytest.mark.parametrize(
    "path", ["objects/" + "0" * 20, "objects/x", "disks/" + "0" * 20, "log", "", "objects", "disks"]
)
def test_a_form_that_does_not_exist(window: Window, system: System, path: str) -> None:
    """An id that nothing has, or a page without a form, leads nowhere."""
    assert press(window, path)[0] == 404 and system.opened == []


def test_an_object_without_a_look_has_no_button(window: Window, system: System) -> None:
    """An ACL is nothing that somebody reads or writes."""
    acl = next(
        identity
        for identity in window.server.sources.open_store().backend.load().state.objects  # type: ignore[union-attr]
        if identity.kind == "kafka_acl"
    )
    path = f"objects/{make_id(str(acl))}"
    assert "Look now" not in read(window, path)
    assert press(window, path)[0] == 404 and system.opened == []


def test_requests_at_the_same_time_share_a_look(window: Window, system: System) -> None:
    """Four presses are one look, other pages are shown meanwhile, and this one says that it is
    under way."""
    system.wait.clear()
    with ThreadPoolExecutor(4) as pool:
        presses = [pool.submit(press, window, ORDERS) for _ in range(4)]
        deadline = time.monotonic() + 30
        while not system.looks and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "A look is under way." in read(window, ORDERS)
        assert "Overview" in window.page()
        system.wait.set()
        assert {future.result()[0] for future in presses} == {303}
    assert len(system.looks) == len(system.opened) == 1


def test_a_system_that_does_not_answer(
    window: Window, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it without an end: the page comes and says that the look is under way."""
    monkeypatch.setattr(live_looks, "WAIT_SECONDS", 0.1)
    system.wait.clear()
    assert press(window, ORDERS)[0] == 303
    assert "A look is under way." in read(window, ORDERS)
    system.wait.set()
    deadline = time.monotonic() + 30
    while "Used by" not in read(window, ORDERS):
        assert time.monotonic() < deadline
    assert len(system.looks) == 1


def test_a_failure_says_why_and_what_to_do(window: Window, system: System) -> None:
    """It is kept like any answer, so that loading the page does not try again."""
    system.fault = ConnectError("no broker answered", "start one")
    assert press(window, ORDERS)[0] == 303
    for _ in range(2):
        assert "No broker answered. Start one." in read(window, ORDERS)
    assert len(system.looks) == 1 == system.closed and window.faults == []


def test_another_cluster_is_refused(window: Window, system: System) -> None:
    """The provider block leads elsewhere than the state says, so nothing is said of its topic."""
    system.scope = "elsewhere"
    press(window, ORDERS)
    text = read(window, ORDERS)
    assert "leads to elsewhere" in text and "Correct the address" in text
    assert system.looks == [] and system.closed == 1


def test_an_unexpected_error_is_told_and_not_kept(window: Window, system: System) -> None:
    """The page says only that it failed; the command is told the rest."""
    system.fault = ValueError("a value")
    status, _, body = press(window, ORDERS)
    assert status == 500 and "failed unexpectedly" in body and "a value" not in body
    assert [type(fault) for fault in window.faults] == [ValueError]
    assert "Look now" in read(window, ORDERS)


def test_an_answer_is_shown_for_a_while(
    window: Window, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After that, the page has only the button again."""
    press(window, ORDERS)
    monkeypatch.setattr(live_looks, "KEPT_SECONDS", 0.0)
    assert "Used by" not in read(window, ORDERS) and "Look now" in read(window, ORDERS)
    assert len(system.looks) == 1


def test_names_and_secrets_do_no_harm(tmp_path: Path, system: System) -> None:
    """Foreign text is only text, and a password that a system repeats is masked."""
    system.text, system.fault = HOSTILE_NAME, None
    sources = make_sources(make_folder(tmp_path / "folder"))
    state = sources.open_store().backend.load().state
    assert state is not None
    system.scope = str(state.providers["kafka"])
    with watch_secrets():
        remember_secret(SECRET)
        looks = LiveLooks(Inputs())
        with open_window(replace(sources, live=looks)) as window:
            press(window, ORDERS)
            body = window.page(ORDERS)
            assert "evil-" in body and "<script>alert" not in body
            system.text = f"{SECRET} and others"
            press(window, ORDERS)
            assert SECRET not in window.page(ORDERS) and "(secret)" in window.page(ORDERS)
            system.fault = ConnectError(f"login of {SECRET} failed")
            press(window, ORDERS)
            assert SECRET not in window.page(ORDERS)
        # Not only where it is shown.
        (answer,) = looks._answers.values()
        assert SECRET not in answer.fault and "(secret)" in answer.fault


def test_without_live_nothing_can_be_asked(tmp_path: Path, system: System) -> None:
    """The page says how to start a window that can, and a form is refused."""
    with open_window(make_sources(make_folder(tmp_path / "folder"))) as window:
        assert "kafkaform serve --live" in read(window, ORDERS)
        assert "Look now" not in read(window, ORDERS) and "Disks" not in read(window, "")
        assert press(window, ORDERS)[0] == press(window, DISKS)[0] == 405
        assert window.open("disks")[0] == 404
    assert system.opened == []


def test_a_folder_of_a_repository(tmp_path: Path, system: System) -> None:
    """Its pages look with its own configuration, and the page of the repository has no looks."""
    top = make_repository(tmp_path / "top")
    sources = replace(make_repository_sources(top), live=LiveLooks(Inputs()))
    folder = f"folders/{make_id('teams/shop')}/"
    with open_window(sources) as window:
        assert "Disks" not in read(window, "") and "Look now" in read(window, folder + "disks")
        assert press(window, DISKS)[0] == 404
        status, headers, _ = press(window, folder + DISKS)
        assert status == 303
        assert headers["location"].startswith(f"{window.server.gate.root}{folder}disks#")
        read(window, folder + "disks")
    assert [opened for opened, _ in system.opened] == [top / "teams/shop"]


def test_only_the_newest_answers_are_kept(
    system: System, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Memory is bounded, however many topics somebody looks at."""
    monkeypatch.setattr(live_looks, "KEPT", 2)
    looks = LiveLooks(Inputs())
    subjects = [Subject(tmp_path, "kafka", "kafka_topic", name) for name in "abc"]
    for subject in subjects:
        assert looks.ask(subject) is not None
    kept = [looks.find_answer(subject) is not None for subject in subjects]
    assert kept == [False, True, True]


def test_an_answer_of_the_last_minute_will_do_for_a_hover(system: System, tmp_path: Path) -> None:
    """A mouse that comes back asks nobody; a person who presses a button does."""
    looks, subject = LiveLooks(Inputs()), Subject(tmp_path, "kafka", "kafka_topic", "orders")
    first = looks.ask(subject, 60)
    assert looks.ask(subject, 60) is first and len(system.looks) == 1
    assert looks.ask(subject) is not first and len(system.looks) == 2
