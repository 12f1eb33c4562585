"""The example's store as a system on which applies are disturbed: what a folder declares of it from
round to round, so that in each something of every sort comes, changes and goes.
"""

from __future__ import annotations

import json
import threading
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkaform.core.value import FrozenMap
from kafkaform_textstore.server import Server, Store, User

from ..commands.process_folder import Folder
from ..commands.server import REPOSITORY
from ..promises import Reached, Thing, World
from .proxy import Passed
from .system import STEADY, TIMEOUT, HttpSystem

EXAMPLE = REPOSITORY / "examples" / "provider"
TOKEN = "admin-token-of-the-store"
REAL = b'"validate_only":false'
"""What the body of a write has that is no dry run."""


def install(place: Path) -> None:
    """What `pip install` notes of the example, from its own pyproject.toml, without its files."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    noted = place / f"{name.replace('-', '_')}-{version}.dist-info"
    noted.mkdir(parents=True)
    (noted / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in points.items()))
    ]
    (noted / "entry_points.txt").write_text("\n".join(lines) + "\n")


class _Quiet(Server):
    """A connection that the proxy resets is no news."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


@contextmanager
def storing() -> Iterator[Server]:
    """A store of its own until the block ends."""
    with _Quiet(Store({TOKEN: User("admin")})) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def make_folder(path: Path) -> Folder:
    """A new folder at this path, and beside it what `pip install` notes of the example."""
    path.mkdir(parents=True)
    site = path.with_name(f"{path.name}.site")
    install(site)
    places = (str(site), str(EXAMPLE))
    return Folder(path, "", TOKEN, more={"TEXTSTORE_TOKEN": TOKEN}, places=places)


def write_round(url: str, number: int) -> str:
    """The configuration of a round."""
    return "\n".join(
        (
            f'provider "textstore" {{\n  url = "{url}"\n  token = secret_env("TEXTSTORE_TOKEN")\n'
            f"  timeout = {TIMEOUT}\n}}\n",
            _file("stay", f"round {number}", f'{{ etag = "{number}" }}'),
            _file(f"t{number}", "new", '{ a = "1" }'),
            *((_file(f"t{number - 1}", "old", '{ a = "2", b = "1" }'),) if number else ()),
            *((_removed(f"t{number - 2}"),) if number >= STEADY else ()),
            _link("latest", f"t{number}"),
            _link(f"l{number}", "stay"),
        )
    )


def _file(name: str, content: str, headers: str) -> str:
    return (
        f'resource "textstore_file" "{name}" {{\n  name = "{name}"\n  content = "{content}"\n'
        f"  headers = {headers}\n}}\n"
    )


def _link(name: str, target: str) -> str:
    return (
        f'resource "textstore_link" "{name}" {{\n  name = "{name}"\n'
        f"  target = textstore_file.{target}.name\n}}\n"
    )


def _removed(name: str) -> str:
    block = "  lifecycle {\n    destroy = true\n  }\n"
    return f"removed {{\n  from = textstore_file.{name}\n{block}}}\n"


def list_wanted(number: int) -> World:
    """What the store has after a round; the ids of files are its own."""
    files = {"stay": (f"round {number}", {"etag": str(number)}), f"t{number}": ("new", {"a": "1"})}
    if number:
        files[f"t{number - 1}"] = ("old", {"a": "2", "b": "1"})
    links = {"latest": f"t{number}", f"l{number}": "stay"}
    return {
        **{
            ("textstore_file", name): Thing({"name": name, "content": text, "headers": headers})
            for name, (text, headers) in files.items()
        },
        **{
            ("textstore_link", name): Thing({"name": name, "target": target})
            for name, target in links.items()
        },
    }


def read_world(store: Store) -> World:
    """What the store has."""
    return {
        ("textstore_" + kind, name): Thing(
            {key: value for key, value in item.items() if key != "uid"}, item.get("uid")
        )
        for kind, items in (("file", store.files), ("link", store.links))
        for name, item in dict(items).items()
    }


@dataclass
class StoreSystem(HttpSystem):
    """A store and its folder."""

    store: Store
    requests = FrozenMap({"Write": "POST /write"})

    def write_round(self, url: str, number: int) -> str:
        return write_round(url, number)

    def list_wanted(self, number: int) -> World:
        return list_wanted(number)

    def read_world(self) -> World:
        return read_world(self.store)

    def read_passed(self, passed: Sequence[Passed]) -> Sequence[Reached]:
        return list_reached(passed)


@contextmanager
def open_store(path: Path) -> Iterator[StoreSystem]:
    """A store with a folder at this path."""
    with storing() as server:
        yield StoreSystem(make_folder(path), server.server_address[1], server.store)


REQUESTS = {
    ("create", "file"): "CreateFiles",
    ("update", "file"): "UpdateFiles",
    ("delete", "file"): "DeleteFiles",
    ("put", "link"): "PutLinks",
    ("delete", "link"): "DeleteLinks",
}
"""What an operation does, and to what -> the request of the steps that it comes from."""


def list_reached(passed: Sequence[Passed]) -> list[Reached]:
    """The operations of writes that reached the store, without dry runs."""
    found = []
    for one in passed:
        if one.forwarded and one.request.target == "/write" and REAL in one.request.body:
            for item in json.loads(one.request.body)["operations"]:
                request = REQUESTS[item["do"], item["kind"]]
                found.append(Reached(request, ("textstore_" + item["kind"], item["name"])))
    return found
