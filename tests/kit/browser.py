"""A headless Chromium for tests, driven by the DevTools protocol over two pipes: no port, no
driver, no package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE_SECONDS = 60.0
HEIGHT = 900
"""Of the window, in CSS pixels."""
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars"),
    "--remote-debugging-pipe",
)
_FREE = 10
"""Descriptors from here on stand in nobody's way: Chromium reads from 3 and writes to 4."""


def executable() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page. events: what it told without being asked, since `forget`."""

    def __init__(self, out: int, into: int) -> None:
        self._out, self._into = out, into
        self._session, self._asked, self._rest = "", 0, b""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer. Raises AssertionError for an error, TimeoutError."""
        self._asked += 1
        message: dict[str, Any] = {"id": self._asked, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._asked:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path) -> None:
        """Load a page from the disk."""
        self.visit(page.as_uri())

    def visit(self, address: str) -> None:
        """Load a page."""
        self.events.clear()
        self.ask("Page.navigate", url=address)
        while not self.told("Page.loadEventFired"):
            self.events.append(self._next())

    def told(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") in methods]

    def run(self, script: str) -> Any:
        """The value of an expression, as JSON has it."""
        given = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self.ask("Runtime.evaluate", **given)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def size(
        self, width: int, height: int = 900, *, media: str = "", scheme: str = "light"
    ) -> None:
        """The window in CSS pixels; media: print or screen; scheme: light or dark."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        dark = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=dark)

    def scripts(self, *, run: bool) -> None:
        """Whether those of the pages to come may run."""
        self.ask("Emulation.setScriptExecutionDisabled", value=not run)

    def press(self, key: str) -> None:
        code = {"Enter": 13, "Tab": 9}[key]
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def picture(self) -> bytes:
        """The whole page as PNG."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def screen(self) -> bytes:
        """What the window shows as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot")["data"])

    def paper(self) -> bytes:
        """The page as PDF, on A4."""
        size = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        return base64.b64decode(self.ask("Page.printToPDF", **size)["data"])

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\0" not in self._rest:
            if not select.select([self._into], [], [], deadline - time.monotonic())[0]:
                raise TimeoutError(f"the browser said nothing for {PATIENCE_SECONDS:.0f} s")
            self._rest += (read := os.read(self._into, 1 << 20))
            assert read, "the browser has ended"
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told


def _moved(end: int) -> int:
    """The same pipe under a descriptor that is free in the browser's process."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD, _FREE)
    os.close(end)
    return moved


@contextmanager
def browser(command: str, profile: Path) -> Iterator[Browser]:
    """profile: an empty folder of its own."""
    low, ours = os.pipe()
    reads, also_low = os.pipe()
    theirs, writes = _moved(low), _moved(also_low)

    def at_its_place() -> None:
        os.dup2(theirs, 3)
        os.dup2(writes, 4)

    process = subprocess.Popen(
        [command, *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(3, 4),
        preexec_fn=at_its_place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    os.close(writes)
    try:
        yield Browser(ours, reads)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(ours)
        os.close(reads)
