"""examples/07-repository does what its README says, for the platform team and for a team that tries
to leave its boundary. The cluster is simulated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ...kit.commands.here import Here
from ...kit.simulated.repository import simulate_kafka

EXAMPLE = Path(__file__).parents[3] / "examples/07-repository"
FOLDERS = ("platform", "teams/analytics", "teams/billing", "teams/shop")
SHARED = "\n  lifecycle {\n    shared = true\n  }\n"
GROUP_ACL = 'User:mirror Read on group "mirror"'


@pytest.fixture
def example(here: Here) -> Here:
    """A copy of the example, with an empty cluster."""
    here.monkeypatch.setenv("KAFKAFORM_SANDBOX_PASSWORD", "simulated")
    shutil.copytree(EXAMPLE, here.path, dirs_exist_ok=True)
    (here.path / ".git").mkdir()  # modules are below the top of a checkout
    simulate_kafka(here.monkeypatch)
    return here


def edit(example: Here, file: str, old: str, new: str) -> None:
    path = example.path / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def squeeze(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_the_platform_team(example: Here) -> None:
    """All is valid and applied in one run, the folder that reads an output after the one that has
    it, and no folder has anything to do afterwards."""
    example.done("fmt", "--all", "--check")
    assert "4 folders are valid: " in example.done("validate", "--all").out
    said = example.run("plan", "--all")
    assert all(f"── {folder} " in said.out for folder in FOLDERS if folder != "teams/analytics")
    example.done("apply", "--all", "--auto-approve")
    assert all((example.path / f"states/{folder}.json").is_file() for folder in FOLDERS)
    assert example.done("plan", "--all").out == "4 folders have no changes.\n"


def test_a_shared_right(example: Here) -> None:
    """One folder that does not say so is an error of both; one that leaves only forgets it."""
    example.done("apply", "--all", "--auto-approve")
    whole = (example.path / "teams/billing/main.kf.hcl").read_text("utf-8")
    edit(example, "teams/billing/main.kf.hcl", SHARED, "")
    said = squeeze(example.fails("validate", "--all"))
    assert f"{GROUP_ACL} from any host is declared here, and another folder has it, too" in said
    assert "teams/shop (teams/shop/main.kf.hcl:21)" in said
    assert "teams/billing (teams/billing/main.kf.hcl:14)" in said
    without = whole[: whole.index("# The same right")].rstrip() + "\n"
    example.write("teams/billing/main.kf.hcl", without)
    said = example.done("plan", "--all")
    assert f"  . Allow {GROUP_ACL} from any host" in said.out
    assert "it stays, because its block said that it is shared with other folders" in said.out
    assert "Plan: 0 to add, 0 to change, 0 to destroy, 1 to forget." in said.out
    example.done("apply", "--all", "--auto-approve")
    assert example.done("plan", "--all").out == "4 folders have no changes.\n"


ATTEMPTS = {
    "another team's topic": (
        'resource "kafka_topic" "x" {\n  name = "shop.orders"\n'
        '  config = { "retention.ms" = "1000" }\n}\n',
        2,
        "outside of the boundary of teams/billing",
    ),
    "a prefix that covers more": (
        'resource "kafka_access" "x" {\n  principal = "User:billing-app"\n  role = "producer"\n'
        '  topic_prefixes = ["billing"]\n}\n',
        1,
        'every topic whose name begins with "billing" is outside of the boundary',
    ),
    "everybody": (
        'resource "kafka_access" "x" {\n  principal = "User:*"\n  role = "producer"\n'
        '  topics = ["billing.invoices"]\n}\n',
        1,
        "everybody (User:*) is outside of the boundary",
    ),
    "the whole cluster": (
        'resource "kafka_cluster_config" "x" {\n  config = { "log.retention.ms" = "1000" }\n}\n',
        1,
        "the configs of all brokers concern all clients",
    ),
    "another state": (
        'kafkaform {\n  backend "local" {\n    path = "../../states/platform.json"\n  }\n}\n',
        2,
        "teams/billing has a boundary, so its state is where",
    ),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_team_that_tries_to_leave(example: Here, attempt: str) -> None:
    """The line, the boundary and who can change it are named, and nothing is planned to be sent."""
    text, line, summary = ATTEMPTS[attempt]
    example.done("apply", "--all", "--auto-approve")
    example.write("teams/billing/more.kf.hcl", text)
    said = squeeze(example.fails("validate", "--all"))
    assert summary in said
    assert f"on teams/billing/more.kf.hcl:{line}:" in said
    if "boundary of" in summary:
        assert "let the platform team change" in said
    planned = example.run("plan", "--all")
    assert planned.code in (1, 8), planned.text
    assert summary in squeeze(planned.text)
    assert "3 folders have no changes." in planned.out
    log = example.path / "states/teams/billing.audit.jsonl"
    before = log.read_bytes()
    assert example.run("apply", "--all", "--auto-approve").code in (1, 8)
    assert log.read_bytes() == before


def test_the_policy_of_the_platform_team(example: Here) -> None:
    """It judges the plans of teams, and not those of the platform."""
    example.done("apply", "--all", "--auto-approve")
    edit(example, "teams/analytics/main.kf.hcl", 'retention("3d")', 'retention("30d")')
    said = example.run("plan", "--all")
    assert said.code == 8
    text = " ".join(said.out.split())
    assert "policy retention: a topic of a team says for how long it keeps records" in text
    assert "── platform" not in said.out
