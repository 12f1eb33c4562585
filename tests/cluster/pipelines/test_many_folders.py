"""The pipeline of a repository of many folders on a real broker, with the rights of the README."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...kit.kafka.sessions import eventually
from ...kit.pipelines import github
from ...kit.pipelines.repository import install_python, make_repository
from ...kit.pipelines.server import serving
from .conftest import World
from .forge import EXAMPLE
from .test_github import _by_hand

FILE = """\
repository {{
  name = "checkout"
}}

cluster "prod" {{
  provider          = "kafka"
  bootstrap_servers = ["{bootstrap}"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "SCRAM-SHA-256"
}}

folders "teams/*" {{
  state = "{state}"
  owner = folder.name
  uses  = {{ kafka = cluster.prod }}

  boundary {{
    topics = ["checkout.${{folder.name}}"]
  }}
}}
"""
TOPIC = """\
resource "kafka_topic" "topic" {{
  name       = "checkout.{name}"
  partitions = {partitions}

  config = {{ "retention.ms" = "604800000" }}
}}
"""


@pytest.fixture
def hub(world: World) -> Iterator[github.Runner]:
    """GitHub, with the workflow for many folders and a login for each environment."""
    api = github.Api()
    with serving(api.web), serving(api.storage):
        yield github.Runner(
            api,
            make_repository(world.folder / "repository"),
            world.folder,
            str(install_python(world.folder / "bin")),
            EXAMPLE / "repository/github/.github/workflows/kafka.yml",
            {
                "kafka-read": _variables(world, "reader"),
                "kafka-production": _variables(world, "writer"),
            },
        )


def _variables(world: World, who: str) -> dict[str, str]:
    given = world.settings(who)
    return {
        "secrets.STATE_KEY_ID": given["AWS_ACCESS_KEY_ID"],
        "secrets.STATE_KEY": given["AWS_SECRET_ACCESS_KEY"],
        "vars.KAFKA_USERNAME": given["KAFKAFORM_KAFKA_SASL_USERNAME"],
        "secrets.KAFKA_PASSWORD": given["KAFKAFORM_KAFKA_SASL_PASSWORD"],
    }


def write_team(name: str, topic: str = "", partitions: int = 1) -> dict[str, str]:
    """The file of a team that has one topic, by default the one of its name."""
    text = TOPIC.format(name=topic or name, partitions=partitions)
    return {f"teams/{name}/main.kf.hcl": text}


def begin(world: World, hub: github.Runner) -> None:
    """The default branch gets the repository file and a folder for each team."""
    state = world.name_state("${folder.path}")
    files = {"kafkaform.hcl": FILE.format(bootstrap=world.broker.bootstrap, state=state)}
    for name in ("orders", "refunds"):
        files[f"teams/{name}/main.kf.hcl"] = "# nothing yet\n"
    hub.repository.write("begin", files)
    hub.repository.merge("begin", squash=True)


def run(hub: github.Runner, event: str, commit: str, code: int, **given: object) -> github.Ended:
    """A job that must end with this code. No log shows a password."""
    ended = hub.run(event, commit, **given)
    assert ended is not None and ended.code == code, ended and ended.log
    assert "pw-of" not in ended.log + ended.summary
    return ended


def plan(
    hub: github.Runner, name: str, files: dict[str, str], pull: int, code: int = 0
) -> github.Ended:
    head = hub.repository.write(name, files)
    return run(hub, "pull_request", hub.repository.preview(name), code, pull=pull, head=head)


def apply(hub: github.Runner, name: str, pull: int, code: int = 0) -> github.Ended:
    """The branch is merged and applied."""
    before, head = (hub.repository.git("rev-parse", one) for one in ("main", name))
    commit = hub.repository.merge(name, squash=True)
    merged = {"number": pull, "merged_at": "now", "merge_commit_sha": commit, "head": {"sha": head}}
    hub.api.pulls.append(merged)
    return run(hub, "push", commit, code, before=before)


@pytest.mark.timeout(600)
def test_two_teams_from_branches_to_drift(world: World, hub: github.Runner) -> None:
    """Two pull requests are planned at the same time and applied one after the other, each in its
    folder alone; their logs name them. Then a person changes one topic, and
    changes it back."""
    begin(world, hub)
    planned = plan(hub, "one", write_team("orders", partitions=3), 1)
    plan(hub, "two", write_team("refunds"), 2)
    assert "teams/orders" in planned.summary and "refunds" not in planned.summary + planned.log
    assert world.topics() == {} and not world.bucket.objects

    apply(hub, "one", 1)
    assert world.topics() == {"checkout.orders": 3}
    apply(hub, "two", 2)
    assert world.topics() == {"checkout.orders": 3, "checkout.refunds": 1}
    for name, pull in (("orders", "1"), ("refunds", "2")):
        begun = [r for r in world.records(f"teams/{name}") if r.kind == "run_begin"]
        assert [record.body["pull_request"] for record in begun] == [pull]

    commit = hub.repository.head
    _by_hand(world, "retention.ms", "1000")
    eventually(lambda: hub.run("schedule", commit), lambda ended: ended and ended.code == 8)
    (issue,) = hub.api.issues.values()
    assert "retention.ms" in issue["body"] and "teams/refunds" not in issue["body"]
    _by_hand(world, "retention.ms", "604800000")
    run(hub, "schedule", commit, 0)
    assert issue["state"] == "closed" and len(hub.api.issues) == 1


@pytest.mark.timeout(600)
def test_a_stale_folder_and_a_team_that_leaves_its_names(world: World, hub: github.Runner) -> None:
    """Of a pull request of two teams, the one whose topic somebody changed meanwhile is refused
    alone. A team that declares the topic of another one gets no plan, and the line says why."""
    begin(world, hub)
    plan(hub, "one", write_team("orders") | write_team("refunds"), 1)
    apply(hub, "one", 1)
    files = write_team("orders", partitions=2) | write_team("refunds", partitions=2)
    plan(hub, "two", files, 2)
    _by_hand(world, "retention.ms", "1000")
    refused = apply(hub, "two", 2, 4)
    assert world.topics() == {"checkout.orders": 1, "checkout.refunds": 2}
    assert "teams/orders" in refused.log

    files = write_team("refunds", "orders")
    (path,) = files
    failed = plan(hub, "three", files, 3, 8)
    errors = [text for _, given, text in failed.commands if given.get("file") == path]
    assert errors and "outside of the boundary" in errors[0], failed.log
