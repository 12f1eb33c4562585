"""The window on a repository of many folders: its page, the pages of its folders, and that it
changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkaform.core.errors import ConfigurationError
from kafkaform.window.page import make_id
from kafkaform.window.server import find_page
from kafkaform.window.sources import Sources
from kafkaform.workflow.stores import STATE_FILE, open_folder_store

from ...kit.markup import Page
from .world import make_folder, open_window

ROOT = "/window/"
FILE = """repository {
  name  = "acme-kafka"
  owner = "the platform team"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["kafka-1:9093", "kafka-2:9093"]
  sasl_username     = "ci"
  sasl_password     = secret_env("PASSWORD")
}

folders "teams/*" {
  owner = "team ${folder.name}"
  uses  = { kafka = cluster.prod }
}

folders "later" {
  state = "states/later/state.json"
}
"""
BLOCK = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'


def make_repository(top: Path) -> Path:
    """Teams with runs and plans, one without any, and a folder whose state cannot be read."""
    top.mkdir()
    (top / "kafkaform.hcl").write_text(FILE)
    (top / "teams").mkdir()
    make_folder(top / "teams/shop")
    for name in ("teams/shop", "teams/billing", "teams/broken", "teams/odd name", "later"):
        (top / name).mkdir(exist_ok=True)
        (top / name / "main.kf.hcl").write_text(BLOCK)
    (top / "teams/broken" / STATE_FILE).write_text("{}")
    return top


def make_sources(top: Path) -> Sources:
    return Sources(top, open_folder_store(top, None, None), repository=top / "kafkaform.hcl")


def show(top: Path, path: str = "", query: str = "") -> str:
    page = find_page(make_sources(top), path, query, ROOT)
    assert page is not None, path
    return page


def list_rows(page: str) -> list[str]:
    """The text of each row of each table."""
    rows = (Page(row) for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL))
    return [" | ".join(text.strip() for _, text in row.texts if text.strip()) for row in rows]


def read_words(page: str) -> str:
    return " ".join(" ".join(text for trail, text in Page(page).texts if "body" in trail).split())


def list_links(page: str) -> list[str]:
    return [str(a["href"]).removeprefix(ROOT) for a in Page(page).all("a")]


def find_row(page: str, folder: str) -> str:
    """The last row of a folder: the one in the listing."""
    return next(row for row in reversed(list_rows(page)) if row.startswith(folder))


def test_the_folders_are_listed(tmp_path: Path) -> None:
    """With owner, cluster, objects, the last run, and the drift of the newest plan."""
    page = show(make_repository(tmp_path / "top"))
    assert find_row(page, "teams/shop") == (
        "teams/shop | team shop | prod | 4 | 2026-01-01 00:00:07 | not complete | "
        "2026-11-21 10:00:00 | 23 | 0"
    )
    assert find_row(page, "teams/billing") == "teams/billing | team billing | prod | never applied"
    assert find_row(page, "later") == "later | never applied"
    assert find_row(page, "prod") == "prod | kafka | kafka-1:9093, kafka-2:9093 | 3"
    text = read_words(page)
    assert "Objects that others changed 23 in 1 folder" in text
    assert "Who can change the file the platform team" in text and "PASSWORD" not in text


def test_what_cannot_be_read_comes_first(tmp_path: Path) -> None:
    """With the reason; the other folders are shown."""
    page = show(make_repository(tmp_path / "top"))
    text = read_words(page)
    faults, _, listing = text.partition("By path")
    assert "it is not a kafkaform state" in faults
    assert "the folder 'teams/odd name' is refused" in faults and "kafkaform.hcl:13:1" in faults
    assert "cannot be read" in find_row(page, "teams/broken")
    assert "teams/shop" in listing


def test_every_link_leads_to_a_page(tmp_path: Path) -> None:
    """Those of the repository and those of its folders, which are the pages of a window on the
    folder, with the way back."""
    top = make_repository(tmp_path / "top")
    waiting, broken = [""], make_id("teams/broken")
    seen: set[tuple[str, str]] = set()
    while waiting:
        path, _, query = waiting.pop().partition("?")
        if (path, query) in seen or path.startswith("#") or broken in path:
            continue
        seen.add((path, query))
        waiting += list_links(show(top, path, query))
    folder = f"folders/{make_id('teams/shop')}/"
    assert {(folder + page, "") for page in ("", "plans", "drift", "objects", "log")} <= seen
    overview = show(top, folder)
    assert "acme-kafka" in read_words(overview) and "teams/shop" in read_words(overview)
    assert "" in list_links(overview)


@pytest.mark.parametrize(
    "path",
    [
        *("plans", "objects", "folders", "folders/", "folders/teams", "folders/teams/shop"),
        f"folders/{make_id('teams/odd name')}/",
        f"folders/{make_id('../top')}/",
        f"plans/{make_id('everything.kfplan')}",
        f"folders/{make_id('teams/shop')}/folders/{make_id('teams/shop')}/",
    ],
)
def test_other_paths_lead_nowhere(tmp_path: Path, path: str) -> None:
    """Pages of one folder are none of the repository, and a refused folder has none."""
    assert find_page(make_sources(make_repository(tmp_path / "top")), path, "", ROOT) is None


def test_a_long_list_has_pages(tmp_path: Path) -> None:
    """Of 200 folders; only those that are shown are read."""
    top = tmp_path / "top"
    for number in range(203):
        (top / f"teams/t{number:03}").mkdir(parents=True)
        (top / f"teams/t{number:03}/main.kf.hcl").write_text(BLOCK)
    (top / "kafkaform.hcl").write_text(FILE)
    page = show(top)
    assert "teams/t199" in page and "teams/t200" not in page and "?first=200" in list_links(page)
    page = show(top, "", "first=200")
    assert "teams/t199" not in page and find_row(page, "teams/t202").endswith("never applied")
    assert "Folders 203" in read_words(page)


def test_foreign_text_stays_text(tmp_path: Path) -> None:
    """Names of owners, of the repository and of places."""
    top = make_repository(tmp_path / "top")
    text = FILE.replace("acme-kafka", "<b>acme</b>").replace("team $", "<i>team</i> $")
    (top / "kafkaform.hcl").write_text(text)
    for path in ("", f"folders/{make_id('teams/shop')}/"):
        page = show(top, path)
        assert "<b>acme" not in page and "<i>team" not in page
        assert "<b>acme</b>" in read_words(page)


def test_faults_of_the_file_are_told(tmp_path: Path) -> None:
    """A page is an error as soon as the file has a fault, and works again once it has none."""
    top = make_repository(tmp_path / "top")
    with open_window(make_sources(top)) as window:
        (top / "kafkaform.hcl").write_text(FILE.replace("owner =", "ownr ="))
        with pytest.raises(ConfigurationError):
            show(top)
        status, _, body = window.open()
        assert status == 500 and "kafkaform.hcl has faults" in body
        assert 'href="' + window.server.gate.root + 'drift"' not in body
        (top / "kafkaform.hcl").write_text(FILE)
        assert "teams/shop" in window.page()


def test_nothing_is_written(tmp_path: Path) -> None:
    """No page makes a file or a folder, not even the one in which a state will be."""
    top = make_repository(tmp_path / "top")
    before = {path: path.lstat().st_mtime_ns for path in (top, *top.rglob("*"))}
    for link in list_links(show(top)):
        if make_id("teams/broken") not in link:
            path, _, query = link.partition("?")
            show(top, path, query)
    assert {path: path.lstat().st_mtime_ns for path in (top, *top.rglob("*"))} == before
