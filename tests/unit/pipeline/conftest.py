"""A team with a repository, a forge and a store of texts, on this computer: the pipeline without a
cluster. `tests/cluster/pipelines/test_one_file.py` walks the same way on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkaform_textstore.server import Server, Store, User

from ...kit.pipelines import github, gitlab
from ...kit.pipelines.repository import ROOT, copy_tool, install_python, make_repository
from ...kit.pipelines.server import serving
from ..provider_guide.conftest import EXAMPLE, install

ONE_FILE = ROOT / "examples/pipelines/one-file"
MAIN = "kafka/main.kf.hcl"
CONFIGURATION = """\
provider "textstore" {}

resource "textstore_file" "motd" {
  name    = "motd"
  content = "hello"
}
"""


@dataclass
class Texts:
    """The store, with which outside changes are made."""

    server: Server

    def read(self) -> dict[str, str]:
        """Name -> content."""
        admin = User("admin")
        page = self.server.store.page(admin, "file", "", full=True)
        return {one["name"]: one["content"] for one in page["items"]}

    def put(self, name: str, content: str) -> None:
        """Somebody changes a text by hand."""
        answers = self.server.store.write(
            User("admin"), [{"do": "update", "kind": "file", "name": name, "content": content}]
        )
        assert answers[0]["code"] == "ok", answers


@pytest.fixture
def texts() -> Iterator[Texts]:
    """An empty store."""
    users = {"writer-pw": User("admin"), "reader-pw": User("reader")}
    with Server(Store(users)) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield Texts(made)
        made.shutdown()
        thread.join()


def make_state(folder: Path) -> str:
    """The address of a state outside of all checkouts."""
    (folder / "state").mkdir()
    return str(folder / "state/state.json")


def login(texts: Texts, who: str) -> dict[str, str]:
    """How an environment connects: as `reader` or as `writer`."""
    return {
        "KAFKAFORM_PROVIDERS": "textstore",
        "KAFKAFORM_TEXTSTORE_URL": texts.server.url,
        "KAFKAFORM_TEXTSTORE_TOKEN": f"{who}-pw",
    }


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the PATH, with Python and without a package index."""
    place = tmp_path_factory.mktemp("python")
    install(place / "site")
    return install_python(place / "bin", place / "site", EXAMPLE, forking=True)


@pytest.fixture
def hub(texts: Texts, python: Path, tmp_path: Path) -> Iterator[github.Runner]:
    """GitHub, with the workflow of the example."""
    state = {"vars.KAFKAFORM_STATE": make_state(tmp_path)}
    api = github.Api()
    with serving(api.web), serving(api.storage):
        yield github.Runner(
            api,
            make_repository(tmp_path / "repository"),
            tmp_path,
            str(python),
            ONE_FILE / "github/.github/workflows/kafka.yml",
            {"kafka-read": state, "kafka-production": state},
            {
                "kafka-read": login(texts, "reader"),
                "kafka-production": login(texts, "writer"),
            },
        )
        assert not any(one.has_token for one in api.storage.asked)


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the component on the server."""
    return copy_tool(tmp_path_factory.mktemp("server") / "tools/kafkaform.git").folder


@pytest.fixture
def lab(texts: Texts, python: Path, tool: Path, tmp_path: Path) -> Iterator[gitlab.Runner]:
    """GitLab, with the `.gitlab-ci.yml` of the example."""
    state = {"KAFKAFORM_STATE": make_state(tmp_path)}
    api = gitlab.Api()
    with serving(api.web):
        yield gitlab.Runner(
            api,
            make_repository(tmp_path / "repository"),
            gitlab.Repository(tool),
            tmp_path,
            str(python),
            ONE_FILE / "gitlab/.gitlab-ci.yml",
            {
                "kafka-read": login(texts, "reader") | state,
                "kafka-production": login(texts, "writer") | state,
            },
        )
