"""A team with a repository, a forge and a store of texts, on this computer: the pipeline without a
cluster. `tests/cluster/pipelines/test_one_file.py` walks the same way on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkaform_textstore.server import Server, Store, User

from ...kit.pipelines import github, gitlab
from ...kit.pipelines.repository import ROOT, Repository, copy_tool, install_python, make_repository
from ...kit.pipelines.server import serving
from ..provider_guide.conftest import EXAMPLE, install

ONE_FILE = ROOT / "examples/pipelines/one-file"
MANY_FOLDERS = ROOT / "examples/pipelines/repository"
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
        items, after = [], ""
        while after is not None:
            page = self.server.store.page(User("admin"), "file", after, full=True)
            items += page["items"]
            after = page["next"]
        return {one["name"]: one["content"] for one in items}

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


@contextmanager
def open_hub(
    texts: Texts, python: Path, folder: Path, workflow: Path, variables: Mapping[str, str]
) -> Iterator[github.Runner]:
    """GitHub with this workflow. variables: of the workflow, in both environments."""
    api = github.Api()
    with serving(api.web), serving(api.storage):
        yield github.Runner(
            api,
            make_repository(folder / "repository"),
            folder,
            str(python),
            workflow,
            {"kafka-read": variables, "kafka-production": variables},
            {
                "kafka-read": login(texts, "reader"),
                "kafka-production": login(texts, "writer"),
            },
        )
        assert not any(one.has_token for one in api.storage.asked)


@pytest.fixture
def hub(texts: Texts, python: Path, tmp_path: Path) -> Iterator[github.Runner]:
    """GitHub, with the workflow of the example."""
    workflow = ONE_FILE / "github/.github/workflows/kafka.yml"
    state = {"vars.KAFKAFORM_STATE": make_state(tmp_path)}
    with open_hub(texts, python, tmp_path, workflow, state) as runner:
        yield runner


@pytest.fixture
def teams_hub(texts: Texts, python: Path, tmp_path: Path) -> Iterator[github.Runner]:
    """GitHub, with the workflow for a repository of many folders."""
    workflow = MANY_FOLDERS / "github/.github/workflows/kafka.yml"
    with open_hub(texts, python, tmp_path, workflow, {}) as runner:
        yield runner


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the component on the server."""
    return copy_tool(tmp_path_factory.mktemp("server") / "tools/kafkaform.git").folder


@contextmanager
def open_lab(
    texts: Texts, python: Path, tool: Path, folder: Path, file: Path, variables: Mapping[str, str]
) -> Iterator[gitlab.Runner]:
    """GitLab with this file. variables: of both environments."""
    api = gitlab.Api()
    with serving(api.web):
        yield gitlab.Runner(
            api,
            make_repository(folder / "repository"),
            gitlab.Repository(tool),
            folder,
            str(python),
            file,
            {
                "kafka-read": {**login(texts, "reader"), **variables},
                "kafka-production": {**login(texts, "writer"), **variables},
            },
        )


@pytest.fixture
def lab(texts: Texts, python: Path, tool: Path, tmp_path: Path) -> Iterator[gitlab.Runner]:
    """GitLab, with the `.gitlab-ci.yml` of the example."""
    state = {"KAFKAFORM_STATE": make_state(tmp_path)}
    file = ONE_FILE / "gitlab/.gitlab-ci.yml"
    with open_lab(texts, python, tool, tmp_path, file, state) as runner:
        yield runner


@pytest.fixture
def teams_lab(texts: Texts, python: Path, tool: Path, tmp_path: Path) -> Iterator[gitlab.Runner]:
    """GitLab, with the file for a repository of many folders."""
    file = MANY_FOLDERS / "gitlab/.gitlab-ci.yml"
    with open_lab(texts, python, tool, tmp_path, file, {}) as runner:
        yield runner


# ── a repository of many folders ────────────────────────────────────────────────────────

REPOSITORY = """\
repository {{
  name  = "texts"
  owner = "the platform team"
}}

cluster "store" {{
  provider = "textstore"
}}

folders "teams/*" {{
  state = "{states}/${{folder.name}}.json"
  owner = folder.name
  uses  = {{ textstore = cluster.store }}
}}
"""


def write_team(name: str, content: str = "hello") -> dict[str, str]:
    """The files of a team that has a text called `motd-NAME`."""
    block = f'resource "textstore_file" "motd" {{\n  name    = "motd-{name}"\n'
    return {f"teams/{name}/main.kf.hcl": f'{block}  content = "{content}"\n}}\n'}


def begin_repository(repository: Repository, states: Path, teams: Sequence[str]) -> str:
    """The default branch gets a repository file and a folder without a text for each team; the
    commit."""
    states.mkdir()
    files = {f"teams/{name}/main.kf.hcl": "# nothing yet\n" for name in teams}
    repository.write("begin", {"kafkaform.hcl": REPOSITORY.format(states=states), **files})
    return repository.merge("begin", squash=True)
