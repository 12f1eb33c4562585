"""How long an editor waits for each kind of request, in a folder of many files: for 300 files as a
ratio to 150 of them, after a key and again, and how long other requests wait meanwhile."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..kit.large_configuration import write_topics

FILES, TOPICS, ROUNDS = 300, 5, 5
NAME = "f0000.kf.hcl"
PAUSE = 0.6
"""Seconds after which the check that a key has started is over, in the largest folder."""
END = 'output "end" {\n  value = [kafka_topic.t1.name, var.prefix]\n}\n'
NEXT, TOPIC, VARIABLE = "kafka_topic.|t1", "kafka_topic.t1|", "var.prefix|]"
REQUESTS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "complete 1,500 topics": ("completion", NEXT, {}),
    "complete a value": ("completion", "value = |[kafka", {}),
    "hover": ("hover", TOPIC, {}),
    "definition": ("definition", TOPIC, {}),
    "uses of a topic": ("references", TOPIC, {"context": {"includeDeclaration": True}}),
    "uses in all files": ("references", VARIABLE, {"context": {"includeDeclaration": True}}),
    "rename a topic": ("rename", TOPIC, {"newName": "renamed"}),
    "rename in all files": ("rename", VARIABLE, {"newName": "renamed"}),
    "outline": ("documentSymbol", TOPIC, {}),
    "format": ("formatting", TOPIC, {"options": {"tabSize": 2, "insertSpaces": True}}),
}
"""Kind of request -> its method, where the cursor is, and more parameters."""
CAPABILITIES = {
    "textDocument": {
        "completion": {"completionItem": {"resolveSupport": {"properties": ["documentation"]}}}
    }
}


class Waits(NamedTuple):
    """Seconds."""

    answer: float
    others: float
    """The longest time for which a request about nothing waited meanwhile."""


class Server:
    """A `kafkaform lsp`. It does not decode what it is not asked for, unlike an editor."""

    def __init__(self, folder: Path) -> None:
        words = [sys.executable, "-m", "kafkaform", "lsp"]
        self.process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.answers: dict[int, float] = {}
        self.arrived = threading.Condition()
        self.count = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while header := self.process.stdout.readline():
            length = int(header.split(b":")[1])
            while self.process.stdout.readline() != b"\r\n":
                pass
            message = json.loads(self.process.stdout.read(length))
            with self.arrived:
                if "id" in message:
                    self.answers[message["id"]] = time.perf_counter()
                    self.arrived.notify_all()

    def send(self, method: str, params: Any, **more: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def ask(self, method: str, params: Any) -> int:
        self.count += 1
        self.send(method, params, id=self.count)
        return self.count

    def wait(self, number: int) -> float:
        with self.arrived:
            assert self.arrived.wait_for(lambda: number in self.answers, 120)
        return self.answers[number]

    def measure(self, method: str, params: Any) -> Waits:
        """Ask, and ask about nothing until the answer is there."""
        begun = time.perf_counter()
        number, others = self.ask(method, params), 0.0
        while number not in self.answers:
            asked = time.perf_counter()
            others = max(others, self.wait(self.ask("kafkaform/nothing", {})) - asked)
            time.sleep(0.005)
        return Waits(self.wait(number) - begun, others)


@contextmanager
def serve(folder: Path, files: int) -> Iterator[tuple[Server, dict[str, Any], str]]:
    """A server with one open file, that file, and its text."""
    write_topics(folder, files, TOPICS)
    text = (folder / NAME).read_text("utf-8") + END
    document = {"uri": (folder / NAME).as_uri()}
    server = Server(folder)
    root = {"processId": None, "rootUri": folder.as_uri(), "capabilities": CAPABILITIES}
    server.wait(server.ask("initialize", root))
    server.send("initialized", {})
    opened = {**document, "languageId": "kafkaform", "version": 0, "text": text}
    server.send("textDocument/didOpen", {"textDocument": opened})
    yield server, document, text
    server.wait(server.ask("shutdown", None))
    server.send("exit", None)
    server.process.wait(60)


def measure_requests(files: int) -> dict[str, tuple[Waits, Waits]]:
    """Kind of request -> what it takes after a key, and again; the medians."""
    times: dict[str, tuple[Waits, Waits]] = {}
    with (
        tempfile.TemporaryDirectory() as name,
        serve(Path(name).resolve(), files) as (server, document, text),
    ):
        version = 0
        for what, (method, cursor, more) in REQUESTS.items():
            before = text[: text.index(cursor.replace("|", "")) + cursor.index("|")]
            position = {
                "line": before.count("\n"),
                "character": len(before) - before.rfind("\n") - 1,
            }
            params = {"textDocument": document, "position": position, **more}
            rounds: list[list[Waits]] = [[], []]
            for _ in range(ROUNDS):
                version += 1
                change = {
                    "textDocument": {**document, "version": version},
                    "contentChanges": [{"text": text + "\n" * version}],
                }
                time.sleep(PAUSE)
                server.send("textDocument/didChange", change)
                rounds[0].append(server.measure(f"textDocument/{method}", params))
                time.sleep(PAUSE)
                rounds[1].append(server.measure(f"textDocument/{method}", params))
            first, second = (Waits(*map(statistics.median, zip(*part))) for part in rounds)  # noqa: B905
            times[what] = first, second
    return times


def main() -> None:
    small, large = measure_requests(FILES // 2), measure_requests(FILES)
    print(f"{FILES} files with {FILES * TOPICS:,} topics in an editor, medians of {ROUNDS}")
    for what, (first, again) in large.items():
        half, half_again = small[what]
        print(
            f"{what:<24} after a key {first.answer * 1000:5.0f} ms = "
            f"{first.answer / half.answer:4.1f} x half the files, others wait "
            f"{first.others * 1000:4.0f} ms; again {again.answer * 1000:5.0f} ms = "
            f"{again.answer / half_again.answer:4.1f} x, others wait {again.others * 1000:4.0f} ms"
        )
