"""The engine's commands with a provider that is not Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.apply import recovery
from kafkaform_textstore.server import Item, User

from .conftest import Folder

FILE = """
resource "textstore_file" "motd" {
  name    = "motd"
  content = "hello"
  headers = { "Cache-Control" = "max-age=60" }
}
"""
BOTH = f"""{FILE}
resource "textstore_link" "today" {{
  name   = "today"
  target = textstore_file.motd.name
}}

output "uid" {{
  value = textstore_file.motd.uid
}}
"""


@pytest.fixture
def applied(folder: Folder) -> Folder:
    """A file and a link to it are applied."""
    folder.write(folder.connect() + BOTH)
    folder.run("apply", "-auto-approve")
    return folder


def rewrite(folder: Folder, old: str, new: str) -> None:
    """Change the configuration."""
    file = folder.path / "main.kf.hcl"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_the_provider_is_found_through_its_entry_point(folder: Folder) -> None:
    """`providers` names the package that offers it, `providers schema` its types."""
    folder.write(folder.connect())
    assert "kafkaform-textstore 0.1.0" in folder.run("providers")
    assert 'resource "textstore_link"' in folder.run("providers", "schema")


def test_a_name_that_no_file_can_have_is_a_fault_of_the_configuration(folder: Folder) -> None:
    """`validate` tells what `key`, the schema and the provider's `check` refuse."""
    folder.write(
        folder.connect(url="http://store.example:80")
        + 'resource "textstore_file" "a" {\n  name = "A b"\n  content = ""\n}\n'
        + 'resource "textstore_file" "b" {\n  name = "b"\n  content = ""\n'
        + '  headers = { a = "1", A = "2" }\n}\n'
    )
    said = folder.run("validate", code=1)
    assert "'A b' is no name" in said
    assert "two of the headers differ in case only" in said
    assert "The token would travel in the clear" in said


def test_an_object_from_plan_to_destroy(applied: Folder) -> None:
    """It is created, shows no change, is updated where it drifted, and goes with its link."""
    (file,) = applied.store.files.values()
    assert (file["content"], file["headers"]) == ("hello", {"cache-control": "max-age=60"})
    assert "No changes" in applied.run("plan")
    assert f'uid = "{file["uid"]}"' in applied.run("output")
    applied.put("update", "file", "motd", content="changed outside")
    rewrite(applied, '"Cache-Control" = "max-age=60"', "")
    said = applied.run("plan")
    assert '~ content = "changed outside" → "hello"' in said
    assert '"cache-control" = "max-age=60" → "no-cache" (default)' in said
    applied.run("apply", "-auto-approve")
    assert (file := applied.store.files["motd"])["content"] == "hello" and not file["headers"]
    applied.destroy()
    assert not applied.store.files and not applied.store.links


def test_a_file_is_protected(applied: Folder) -> None:
    """A block that is gone deletes nothing: the type says `protect`."""
    rewrite(applied, FILE, "")
    rewrite(applied, "textstore_file.motd.name", '"motd"')
    rewrite(applied, "textstore_file.motd.uid", "1")
    assert "removed from the configuration, but delete protection is on" in applied.run("plan")
    applied.run("apply", "-auto-approve")
    assert "motd" in applied.store.files


def test_a_file_is_not_deleted_under_a_link(applied: Folder) -> None:
    """The provider's review sees a link of somebody else, before anything is sent."""
    applied.put("put", "link", "theirs", target="motd")
    said = applied.run("destroy", "--confirm", applied.store.id, code=8)
    assert "theirs leads to motd" in said
    assert "motd" in applied.store.files


def test_import_and_adopt(folder: Folder) -> None:
    """`import` takes over by id, `--adopt` what a block names; what is live stays."""
    folder.put("create", "file", "motd", content="hello", headers={"etag": "1"})
    folder.put("put", "link", "today", target="motd")
    folder.write(folder.connect() + BOTH)
    assert "kafkaform does not manage it" in folder.run("plan", code=8)
    folder.run("import", "textstore_file.motd", "motd")
    folder.run("apply", "-auto-approve", "--adopt=textstore_link.today")
    assert "No changes" in folder.run("plan")
    assert folder.store.files["motd"]["headers"] == {"cache-control": "max-age=60"}


def test_import_all(folder: Folder) -> None:
    """What is written declares every object, more than a page of them, and applying it changes
    nothing: also names at whose end the type's key refuses a space."""
    for number in range(25):
        headers = {"etag": "1"} if number % 2 else {}
        text = f"line\n\t${{{number}}}\r\n"
        folder.put("create", "file", f"f/{number:02}", content=text, headers=headers)
    folder.put("put", "link", "first", target="f/00")
    folder.write(folder.connect())
    assert "26 objects to import" in folder.run("import", "--all", "--out", "all.kf.hcl")
    before = {name: dict(item) for name, item in folder.store.files.items()}
    assert "26 imported" in folder.run("apply", "-auto-approve")
    assert folder.store.files == before
    assert "No changes" in folder.run("plan")


def test_what_may_not_be_seen_is_not_missing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file outside the user's prefix blocks the plan, and `import --all` says what it lacks."""
    folder.put("create", "file", "secret/a", content="", headers={})
    folder.put("create", "file", "public/a", content="", headers={})
    monkeypatch.setenv("TEXTSTORE_TOKEN", "reader-token")
    folder.write(
        folder.connect()
        + 'resource "textstore_file" "a" {\n  name = "secret/a"\n  content = ""\n}\n'
    )
    assert "Access to secret/a" in folder.run("plan", code=8)
    folder.write(folder.connect())
    written = folder.run("import", "--all")
    assert '"public/a"' in written and "secret/a" not in written
    assert "this is what reader can see; there can be more" in written


@pytest.mark.parametrize(("executed", "code"), [(True, 0), (False, 5)])
def test_a_lost_answer_is_settled_by_reading(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, executed: bool, code: int
) -> None:
    """The connection ends after the request: what is there tells whether it was executed, and
    it is not sent again."""
    monkeypatch.setattr(recovery, "MARGIN_SECONDS", 0.1)
    write, sent = folder.store.write, []

    def broken(user: User, operations: list[Item], *, validate_only: bool = False) -> Any:
        if validate_only:
            return write(user, operations, validate_only=True)
        sent.append(operations)
        if executed:
            write(user, operations)
        raise ConnectionAbortedError

    monkeypatch.setattr(folder.store, "write", broken)
    folder.write(folder.connect() + FILE)
    said = folder.run("apply", "-auto-approve", code=code)
    assert "No answer came" in said
    assert len(sent) == 1
    assert ("motd" in folder.store.files) is executed
    monkeypatch.undo()


def test_another_store_at_the_address_is_refused(
    applied: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan for one store is never made of another one's answers."""
    monkeypatch.setattr(applied.store, "id", "another")
    rewrite(applied, '"hello"', '"bye"')
    assert "another" in applied.run("apply", "-auto-approve", code=4)
    assert applied.store.files["motd"]["content"] == "hello"


def test_a_configuration_with_it_cannot_be_tested(folder: Folder) -> None:
    """The example has no simulated system, and `kafkaform test` says whose fault that is."""
    folder.write(
        folder.connect() + 'resource "textstore_file" "a" {\n  name = "a"\n  content = ""\n}\n'
    )
    folder.write('run "a" {\n}\n', "a.kftest.hcl")
    told = folder.run("test", code=1)
    assert 'provider "textstore" of kafkaform-textstore' in told
    assert "cannot simulate its system" in told
