"""`init --repository`: the file that is written for folders that exist already."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import kafkaform
from kafkaform.core.diagnostics import has_errors
from kafkaform.core.errors import UsageError
from kafkaform.core.value import EMPTY
from kafkaform.language.declare.settings import read_settings
from kafkaform.plan.model import Plan
from kafkaform.provider.registry import Registry
from kafkaform.workflow.adoption.repository_draft import (
    RepositoryDraft,
    draft_repository,
    list_avoidable,
    list_differences,
    list_left_out,
)
from kafkaform.workflow.adoption.roots import choose_patterns
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.configuration.repository_file import read_repository
from kafkaform.workflow.configuration.repository_folders import compile_pattern, list_folders
from kafkaform.workflow.repository.checking import check_folders
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.rights import nobody
from ...kit.quick import examples
from .test_repository_file import make_files

TEAMS = ("ads", "pay", "shop", "web")
S3 = """kafkaform {{
  backend "s3" {{
    bucket = "acme"
    key    = "{key}"
    region = "eu-west-1"
  }}
}}
"""


def make_provider(host: str, more: str = "") -> str:
    return f'provider "kafka" {{\n  bootstrap_servers = ["{host}:9092"]\n{more}}}\n'


def make_topic(name: str) -> str:
    return f'resource "kafka_topic" "a" {{\n  name = "{name}"\n  partitions = 3\n}}\n'


def make_teams(text: str = "", host: str = "kafka-1.prod.example") -> dict[str, str]:
    """A folder for each team, with the same provider block."""
    return {
        f"teams/{team}/main.kf.hcl": make_provider(host) + make_topic(f"{team}.a") + text
        for team in TEAMS
    }


def draft(folder: Path, files: Mapping[str, str]) -> RepositoryDraft:
    return draft_repository(make_files(folder, files))


def body(made: RepositoryDraft) -> str:
    """The text without its comment and the block of the repository."""
    return made.text.partition("}\n\n")[2]


# ── patterns ────────────────────────────────────────────────────────────────────────────

PATHS = st.lists(st.sampled_from(["a", "b", "dev-a", "dev-b", "a-prod"]), min_size=1, max_size=3)
WORLDS = st.dictionaries(PATHS.map("/".join), st.integers(0, 3), min_size=1, max_size=12)


@given(world=WORLDS)
@settings(max_examples=examples(150), deadline=None)
def test_patterns_match_the_folders_and_nothing_that_is_avoided(world: dict[str, int]) -> None:
    """For any folders: each has a pattern of its meaning, and what is avoided has none."""
    avoided = {path for path, meaning in world.items() if meaning == 0}
    folders = {path: meaning for path, meaning in world.items() if meaning}
    chosen = choose_patterns(folders, avoided)
    for path, meaning in folders.items():
        assert any(compile_pattern(p).fullmatch(path) for p in chosen if chosen[p] == meaning)
    assert not [(p, path) for path in avoided for p in chosen if compile_pattern(p).fullmatch(path)]


def test_few_patterns_for_many_folders() -> None:
    """Whichever part of the path differs; exceptions stand alone."""
    paths = {f"{env}/{team}": env for env in ("dev", "prod") for team in TEAMS}
    assert choose_patterns(paths, ()) == {"dev/*": "dev", "prod/*": "prod"}
    turned = {f"teams/{team}/{env}": env for env in ("dev", "prod") for team in TEAMS}
    assert choose_patterns(turned, ()) == {"teams/*/dev": "dev", "teams/*/prod": "prod"}
    flat = {f"{team}-{env}": env for env in ("dev", "prod") for team in TEAMS}
    assert choose_patterns(flat, ()) == {"*-dev": "dev", "*-prod": "prod"}
    same = dict.fromkeys(paths, 1)
    assert choose_patterns(same, ()) == {"*/*": 1}
    assert choose_patterns({"a/b/c": 1, "d/e/f": 1}, ()) == {"a/b/c": 1, "d/e/f": 1}
    mixed = {"t/a": 1, "t/b": 2, "t/c": 3, "t/d": 2, "t/e": 1, "t/f": 4}
    assert choose_patterns(mixed, ()) == {"t/*": 1, "t/b": 2, "t/c": 3, "t/d": 2, "t/f": 4}
    assert choose_patterns({**paths, "prod/pay": "own"}, ()) == {
        "dev/*": "dev",
        "prod/*": "prod",
        "prod/pay": "own",
    }


# ── the file ────────────────────────────────────────────────────────────────────────────


def test_equal_provider_blocks_become_one_cluster(tmp_path: Path) -> None:
    """However they are written; what folders do not share stays theirs."""
    files = make_teams()
    files["teams/web/main.kf.hcl"] = (
        'locals { hosts = ["kafka-1.prod.example:9092"] }\n'
        'provider "kafka" {\n  bootstrap_servers = local.hosts\n}\n'
    )
    files["teams/pay/main.kf.hcl"] = make_provider(
        "old-2.example", '  sasl_mechanism = "plain"\n  sasl_password = secret_env("OLD")\n'
    )
    files["teams/ads/main.kf.hcl"] += make_provider("dr.example", '  alias = "dr"\n')
    files["teams/x/main.kf.hcl"] = make_provider("kafka-1.prod.example")
    made = draft(tmp_path, files)
    assert body(made) == (
        'cluster "kafka" {\n'
        '  provider          = "kafka"\n'
        '  bootstrap_servers = ["kafka-1.prod.example:9092"]\n'
        "}\n"
        "\n"
        'cluster "dr" {\n'
        '  provider          = "kafka"\n'
        '  bootstrap_servers = ["dr.example:9092"]\n'
        "}\n"
        "\n"
        'cluster "pay" {\n'
        '  provider          = "kafka"\n'
        '  bootstrap_servers = ["old-2.example:9092"]\n'
        '  sasl_mechanism    = "plain"\n'
        '  sasl_password     = secret_env("OLD")\n'
        "}\n"
        "\n"
        'folders "teams/*" {\n'
        "  uses = { kafka = cluster.kafka }\n"
        "}\n"
        "\n"
        'folders "teams/ads" {\n'
        "  uses = {\n"
        "    kafka      = cluster.kafka\n"
        '    "kafka.dr" = cluster.dr\n'
        "  }\n"
        "}\n"
        "\n"
        'folders "teams/pay" {\n'
        "  uses = { kafka = cluster.pay }\n"
        "}\n"
    )
    assert [*list_differences(made)] == [
        "teams/ads: a provider block kafka.dr that can be shared, unlike teams/*",
        "teams/pay: kafka = cluster.pay, and not cluster.kafka as in teams/*; different: "
        "bootstrap_servers, sasl_mechanism, sasl_password",
    ]


def test_clusters_are_called_as_the_folders_are(tmp_path: Path) -> None:
    """By what only their paths have; several providers of one place are told apart."""
    files = {}
    for env in ("dev", "prod"):
        for team in TEAMS:
            files[f"{env}/{team}/main.kf.hcl"] = make_provider(f"kafka-1.{env}") + (
                f'provider "schema_registry" {{\n  url = "https://registry.{env}"\n}}\n'
            )
    made = draft(tmp_path, files)
    assert [(item.name, len(item.folders)) for item in made.clusters] == [
        ("dev", 4),
        ("dev-schema-registry", 4),
        ("prod", 4),
        ("prod-schema-registry", 4),
    ]
    assert [*made.groups] == ["dev/*", "prod/*"]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("kafka-1.prod.example", "kafka"),
        ("b12.eu.example", "b"),
        ("localhost", "kafka"),
        ("10.0.0.1", "kafka"),
        ("[::1]", "kafka"),
        ("_x", "kafka"),
    ],
)
def test_a_single_cluster_is_called_as_its_host(tmp_path: Path, address: str, name: str) -> None:
    """Or as its provider, if the host says nothing."""
    made = draft(tmp_path, make_teams(host=address))
    assert [item.name for item in made.clusters] == [name]


def test_a_state_is_written_where_a_pattern_holds(tmp_path: Path) -> None:
    """With the path or the name of the folder; other places stay with their folders."""
    files = make_teams()
    for team in TEAMS:
        files[f"teams/{team}/main.kf.hcl"] += S3.format(key=f"kafka/{team}/state")
        files[f"more/{team}/main.kf.hcl"] = S3.format(key=f"more/{team}")
        files[f"local/{team}/main.kf.hcl"] = (
            f'kafkaform {{\n  backend "local" {{\n    path = "../../states/{team}.json"\n  }}\n}}\n'
        )
        files[f"plain/{team}/main.kf.hcl"] = make_provider("k")
    files["teams/web/main.kf.hcl"] = make_provider("kafka-1.prod.example")
    files["local/web/main.kf.hcl"] = S3.format(key="elsewhere")
    made = draft(tmp_path, files)
    states = {pattern: meaning.state for pattern, meaning in made.groups.items()}
    assert states == {
        "local/*": "states/${folder.name}.json",
        "local/web": None,
        "more/*": "s3://acme/${folder.path}?region=eu-west-1",
        "plain/*": None,
        "teams/*": "s3://acme/kafka/${folder.name}/state?region=eu-west-1",
        "teams/web": None,
    }
    assert 'state = "s3://acme/${folder.path}?region=eu-west-1"\n' in made.text
    repository = read_repository(tmp_path / "kafkaform.hcl", content=made.text.encode())
    states = {folder.path: folder.state for folder in list_folders(repository)}
    assert states["local/pay"] == str(tmp_path / "states/pay.json")
    assert states["teams/pay"] == "s3://acme/kafka/pay/state?region=eu-west-1"
    assert states["teams/web"] is None
    assert "the backend blocks of local/web stay, because no pattern covers them" in [
        *list_differences(made)
    ]


def test_few_states_of_a_pattern_need_no_block_of_their_own(tmp_path: Path) -> None:
    """Their folders keep their backend blocks."""
    files = make_teams()
    files["teams/web/main.kf.hcl"] += S3.format(key="teams/web")
    files["teams/pay/main.kf.hcl"] += S3.format(key="teams/pay")
    files["teams/x/main.kf.hcl"] = files["teams/ads/main.kf.hcl"]
    assert {p: m.state for p, m in draft(tmp_path, files).groups.items()} == {"teams/*": None}


def test_a_state_of_two_folders_is_named(tmp_path: Path) -> None:
    """No block says it: a repository refuses folders with the same state."""
    files = make_teams()
    for team in ("ads", "pay"):
        files[f"teams/{team}/main.kf.hcl"] += S3.format(key="shop")
        files[f"more/{team}/main.kf.hcl"] = S3.format(key=f"x/{team}")
    made = draft(tmp_path, files)
    assert made.groups["teams/*"].state is None
    told = "\n".join(list_differences(made))
    assert "teams/ads, teams/pay have the same state, s3://acme/shop?region=eu-west-1:" in told
    assert "stay" not in told


def test_a_repository_of_terraform(tmp_path: Path) -> None:
    """Provider blocks with values of files of variables; its states are named, and not used."""
    files = {
        "modules/topic/main.tf": 'variable "name" {}\n' + make_topic("x"),
        "network/main.tf": 'provider "aws" {}\nresource "aws_vpc" "a" {}\n',
    }
    for env in ("dev", "prod"):
        for team in TEAMS:
            place = f"{env}/{team}"
            files |= {
                f"{place}/main.tf": 'terraform {\n  required_providers {\n    mongey = {\n'
                '      source = "Mongey/kafka"\n    }\n  }\n'
                f'  backend "s3" {{\n    bucket = "tf"\n    key = "{place}"\n  }}\n}}\n'
                'variable "brokers" {\n  type = list(string)\n}\n'
                'variable "password" {\n  sensitive = true\n}\n'
                'provider "mongey" {\n  bootstrap_servers = var.brokers\n'
                '  sasl_username = "tf"\n  sasl_password = var.password\n}\n'
                f'module "t" {{\n  source = "../../modules/topic"\n  name = "{team}.a"\n}}\n',
                f"{place}/terraform.tfvars": f'brokers = ["kafka-1.{env}:9092"]\n'
                'password = "hunter2"\n',
            }  # fmt: skip
    made = draft(tmp_path, files)
    assert "hunter2" not in made.text
    assert body(made).startswith(
        'cluster "dev" {\n'
        '  provider          = "kafka"\n'
        '  bootstrap_servers = ["kafka-1.dev:9092"]\n'
        '  sasl_username     = "tf"\n'
        "  # sasl_password is missing: it is var.password, which is sensitive\n"
        "}\n"
    )
    assert body(made).endswith(
        'folders "prod/*" {\n'
        "  uses = { kafka = cluster.prod }\n"
        '  # state = "s3://tf/kafkaform/${folder.path}"\n'
        "}\n"
    )
    assert dict(made.roots.excluded) == {
        "modules/topic": "is a module, which dev/ads calls",
        "network": "declares nothing for kafkaform",
    }
    told = "\n".join(list_differences(made))
    assert "lack sasl_password: it is var.password, which is sensitive" in told
    assert "Terraform's state of 8 folders is in s3 (bucket tf)" in told


def test_no_secret_is_written(tmp_path: Path) -> None:
    """Not even one that stands in a file in plain text."""
    text = (
        'provider "kafka" {\n  bootstrap_servers = ["k:9092"]\n  sasl_password = "hunter2"\n'
        '  client_key = "-----BEGIN hunter2"\n}\n' + make_topic("a")
    )
    made = draft(tmp_path, {f"teams/{team}/main.tf": text for team in TEAMS})
    assert "hunter2" not in made.text and "hunter2" not in "\n".join(list_differences(made))
    assert "# sasl_password is missing: it is a secret in plain text\n" in made.text


def test_what_no_cluster_can_stand_for(tmp_path: Path) -> None:
    """Each with its reason; the folders keep their provider blocks."""
    files = make_teams()
    files |= {
        "a/main.kf.hcl": 'variable "hosts" { type = list(string) }\n'
        'provider "kafka" {\n  bootstrap_servers = var.hosts\n}\n',
        "b/main.kf.hcl": 'provider "kafka" {\n  for_each = toset(["x"])\n  alias = "by"\n'
        '  bootstrap_servers = ["${each.key}:9092"]\n}\n',
        "c/main.kf.hcl": 'provider "kafka" {\n  bootstrap_servers = ["k:9092"]\n  nope = 1\n}\n',
    }  # fmt: skip
    made = draft(tmp_path, files)
    assert len(made.clusters) == 1
    told = [*list_differences(made)]
    assert any("b/main.kf.hcl:1:1: it has for_each" in text for text in told)
    assert any(
        "a/main.kf.hcl:2:1: its bootstrap_servers is var.hosts, which has no value" in text
        for text in told
    )
    assert any("c/main.kf.hcl:1:1: there is no argument nope" in text for text in told)


# ── what is no folder of the repository ─────────────────────────────────────────────────


def test_modules_links_and_odd_names_are_matched_by_no_pattern(tmp_path: Path) -> None:
    """The folders beside them have blocks of their own, and it is said what to move."""
    files = make_teams('module "m" {\n  source = "../common"\n}\n')
    files["teams/common/main.kf.hcl"] = "locals { a = 1 }\n"
    files["teams/a b/main.kf.hcl"] = make_topic("x")
    files["modules/unused/main.kf.hcl"] = make_topic("x")
    files["teams/.hidden/main.kf.hcl"] = make_topic("x")
    make_files(tmp_path, files)
    (tmp_path / "teams/link").symlink_to("shop")
    (tmp_path / "teams/loop").symlink_to("loop")
    (tmp_path / "teams/gone").symlink_to("nowhere")
    made = draft_repository(tmp_path)
    assert [*made.groups] == [f"teams/{team}" for team in TEAMS]
    assert sorted(list_avoidable(made)) == ["teams/a b", "teams/common", "teams/link"]
    told = "\n".join(list_left_out(made))
    assert "teams/common is a module, which teams/ads calls" in told
    assert "teams/link is a link" in told
    assert "teams/a b has a name that is refused" in told
    assert "modules/unused is a module that no folder calls" in told


def test_a_module_of_the_top_is_no_folder(tmp_path: Path) -> None:
    """As in a repository with one configuration, whose modules are below it."""
    call = 'module "m" {\n  source = "./topics"\n}\n'
    files = {"main.kf.hcl": call, "topics/main.kf.hcl": make_topic("a")}
    with pytest.raises(UsageError, match="only this one has"):
        draft(tmp_path, files)
    made = draft(tmp_path, make_teams())
    assert [*list_left_out(made)] == [
        "this folder has a configuration itself, which stays as it is: no block matches it",
        "topics is a module, which this folder calls",
    ]


def test_a_folder_that_does_not_parse_gets_nothing(tmp_path: Path) -> None:
    """A block of its own, which changes nothing once it is mended."""
    files = make_teams(S3.format(key="x"))
    files = {name: text.replace('"x"', f'"{name.split("/")[1]}"') for name, text in files.items()}
    files["teams/web/main.kf.hcl"] = 'resource "kafka_topic'
    made = draft(tmp_path, files)
    assert 'folders "teams/web" {}\n' in made.text
    assert made.groups["teams/*"].state == "s3://acme/${folder.name}?region=eu-west-1"
    assert [*list_left_out(made)] == [
        "nothing was read from teams/web: teams/web/main.kf.hcl:1:10: Unclosed string"
    ]


def test_a_folder_that_cannot_be_entered(tmp_path: Path) -> None:
    """It is named, and no pattern matches it."""
    make_files(tmp_path, make_teams())
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == (tmp_path.stat().st_uid) and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    (tmp_path / "teams/web").chmod(0)
    try:
        with nobody():
            made = draft_repository(tmp_path)
    finally:
        (tmp_path / "teams/web").chmod(0o755)
    assert [*made.groups] == ["teams/ads", "teams/pay", "teams/shop"]
    assert [*list_left_out(made)] == ["teams/web cannot be read: permission denied"]


def test_nothing_to_write_for(tmp_path: Path) -> None:
    """No folder, only this one, or a file that is there already."""
    with pytest.raises(UsageError, match="no folder below this one has a configuration"):
        draft_repository(tmp_path)
    make_files(tmp_path, {"main.kf.hcl": make_topic("a")})
    with pytest.raises(UsageError, match="only this one has"):
        draft_repository(tmp_path)
    make_files(tmp_path, {**make_teams(), "teams/kafkaform.json": "{}"})
    with pytest.raises(UsageError, match=r"teams/kafkaform\.json exists, and is not overwritten"):
        draft_repository(tmp_path)
    (tmp_path / "teams/kafkaform.json").unlink()
    assert "this folder has a configuration itself" in "".join(
        list_left_out(draft_repository(tmp_path))
    )
    make_files(tmp_path, {"kafkaform.hcl": ""})
    for folder in (tmp_path, tmp_path / "teams"):
        with pytest.raises(UsageError, match=r"kafkaform\.hcl exists, and is not overwritten"):
            draft_repository(folder)


# ── plans ───────────────────────────────────────────────────────────────────────────────


def make_repository(folder: Path) -> list[Path]:
    """Three environments with four teams each: two provider blocks are different, some folders have
    backend blocks, and all call a module."""
    topic = make_topic("x").replace('"x"', "var.name")
    files = {"modules/topic/main.kf.hcl": 'variable "name" {}\n' + topic}
    for env in ("dev", "stage", "prod"):
        for team in TEAMS:
            host = "legacy" if (env, team) == ("prod", "web") else f"kafka-1.{env}"
            text = make_provider(host) + (
                f'module "t" {{\n  source = "../../modules/topic"\n  name = "{env}.{team}"\n}}\n'
                'resource "kafka_acl" "a" {\n  resource_name = "x"\n  resource_type = "Topic"\n'
                f'  acl_principal = "User:{env}-{team}"\n  acl_host = "*"\n'
                '  acl_operation = "Read"\n  acl_permission_type = "Allow"\n}\n'
            )
            if env == "stage":
                path = f"../../states/{env}/{team}.json"
                text += f'kafkaform {{\n  backend "local" {{\n    path = "{path}"\n  }}\n}}\n'
            files[f"{env}/{team}/main.kf.hcl"] = text
    make_files(folder, files)
    (folder / "states/stage").mkdir(parents=True)
    (folder / ".git").mkdir()
    return sorted((folder / name).parent for name in files if "modules" not in name)


def test_no_plan_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plans of all folders are equal before and after, apart from the digest of what they were
    made of; the file passes the check of all folders; folders without the blocks that it repeats
    plan the same."""
    top = tmp_path / "acme"
    folders = make_repository(top)
    made = draft_repository(top)
    cluster = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))

    def make_plans() -> list[Plan]:
        plans = [kafkaform.plan_changes(kafkaform.open_workspace(folder)) for folder in folders]
        return [replace(p, configuration="", sources={}, approval="", created="") for p in plans]

    for folder in folders[:6]:
        kafkaform.apply_changes(kafkaform.open_workspace(folder), approve=lambda _: True)
    before = make_plans()
    assert sum(bool(plan.changes) for plan in before) == 6
    (top / "kafkaform.hcl").write_text(made.text)
    assert make_plans() == before
    for folder in folders:
        file = folder / "main.kf.hcl"
        provider, calls = file.read_text().split('module "t"')
        assert provider.startswith("provider")
        # With comments instead, because a plan says where its blocks are.
        file.write_text(
            re.sub(".", "#", provider) + 'module "t"' + calls.partition("kafkaform {")[0]
        )
    assert make_plans() == before


NAMES = st.lists(st.sampled_from(["dev", "prod", "a", "b-dev", "c-dev"]), min_size=1, max_size=3)
FOLDERS = st.dictionaries(
    NAMES.map("/".join),
    st.tuples(st.sampled_from(["", "k1", "k2"]), st.sampled_from(["", "path", "name", "alone"])),
    min_size=1,
    max_size=9,
)


@given(folders=FOLDERS)
@settings(max_examples=examples(40), deadline=None)
def test_for_any_folders_nothing_changes(folders: dict[str, tuple[str, str]]) -> None:
    """Each is in the file, with its own cluster or none, and with its own state or none."""
    keys = {"path": "{path}", "name": "x/{name}", "alone": "{digest}"}
    files = {}
    for path, (host, state) in folders.items():
        name = path.rpartition("/")[2]
        key = keys.get(state, "").format(path=path, name=name, digest=hash(path))
        text = (make_provider(host) if host else "") + (S3.format(key=key) if key else "")
        files[f"{path}/main.kf.hcl"] = text + make_topic("a")
    with tempfile.TemporaryDirectory() as place:
        top = Path(place).resolve()
        made = draft(top, files)
        repository = read_repository(top / "kafkaform.hcl", content=made.text.encode())
        found = {folder.path: folder for folder in list_folders(repository)}
        inputs = Inputs.read(())
        assert found.keys() == folders.keys()
        for path, folder in found.items():
            before = read_configuration(top / path, inputs).evaluate(offline=True).desired
            after = read_configuration(top / path, inputs, repository_folder=folder)
            assert not folder.faults
            same = {"digest": "", "sources": EMPTY}
            assert replace(after.evaluate(offline=True).desired, **same) == replace(before, **same)
            key = read_settings(after.tree)[0].options.get("key")
            assert folder.state in (None, f"s3://acme/{key}?region=eu-west-1")


def test_all_folders_are_valid(tmp_path: Path) -> None:
    """The check of all folders finds nothing that it would not find without the file."""
    make_repository(tmp_path)
    made = draft_repository(tmp_path)
    (tmp_path / "kafkaform.hcl").write_text(made.text)
    repository = read_repository(tmp_path / "kafkaform.hcl")
    checked = [*check_folders(repository, list_folders(repository), Inputs.read(()))]
    assert len(checked) == 12
    assert not [item for item in checked if item.code or has_errors(item.faults)]
