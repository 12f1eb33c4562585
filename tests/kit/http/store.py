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

from kafkaform_textstore.server import Server, Store, User

from ..commands.process_folder import Folder
from ..commands.server import REPOSITORY, Job
from ..promises import Reached, Thing, World
from .proxy import Passed

EXAMPLE = REPOSITORY / "examples" / "provider"
TOKEN = "admin-token-of-the-store"
TIMEOUT = 2
"""Seconds after which the store drops a request; a recovery waits for 5 more."""
STEADY = 2
"""The first round in which something goes that an earlier one has made."""
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


@dataclass(frozen=True)
class StoreFolder(Folder):
    """A folder whose commands find the example's package. places: see `Job`."""

    places: Sequence[str] = ()

    def make_job(self, arguments: Sequence[str]) -> Job:
        job = super().make_job(arguments)
        environment = {**job.environment, "TEXTSTORE_TOKEN": self.password}
        return Job(arguments, job.folder, environment, places=self.places)


def make_folder(path: Path) -> StoreFolder:
    """A new folder at this path, and beside it what `pip install` notes of the example."""
    path.mkdir(parents=True)
    site = path.with_name(f"{path.name}.site")
    install(site)
    return StoreFolder(path, "", TOKEN, places=(str(site), str(EXAMPLE)))


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
