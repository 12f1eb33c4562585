"""One login and one look at a cluster for all folders that need the same. The cluster is
simulated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kafkaform.core.errors import Blocked, ConnectError
from kafkaform.core.resource import Absent, Depth, Identity, Observed, ProviderConfig
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Options
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.planning import plan_changes
from kafkaform.workflow.repository.folders import SharedSystems, open_repository
from kafkaform.workflow.repository.planning import plan_repository
from kafkaform.workflow.workspace import open_workspace
from kafkaform_kafka.kinds.simulation import User

from ...kit.simulated.repository import (
    FILE,
    CountingProvider,
    simulate_kafka,
    write_repository,
    write_topics,
)

TEAMS = [f"team{number:02}" for number in range(16)]
BLOCK = 'provider "kafka" {\n  bootstrap_servers = ["prod:9093"]\n}\n'


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> CountingProvider:
    return simulate_kafka(monkeypatch)


def take_requests(kafka: CountingProvider) -> Counter[str]:
    taken = Counter(kafka.cluster.requests)
    kafka.cluster.requests.clear()
    kafka.opened.clear()
    return taken


def adopt_all(folder: Path) -> None:
    """Record everything that the folder declares, created or taken over."""
    space = open_workspace(folder)
    apply_changes(space, options=Options(adopt=("*",)), approve=lambda plan: True)


@pytest.mark.parametrize("recorded", [False, True], ids=["new", "recorded"])
def test_many_folders_cost_what_one_folder_costs(
    tmp_path: Path, kafka: CountingProvider, recorded: bool
) -> None:
    """One login, and the requests of one folder with the same topics: neither grows with the
    number of folders, whether the topics are new or recorded."""
    write_repository(tmp_path)
    names = {team: [f"{team}.t{number}" for number in range(5)] for team in TEAMS}
    for team in TEAMS:
        write_topics(tmp_path, team, *names[team])
    alone = tmp_path / "alone"
    alone.mkdir()
    blocks = "\n".join(
        f'resource "kafka_topic" "{name.replace(".", "_")}" {{\n  name       = "{name}"\n'
        "  partitions = 1\n}\n"
        for name in sum(names.values(), [])
    )
    (alone / "main.kf.hcl").write_text(BLOCK + blocks)
    if recorded:
        adopt_all(alone)
        for team in TEAMS:
            adopt_all(tmp_path / "teams" / team)
    take_requests(kafka)
    one = plan_changes(open_workspace(alone))
    one_requests = take_requests(kafka)

    plan = plan_repository(open_repository(tmp_path))
    assert [item.error for item in plan.folders] == [None] * len(TEAMS)
    logins = len(kafka.opened)
    requests = take_requests(kafka)
    assert logins == 1
    assert requests == one_requests, "the folders share every request"
    assert sum(len(item.plan.changes) for item in plan.folders if item.plan) == len(one.changes)


def test_the_plan_is_that_of_the_folder_alone(tmp_path: Path, kafka: CountingProvider) -> None:
    """With changes of every kind: the token of each folder is that of `plan` in it."""
    # A topic that is gone shortly after a write is waited for.
    file = FILE.replace("  bootstrap", '  operation_timeout = "1s"\n  bootstrap')
    write_repository(tmp_path, "new", "same", "drifted", "gone", file=file)
    for team in ("same", "drifted", "gone"):
        adopt_all(tmp_path / "teams" / team)
    kafka.cluster.outside.alter("drifted.a", {"retention.ms": "1000"})
    kafka.cluster.outside.delete("gone.a")
    shared = plan_repository(open_repository(tmp_path))
    for item in shared.folders:
        alone = plan_changes(open_workspace(tmp_path / item.folder.path))
        assert item.plan is not None
        assert item.plan.token == alone.token
        assert item.plan.changes == alone.changes
    assert [item.changed for item in shared.folders] == [True, True, True, False]


def test_a_failed_login_is_not_tried_again(tmp_path: Path, kafka: CountingProvider) -> None:
    """All folders that need it have the same error."""
    write_repository(tmp_path, "pay", "shop")
    kafka.cluster.users.clear()
    plan = plan_repository(open_repository(tmp_path))
    assert len(kafka.opened) == 1
    assert [type(item.error) for item in plan.folders] == [ConnectError] * 2


def test_other_settings_are_another_login(tmp_path: Path, kafka: CountingProvider) -> None:
    """A folder with a provider block of its own logs in with it."""
    write_repository(tmp_path, "pay", "shop", "web")
    own = tmp_path / "teams/web/provider.kf.hcl"
    own.write_text(BLOCK.replace("prod:9093", "other:9093"))
    plan = plan_repository(open_repository(tmp_path))
    assert [item.error for item in plan.folders] == [None] * 3
    servers = [config["bootstrap_servers"] for _, config in kafka.opened]
    assert servers == [("prod:9093",), ("other:9093",)]


def test_files_of_the_settings_are_those_of_the_folder(
    tmp_path: Path, kafka: CountingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders whose settings name a file of the same name do not share a login, and each is
    opened where its file is."""
    places: list[Path] = []

    def note_place(*_: object) -> object:
        places.append(Path.cwd())
        raise ConnectError("no", "")

    monkeypatch.setattr(CountingProvider, "open", note_place)
    systems = SharedSystems()
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        (tmp_path / name / "trust.p12").write_text("")
    config = FrozenMap(truststore="trust.p12", bootstrap_servers=("a:1",))
    block = ProviderConfig("kafka", "kafka", config, None)  # type: ignore[arg-type]  # no place
    for name in ("a", "b", "a", "c"):
        with pytest.raises(ConnectError):
            systems.make_opener(tmp_path / name)(kafka, block, {})
    assert places == [tmp_path / "a", tmp_path / "b", Path.cwd()]


def test_a_second_reading_is_a_new_one(kafka: CountingProvider, tmp_path: Path) -> None:
    """Until the folder's readings are proven: then they stay as they are."""
    systems = SharedSystems()
    block = ProviderConfig("kafka", "kafka", FrozenMap(), None)  # type: ignore[arg-type]
    ids = [Identity("kafka", "kafka_topic", name) for name in ("a", "b")]
    systems.want(tmp_path, block, ids)
    session = systems.make_opener(tmp_path)(kafka, block, {})
    other = systems.make_opener(tmp_path / "other")(kafka, block, {})
    assert len(kafka.opened) == 1
    session.sweep("kafka_topic", Depth.NAMES, full=ids[:1])
    assert isinstance(session.read(ids[:1])[ids[0]], Absent)
    before = Counter(kafka.cluster.requests)
    assert isinstance(other.read(ids[1:])[ids[1]], Absent), "it was read ahead"
    assert kafka.cluster.requests == before
    kafka.cluster.outside.create("a")
    assert isinstance(session.read(ids[:1])[ids[0]], Observed)
    session.prove()
    kafka.cluster.outside.delete("a")
    assert isinstance(session.read(ids[:1])[ids[0]], Observed), "as it was planned for"
    session.close()
    fresh = systems.make_opener(tmp_path)(kafka, block, {})
    assert isinstance(fresh.read(ids[:1])[ids[0]], Absent), "a second plan looks again"
    with pytest.raises(AssertionError, match="sends nothing"):
        session.apply(None, {})  # type: ignore[arg-type]


def test_objects_of_other_folders_are_neither_missing_nor_unmanaged(
    kafka: CountingProvider, tmp_path: Path
) -> None:
    """An ACL may name the topic that another folder declares; a live topic that another folder
    declares is not listed as unmanaged. Names that no folder declares are."""
    write_repository(tmp_path, "billing")
    folder = write_topics(tmp_path, "shop", "shop.a")
    acl = (
        'resource "kafka_acl" "{}" {{\n  acl_principal = "User:shop"\n  acl_host = "*"\n'
        '  acl_operation = "Read"\n  acl_permission_type = "Allow"\n  resource_type = "Topic"\n'
        '  resource_name = "{}"\n}}\n'
    )
    text = (folder / "main.kf.hcl").read_text() + acl.format("x", "billing.a")
    (folder / "main.kf.hcl").write_text(text + acl.format("y", "billing.b"))
    for name in ("billing.a", "foreign"):
        kafka.cluster.outside.create(name)
    _, shop = plan_repository(open_repository(tmp_path)).folders
    assert shop.plan is not None
    missing = [
        finding.text
        for change in shop.plan.changes
        for finding in change.findings
        if finding.rule == "acl-topic-missing"
    ]
    assert missing == [
        "the topic 'billing.b' is neither declared nor live; there is a topic 'billing.a'"
    ]
    (unmanaged,) = shop.plan.instances["kafka"].unmanaged
    assert unmanaged.names == ("foreign",)
    kafka.cluster.outside.delete("billing.a")
    _, shop = plan_repository(open_repository(tmp_path)).folders
    assert shop.plan is not None
    names = {f.rule: c.address for c in shop.plan.changes for f in c.findings}
    assert names["acl-topic-missing"] == "kafka_acl.y"


def test_a_failed_listing_is_that_of_every_folder(tmp_path: Path, kafka: CountingProvider) -> None:
    """What cannot be read is left out in each folder with the reason that it would have alone, and
    never counts as missing."""
    write_repository(tmp_path, "pay", "shop")
    for team in ("pay", "shop"):
        adopt_all(tmp_path / "teams" / team)
    kafka.cluster.users["admin"] = User("admin")
    shared = plan_repository(open_repository(tmp_path))
    for item in shared.folders:
        alone = plan_changes(open_workspace(tmp_path / item.folder.path))
        assert item.plan is not None and item.plan.changes == alone.changes
        (change,) = item.plan.changes
        assert change.blocked is not None and not change.effective
    assert [type(item.error) for item in shared.folders] == [Blocked, Blocked]
