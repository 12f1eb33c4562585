"""Pull requests that try to leave the boundary of their folder by changing what decides it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkaform.core.errors import ConfigurationError, KafkaformError, UsageError
from kafkaform.language.desired import Built
from kafkaform.workflow.configuration.evaluation import Configuration, Inputs, read_configuration
from kafkaform.workflow.configuration.judgement import judge_configuration
from kafkaform.workflow.configuration.policies import load_policies
from kafkaform.workflow.configuration.repository_choice import choose_folders

from ...kit.git_origin import Origin

FILE = """
repository {
  name  = "acme"
  owner = "the platform team"
}

folders "teams/*" {
  owner    = folder.name
  policies = ["policies/teams"]

  boundary {
    topics = ["${folder.name}.*"]
  }
}
"""
POLICY = """
policy "owned" {
  condition = change.owner == "shop"
  message   = "it needs an owner"
}
"""
TOPIC = 'resource "kafka_topic" "a" {\n  name = "billing.payments"\n}\n'
WIDE = FILE.replace("${folder.name}.*", "*")
BASE = {"KAFKAFORM_BASE_REF": "main"}


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """A pull request, checked out, whose folder declares another team's topic."""
    made = Origin.make(tmp_path / "repository")
    made.commit(
        {
            "kafkaform.hcl": FILE,
            "policies/teams/p.kfpolicy.hcl": POLICY,
            "teams/billing/main.kf.hcl": "",
            "teams/shop/main.kf.hcl": "",
        }
    )
    made.git("checkout", "--quiet", "-b", "attack")
    made.commit({"teams/shop/main.kf.hcl": TOPIC})
    return made


def read(
    folder: Path, environment: dict[str, str] = BASE, *, untrusted: bool = True
) -> Configuration:
    inputs = Inputs.read((), untrusted=untrusted, environment=environment)
    return read_configuration(folder, inputs)


def judge(folder: Path, environment: dict[str, str] = BASE, *, untrusted: bool = True) -> list[str]:
    """What the rules find, each with its place."""
    configuration = read(folder, environment, untrusted=untrusted)
    faults = judge_configuration(configuration, configuration.evaluate(offline=True))
    return [f"{fault.range}: {fault.summary}" for fault in faults]


def change_file(origin: Origin) -> None:
    origin.commit({"kafkaform.hcl": WIDE})


def change_file_uncommitted(origin: Origin) -> None:
    (origin.path / "kafkaform.hcl").write_text(WIDE)


def delete_file(origin: Origin) -> None:
    (origin.path / "kafkaform.hcl").unlink()
    origin.commit({})


def rename_file(origin: Origin) -> None:
    origin.git("rm", "--quiet", "kafkaform.hcl")
    origin.commit({"kafkaform.json": '{"repository": {"name": "x"}}'})


def break_file(origin: Origin) -> None:
    origin.commit({"kafkaform.hcl": "folders {"})


def link_file(origin: Origin) -> None:
    origin.commit({"teams/shop/wide.hcl": WIDE})
    (origin.path / "kafkaform.hcl").unlink()
    (origin.path / "kafkaform.hcl").symlink_to("teams/shop/wide.hcl")
    origin.commit({})


def write_block_for_itself(origin: Origin) -> None:
    origin.commit({"kafkaform.hcl": FILE + 'folders "teams/shop" {\n  owner = "shop"\n}\n'})


ATTACKS: list[Callable[[Origin], None]] = [
    change_file,
    change_file_uncommitted,
    delete_file,
    rename_file,
    break_file,
    link_file,
    write_block_for_itself,
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_file_of_the_base_branch_counts(
    origin: Origin, attack: Callable[[Origin], None]
) -> None:
    """Whatever the pull request makes of it."""
    attack(origin)
    (fault,) = judge(origin.path / "teams/shop")
    assert fault.startswith("main.kf.hcl:2:10: the topic")
    assert "outside of the boundary of teams/shop (kafkaform.hcl:11)" in fault
    choice = choose_folders(origin.path, True, (), None, BASE)
    (shop,) = [folder for folder in choice.folders if folder.path == "teams/shop"]
    assert shop.boundary is not None
    assert shop.boundary.topics == ("shop.*",)


def test_the_pipelines_say_which_branch_that_is(origin: Origin) -> None:
    """Their variables are set by the forge; a ref of one's own wins over them."""
    change_file(origin)
    origin.git("update-ref", "refs/remotes/origin/main", "main")
    folder = origin.path / "teams/shop"
    assert judge(folder, {"GITHUB_BASE_REF": "main"})
    assert judge(folder, {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"})
    assert not judge(folder, {"GITHUB_BASE_REF": "main", "KAFKAFORM_BASE_REF": "attack"})


CLUSTER = """
cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:9093"]
  security_protocol = "SASL_SSL"
}

folders "teams/*" {
  uses = { kafka = cluster.prod }
}
"""
LOGIN = {"KAFKAFORM_KAFKA_SASL_USERNAME": "reader", "KAFKAFORM_KAFKA_SASL_PASSWORD": "pw"}
OWN = 'provider "kafka" {\n  bootstrap_servers = ["evil:9093"]\n}\n'


@pytest.fixture
def shared(origin: Origin) -> Origin:
    """A pull request for a branch whose repository file says where to connect."""
    origin.git("checkout", "--quiet", "main")
    origin.commit({"kafkaform.hcl": 'repository {\n  name = "acme"\n}\n' + CLUSTER})
    origin.git("checkout", "--quiet", "-b", "other")
    return origin


def evaluate(origin: Origin) -> Built:
    """What a plan of the folder uses."""
    return read(origin.path / "teams/shop", {**BASE, **LOGIN}).evaluate()


def test_the_login_is_sent_where_the_base_branch_says(shared: Origin) -> None:
    """A cluster block needs no variables with the address, and what it leaves out comes from the
    environment. The pull request cannot change the block."""
    shared.commit({"teams/shop/main.kf.hcl": TOPIC.replace("billing", "shop")})
    changed = (shared.path / "kafkaform.hcl").read_text().replace("prod:9093", "evil:9093")
    shared.commit({"kafkaform.hcl": changed})
    config = evaluate(shared).desired.providers["kafka"].config
    assert config["bootstrap_servers"] == ("prod:9093",)
    assert config["sasl_username"] == "reader"


@pytest.mark.parametrize("name", ["more.kf.hcl", "main_override.kf.hcl"])
def test_a_folder_does_not_replace_the_cluster_block(shared: Origin, name: str) -> None:
    """A provider block of its own is refused at its line, also one in an override file."""
    shared.commit({"teams/shop/main.kf.hcl": TOPIC, f"teams/shop/{name}": OWN})
    built = evaluate(shared)
    assert "kafka" not in built.desired.providers
    faults = [f"{fault.range}: {fault.summary}" for fault in built.desired.diagnostics]
    assert any(
        text.startswith(f"{name}:2") and "--untrusted: the environment" in text for text in faults
    ), faults


def test_a_tag_is_not_the_base_branch(origin: Origin) -> None:
    """Whoever can push a branch can push a tag with the name that git gives the other branch."""
    origin.git("update-ref", "refs/remotes/origin/main", "main")
    change_file(origin)
    origin.git("tag", "origin/main")
    assert judge(origin.path / "teams/shop", {"GITHUB_BASE_REF": "main"})


def test_without_the_base_branch_nothing_is_planned(origin: Origin) -> None:
    """A shallow checkout may lack it: nobody knows which boundary counts."""
    unknown = "git does not know refs/remotes/origin/main here"
    with pytest.raises(UsageError, match=unknown) as error:
        read(origin.path / "teams/shop", {"GITHUB_BASE_REF": "main"})
    assert "KAFKAFORM_BASE_REF" in error.value.advice


def test_a_second_file_is_refused(origin: Origin) -> None:
    """In the folder, and in one above it, also where the files are trusted."""
    for name in ("teams/shop/kafkaform.hcl", "teams/kafkaform.json"):
        text = WIDE if name.endswith("hcl") else '{"repository": {"name": "x"}}'
        origin.commit({name: text})
        for untrusted in (True, False):
            with pytest.raises(ConfigurationError) as error:
                read(origin.path / "teams/shop", untrusted=untrusted)
            (fault,) = error.value.diagnostics
            assert f"{name} is below this file" in fault.summary
            assert str(fault.range) == "../../kafkaform.hcl:7:1"
        (origin.path / name).unlink()


def test_a_link_in_place_of_a_folder_is_refused(origin: Origin) -> None:
    """Neither the name of the link nor the place behind it gives another boundary."""
    origin.commit({"free/main.kf.hcl": TOPIC})
    (origin.path / "teams/free").symlink_to("../free")
    with pytest.raises(KafkaformError):
        read(origin.path / "teams/free", untrusted=False)
    (free,) = [f for f in choose_folders(origin.path, True, (), None).folders if f.name == "free"]
    assert "is a link" in free.faults[0].summary
    (origin.path / "other").symlink_to("teams/shop")
    assert judge(origin.path / "other", untrusted=False)


def test_policies_come_from_the_base_branch(origin: Origin) -> None:
    """A pull request neither changes nor adds one."""
    origin.commit(
        {
            "policies/teams/p.kfpolicy.hcl": POLICY.replace("owned", "weak"),
            "policies/teams/more.kfpolicy.hcl": POLICY.replace("owned", "more"),
        }
    )
    configuration = read(origin.path / "teams/shop")
    assert configuration.repository_folder is not None
    built = configuration.evaluate(offline=True)
    policies = load_policies(configuration, built, configuration.repository_folder.policies)
    assert policies.ids == ("policy/owned",)


def test_a_submodule_does_not_leave_the_boundary(origin: Origin) -> None:
    """It has a .git of its own, and its content comes from anywhere."""
    inner = Origin.make(origin.path.parent / "inner")
    inner.commit({"main.kf.hcl": TOPIC})
    command = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path))
    origin.git(*command, "teams/sub")
    assert (origin.path / "teams/sub/.git").exists()
    (fault,) = judge(origin.path / "teams/sub", untrusted=False)
    assert "outside of the boundary of teams/sub" in fault
    (origin.path / "kafkaform.hcl").unlink()
    (fault,) = judge(origin.path / "teams/sub")
    assert "outside of the boundary of teams/sub" in fault
