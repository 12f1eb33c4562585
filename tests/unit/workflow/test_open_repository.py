"""Open a repository from a program, and the approval of many plans as a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import kafkaform
from kafkaform import ConfigurationError, FolderOutcome, StorageError, UsageError
from kafkaform.workflow.repository.documents import (
    make_approval,
    parse_approval,
    render_approval,
)
from kafkaform.workflow.repository.planning import plan_repository

from ...kit.simulated.repository import (
    FILE,
    CountingProvider,
    simulate_kafka,
    write_repository,
    write_topics,
)


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> CountingProvider:
    return simulate_kafka(monkeypatch)


def test_folders_that_cannot_be_opened_have_their_errors(
    tmp_path: Path, kafka: CountingProvider
) -> None:
    """The others have their workspaces; nobody is asked before the plans."""
    write_repository(tmp_path, "pay", "shop", "web")
    (tmp_path / "teams/pay/main.kf.hcl").write_text("resource {\n")
    (tmp_path / "teams/shop/kafkaform.state.json").write_text("no state")
    events: list[tuple[str, object]] = []
    opened = kafkaform.open_repository(tmp_path / "teams/web")
    assert [type(item.error) for item in opened.folders] == [
        *(ConfigurationError, StorageError, type(None))
    ]
    assert [item.workspace is None for item in opened.folders] == [True, True, False]
    assert not kafka.opened
    plan = kafkaform.plan_repository(opened, progress=lambda *event: events.append(event))
    assert plan.code == 9 and plan.changed
    outcomes = [event for _, event in events if isinstance(event, FolderOutcome)]
    assert tuple(outcomes) == plan.folders
    assert [item.applicable for item in outcomes] == [False, False, True]


def test_folders_are_chosen(tmp_path: Path, kafka: CountingProvider) -> None:
    """By globs, or by what changed since a commit."""
    write_repository(tmp_path, "pay", "shop", "web")
    commit_all(tmp_path)
    write_topics(tmp_path, "shop", "shop.a", "shop.b")

    def list_paths(**choice: object) -> list[str]:
        opened = kafkaform.open_repository(tmp_path, **choice)  # type: ignore[arg-type]
        return [item.folder.path for item in opened.folders]

    assert list_paths() == ["teams/pay", "teams/shop", "teams/web"]
    assert list_paths(folders=["teams/p*", "teams/w*"]) == ["teams/pay", "teams/web"]
    assert list_paths(changed_since="HEAD") == ["teams/shop"]


def test_variables_are_those_of_every_folder(tmp_path: Path, kafka: CountingProvider) -> None:
    """As in a workspace of one folder."""
    write_repository(tmp_path, "pay", "shop")
    variable = 'variable "partitions" {\n  type = number\n}\n'
    for name in ("pay", "shop"):
        folder = write_topics(tmp_path, name, f"{name}.a")
        text = (folder / "main.kf.hcl").read_text().replace("= 1", "= var.partitions")
        (folder / "main.kf.hcl").write_text(text + variable)
    opened = kafkaform.open_repository(tmp_path, variables={"partitions": 7})
    for item in kafkaform.plan_repository(opened).folders:
        assert item.plan is not None
        (change,) = item.plan.changes
        assert change.after is not None and change.after["partitions"] == 7


def commit_all(top: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], cwd=top, check=True)


@pytest.mark.parametrize(
    ("state", "code"), [(None, 1), ("states/${folder.path}", 1), ("/TOP/${folder.path}.json", 0)]
)
def test_a_state_in_the_checkout_is_not_trusted(
    tmp_path: Path, kafka: CountingProvider, state: str | None, code: int
) -> None:
    """Of files that anybody can have written, each folder fails; a state elsewhere is used, as the
    base branch names it."""
    top = tmp_path / "checkout"
    top.mkdir()
    place = f'  state = "{state}"\n'.replace("/TOP", str(tmp_path)) if state else ""
    write_repository(top, "pay", file=FILE.replace("  owner", f"{place}  owner"))
    commit_all(top)
    (top / "kafkaform.hcl").write_text(FILE)
    environment = {"KAFKAFORM_BASE_REF": "main", "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS": "prod:9093"}
    opened = kafkaform.open_repository(top, untrusted=True, environment=environment)
    (outcome,) = kafkaform.plan_repository(opened).folders
    assert outcome.code == code, outcome.error
    if code:
        assert "the state of teams/pay can be forged" in str(outcome.error)
    else:
        assert outcome.plan is not None and outcome.plan.changes


def test_an_approval_is_read_as_it_was_written(tmp_path: Path, kafka: CountingProvider) -> None:
    """A line that was changed, added, moved or taken away is found."""
    write_repository(tmp_path, "pay", "shop")
    plan = plan_repository(kafkaform.open_repository(tmp_path))
    approval = make_approval(plan.folders)
    text = render_approval(approval)
    assert parse_approval(text, "all.txt") == approval
    assert list(approval.tokens) == ["teams/pay", "teams/shop"]
    digest, pay, shop = text.splitlines()
    for lines in (
        [digest, pay],
        [digest, pay, shop, shop],
        [digest, pay, shop.replace("teams/shop", "teams/web")],
        [digest.replace(digest[0], "f" if digest[0] != "f" else "e"), pay, shop],
        [pay, shop],
        [],
        [digest, pay, f" {shop}"],
    ):
        with pytest.raises(UsageError, match=r"all\.txt is not an approval"):
            parse_approval("\n".join(lines), "all.txt")
