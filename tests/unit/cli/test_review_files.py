"""The files of a review: `plan --comment --html`, and `show` for a saved plan."""

from __future__ import annotations

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

CONFIGURATION = """
provider "kafka" { bootstrap_servers = ["localhost:9092"] }
resource "kafka_topic" "a" {
  for_each   = toset([for n in range(NUMBER) : "topic-${n}-${n * n}"])
  name       = each.key
  partitions = length(each.key)
}
"""


@pytest.fixture
def folder(here: Here, monkeypatch: pytest.MonkeyPatch) -> Here:
    """A folder whose commands find an empty cluster."""
    made = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(made))
    return here


def write(folder: Here, number: int) -> None:
    folder.write("main.kf.hcl", CONFIGURATION.replace("NUMBER", str(number)))


def test_a_page_is_written_and_printed(folder: Here) -> None:
    """`plan --html` and `show --html` give the same page, with the command that applies it."""
    write(folder, 3)
    folder.done("plan", "--out", "saved", "--html", "page.html")
    page = (folder.path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "topic-2-4" in page
    assert "kafkaform apply --expect" in page
    assert folder.done("show", "saved", "--html").out == page


@pytest.mark.slow("plans thousands of objects")
@pytest.mark.parametrize(
    ("flags", "place"),
    [
        (("--out", "saved", "--html", "page.html"), "The whole plan is in `page.html`."),
        (("--out", "saved"), "The whole plan is in `saved`."),
        ((), "Run `kafkaform plan` with the same flags to see everything."),
    ],
)
def test_a_shortened_comment_names_the_file_that_has_everything(
    folder: Here, flags: tuple[str, ...], place: str
) -> None:
    """The page, else the saved plan, else the command."""
    write(folder, 4_000)
    folder.done("plan", "--comment", "review.md", *flags)
    first = (folder.path / "review.md").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("**This comment is shortened.**") and first.endswith(place)


@pytest.mark.slow("plans thousands of objects")
def test_a_comment_of_a_saved_plan_names_it(folder: Here) -> None:
    """`show --markdown` knows only the plan."""
    write(folder, 4_000)
    folder.done("plan", "--out", "saved")
    shown = folder.done("show", "saved", "--markdown").out
    assert shown.splitlines()[0].endswith("The whole plan is in `saved`.")


def test_a_page_cannot_replace_a_link(folder: Here) -> None:
    """In a shared folder, somebody else would choose what is written."""
    write(folder, 1)
    (folder.path / "page.html").symlink_to(folder.path / "other")
    said = folder.run("plan", "--html", "page.html")
    assert said.code != 0 and "page.html" in said.text
    assert not (folder.path / "other").exists()
