"""Every folder of `examples/` as its README says, on brokers of its own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform.sandbox import Sandbox
from kafkaform_kafka.provider import PROVIDER

from ...kit.commands.example import EXAMPLES, Copy, one
from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.truth import looking, observe

CHANGELOG = "wordcount-store-changelog"
PROD = "WYxXbJ8uQ0eT2nV4kLr9sA"
"""The id of the production cluster in an example."""


@pytest.fixture(scope="module")
def eu(own_brokers: None) -> Iterator[Sandbox]:
    with own_sandbox(f"eu-{os.getpid()}") as box:
        yield box


@pytest.fixture(scope="module")
def us(own_brokers: None) -> Iterator[Sandbox]:
    with own_sandbox(f"us-{os.getpid()}") as box:
        yield box


@pytest.fixture
def teams(own_brokers: None) -> Iterator[Sandbox]:
    """For an example whose names other examples have, too."""
    with own_sandbox(f"teams-{os.getpid()}") as box:
        yield box


def test_modules(tmp_path: Path, eu: Sandbox) -> None:
    """A module once and with for_each; its rule stops a plan and says who called."""
    example = one("02-modules", tmp_path, eu)
    assert "1 module" in example.run("init")
    example.run("fmt", "--check", "--recursive")
    example.applied()
    live = observe(eu).topics("billing.")
    assert sorted(live) == [
        "billing.orders",
        "billing.orders.retry",
        "billing.refunds",
        "billing.refunds.retry",
    ]
    main = example.folder / "main.kf.hcl"
    main.write_text(main.read_text().replace('"90d"', '"2h"'))
    said = example.run("plan", expect=1)
    assert "it for a day at least" in said
    assert 'in module.streams["refunds"], called at main.kf.hcl:16:1' in said


def test_for_each_over_a_yaml_file(tmp_path: Path, eu: Sandbox) -> None:
    """An entry more in the YAML file is a topic more; a saved plan of before is refused."""
    example = one("03-from-yaml", tmp_path, eu)
    example.run("fmt", "--check")
    example.applied()
    inventory = example.folder / "topics.yaml"
    entry = "  - name: pay.{}\n    owner: team-pay\n"
    inventory.write_text(inventory.read_text() + entry.format("refunds"))
    said = example.run("plan")
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in said
    token = next(line for line in said.splitlines() if line.startswith("Approval: ")).split()[1]
    inventory.write_text(inventory.read_text() + entry.format("receipts"))
    example.run("apply", "--expect", token, expect=4)


def test_two_clusters_by_alias(tmp_path: Path, eu: Sandbox, us: Sandbox) -> None:
    """One plan, one approval and one state for two clusters; a swapped address is noticed."""
    env = {
        "KAFKA_EU_PASSWORD": eu.admin_password,
        "KAFKA_US_PASSWORD": us.admin_password,
        "KF_VAR_eu": eu.bootstrap,
        "KF_VAR_us": us.bootstrap,
    }
    example = Copy("04-two-clusters", tmp_path, env)
    example.run("fmt", "--check", "--recursive")
    example.applied()
    here, there = observe(eu).topics("global."), observe(us).topics("global.")
    assert sorted(here) == ["global.orders", "global.payments"]
    assert sorted(there) == ["global.audit", *sorted(here)]
    assert here["global.orders"].config["retention.ms"] != there["global.orders"].config[
        "retention.ms"
    ]  # fmt: skip
    example.env |= {"KF_VAR_us": eu.bootstrap, "KAFKA_US_PASSWORD": eu.admin_password}
    assert "are the same cluster" in example.run("plan", expect=1)
    example.env |= {"KF_VAR_eu": us.bootstrap, "KAFKA_EU_PASSWORD": us.admin_password}
    assert "cluster" in example.run("plan", expect=4)


def test_environments(tmp_path: Path, eu: Sandbox, us: Sandbox) -> None:
    """Both layouts: two environments share a cluster, the third has its own. Another cluster than
    the pinned one, and another environment's state, are refused before anything is planned."""
    passwords = {"NONPROD": eu.admin_password, "PROD": us.admin_password}
    env = {f"KAFKA_{name}_PASSWORD": text for name, text in passwords.items()}
    example = Copy("06-environments", tmp_path, env)
    (example.folder / ".git").mkdir()  # modules are below the top of a repository
    example.run("fmt", "--check", "--recursive")
    files = [*example.folder.rglob("main.kf.hcl"), *example.folder.rglob("*.kfvars.hcl")]
    for port, known, box in (("19092", "Aq3mZ5tGSmyR7dK1pHc0Ew", eu), ("19192", PROD, us)):
        for file in files:
            text = file.read_text("utf-8").replace(f"127.0.0.1:{port}", box.bootstrap)
            file.write_text(text.replace(known, box.cluster_id), "utf-8")

    for name in ("dev", "stage", "prod"):
        example.run("--chdir", f"environments/{name}", "apply", "--auto-approve")
        planned = example.run("--chdir", f"environments/{name}", "plan", "--detailed-exitcode")
        assert "No changes." in planned
    assert {"dev.store.orders", "dev.store.trial", "stage.store.orders"} <= {*observe(eu).topics()}
    assert [*observe(us).topics("store.")] == ["store.orders"]

    prod = example.folder / "environments/prod/main.kf.hcl"
    whole = prod.read_text("utf-8")
    example.env["KAFKA_PROD_PASSWORD"] = eu.admin_password
    prod.write_text(whole.replace(us.bootstrap, eu.bootstrap), "utf-8")
    said = " ".join(example.run("--chdir", "environments/prod", "plan", expect=4).split())
    assert f"answers as cluster {eu.cluster_id}, and cluster_id of provider" in said
    wrong = whole.replace(us.bootstrap, eu.bootstrap).replace(us.cluster_id, eu.cluster_id)
    prod.write_text(wrong, "utf-8")
    example.run("--chdir", "environments/prod", "plan", expect=4)

    one_folder, values = ("--chdir", "one-configuration"), "{}.kfvars.hcl"
    example.env["KAFKA_PASSWORD"] = eu.admin_password
    assert "environment" in example.run(*one_folder, "plan", expect=1)
    dev = ("--var-file", values.format("dev"), "--state", "dev.json")
    # The objects are those of environments/dev, so this state has to take them over.
    example.run(*one_folder, "apply", "--auto-approve", "--adopt", "*", *dev)
    assert "No changes." in example.run(*one_folder, "plan", "--detailed-exitcode", *dev)
    example.env["KAFKA_PASSWORD"] = us.admin_password
    mixed = ("--var-file", values.format("prod"), "--state", "dev.json")
    example.run(*one_folder, "plan", *mixed, expect=4)


def test_a_repository_of_teams(tmp_path: Path, teams: Sandbox) -> None:
    """All folders in one run, the one that reads an output after the one that has it. A right that
    two folders share outlives one of them."""
    env = {"KAFKAFORM_SANDBOX_PASSWORD": teams.admin_password}
    example = Copy("07-repository", tmp_path, env)
    (example.folder / ".git").mkdir()  # modules are below the top of a repository
    file = example.folder / "kafkaform.hcl"
    file.write_text(file.read_text("utf-8").replace("127.0.0.1:19092", teams.bootstrap), "utf-8")
    example.run("fmt", "--all", "--check")
    assert "4 folders are valid" in example.run("validate", "--all")
    example.run("apply", "--all", "--auto-approve")
    assert [*observe(teams).topics("analytics.")] == ["analytics.clicks"]
    assert "4 folders have no changes." in example.run("plan", "--all", "--detailed-exitcode")
    main = example.folder / "teams/billing/main.kf.hcl"
    text = main.read_text("utf-8")
    main.write_text(text[: text.index("# The same right")].rstrip() + "\n", "utf-8")
    example.run("apply", "--all", "--auto-approve")
    with looking(teams.bootstrap, teams.admin_password) as observer:
        assert len([name for _, name in observer.acls("mirror") if "|Group|" in name]) == 1
    assert "4 folders have no changes." in example.run("plan", "--all", "--detailed-exitcode")


def test_a_terraform_folder_is_taken_over(tmp_path: Path, eu: Sandbox) -> None:
    """Only the provider block is another; live topics of before are adopted without a change."""
    env = {"KAFKA_PASSWORD": eu.admin_password, "KF_VAR_reporting_password": "pw-of-reporting"}
    example = Copy("05-from-terraform", tmp_path, env)
    brokers = ("--var", f'kafka_brokers=["{eu.bootstrap}"]')
    said = example.run("validate")
    assert 'of the provider "aws"' in said and "skipped" in said
    example.applied(*brokers)
    assert "orders" in example.run("output", "--json")
    for file in example.folder.glob("kafkaform.*"):
        file.unlink()
    said = example.run("plan", "--adopt", "*", *brokers)
    assert "0 to add, 0 to change, 0 to destroy, 12 to adopt." in said
    assert "pw-of-reporting" not in said
    example.applied("--adopt", "*", *brokers)
    (example.folder / "provider.tf").write_text((example.folder / "provider.tf.before").read_text())
    said = example.run("validate", expect=1)
    assert "needs a reference to a secret" in said
    assert "change-me" not in said


def test_users_and_their_passwords(tmp_path: Path, eu: Sandbox) -> None:
    """Passwords come from the environment when they are sent, and are in no file."""
    example = one("10-users", tmp_path, eu)
    example.run("fmt", "--check")
    example.run("apply", "--auto-approve", expect=1)
    for name in ("BILLING", "REPORTS"):
        example.env |= {f"PASSWORD_OF_{name}": f"hush-{name}"}
    example.applied()
    main = example.folder / "main.kf.hcl"
    main.write_text(main.read_text().replace("billing = 1", "billing = 2"))
    said = example.run("plan")
    assert 'recorded secret version: "1" → "2"' in said
    assert "Plan: 0 to add, 1 to change, 0 to destroy." in said
    example.applied()
    files = [file for file in example.folder.rglob("*") if file.is_file()]
    assert not [file.name for file in files if b"hush-" in file.read_bytes()]


def test_quotas_and_who_has_which(tmp_path: Path, eu: Sandbox) -> None:
    """Each key comes from its own level, and a limit that others set is shown and removed."""
    example = one("11-quotas", tmp_path, eu)
    example.run("fmt", "--check")
    example.applied()
    asked = ("--user", "billing", "--client-id", "export")
    said = example.run("explain", "quota", *asked, "--ip", "192.0.2.7")
    applies = [" ".join(line.split()) for line in said.partition("What applies")[2].splitlines()]
    assert applies[1:] == [
        "producer_byte_rate 20 MiB/s (20971520) at each broker shared by any client of user "
        "billing",
        "consumer_byte_rate 50 MiB/s (52428800) at each broker shared by user billing with "
        "client-id export",
        "request_percentage 50 % of one thread at each broker shared by user billing with "
        "client-id export",
        "controller_mutation_rate no limit",
        "connection_creation_rate 100 connections/s at each broker shared by everybody who "
        "connects from 192.0.2.7",
    ]
    document = json.loads(example.run("explain", "quota", *asked, "--json"))
    assert [limit["level"] for limit in document["limits"]] == [3, 1, 5, None]
    main = example.folder / "main.kf.hcl"
    main.write_text(main.read_text().replace(", request_percentage = 50", ""))
    assert '- "request_percentage" = 50' in example.run("plan")
    example.applied()


def test_acls_and_roles(tmp_path: Path, eu: Sandbox) -> None:
    """Roles share ACLs, which go with their last owner; another host is another ACL, made before
    the old one is deleted unless the provider block turns that round."""
    example = one("12-acls-and-roles", tmp_path, eu)
    example.run("fmt", "--check")
    example.run("apply", "--auto-approve")
    # The data source was asked before there was anything to tell.
    example.applied()
    assert "User:checkout" in example.run("output", "who_writes_orders")
    main = example.folder / "main.kf.hcl"
    whole = main.read_text()
    audit = whole.index('resource "kafka_access" "billing_audit"')
    main.write_text(whole[:audit] + whole[whole.index("# Operations of one's own") :])
    said = example.run("plan")
    assert "Plan: 0 to add, 2 to change, 3 to destroy." in said
    example.applied()
    main.write_text(whole.replace('"producer"\n', '"producer"\n  host = "10.1.2.3"\n'))
    said = example.run("plan")
    assert 'acl_order = "create_first"' in said
    assert "Plan: 5 to add, 2 to change, 2 to destroy." in said
    example.applied()
    targeted = example.run("plan", "--target=kafka_access.billing", "--detailed-exitcode")
    assert "No changes." in targeted
    example.run("state", "mv", "kafka_access.billing", "kafka_access.invoices")
    assert "kafka_access.invoices/acl" in example.run("state", "list")


def test_broker_and_cluster_configs(tmp_path: Path, eu: Sandbox) -> None:
    """Each level has its own value and says where it comes from; a read-only one is refused, and
    a secret is in no file."""
    example = one("13-broker-and-cluster-configs", tmp_path, eu)
    example.env |= {"KEYSTORE_PASSWORD": "hush-keystore"}
    example.run("fmt", "--check")
    # The topics of other tests follow the defaults of this broker.
    example.applied("--accept=guard-data-loss")
    assert "ssl.keystore.password" in example.run("output", "secrets_of_the_first")
    asked = ("explain", "config", "broker", "1", "background.threads")
    said = [" ".join(line.split()) for line in example.run(*asked).splitlines()]
    assert "→ Dynamic broker config background.threads 16" in said
    assert "Dynamic default broker config background.threads 12" in said
    document = json.loads(
        example.run("explain", "config", "topic", "configs.orders", "retention.ms", "--json")
    )
    assert document["value"] == str(30 * 24 * 3600 * 1000)
    (winner,) = (level for level in document["levels"] if level["wins"])
    assert (winner["source"], winner["key"]) == (
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "log.retention.ms",
    )
    main = example.folder / "main.kf.hcl"
    whole = main.read_text()
    line = next(x for x in whole.splitlines(keepends=True) if "= 16" in x)
    main.write_text(whole.replace(line, ""))
    assert '"16" → "12" (default)' in example.run("plan")
    main.write_text(whole.replace("2026-01", "2026-02"))
    assert 'recorded secret version: "2026-01" → "2026-02"' in example.run("plan")
    example.applied()
    main.write_text(whole.replace('"log.cleanup.policy"', '"num.partitions"'))
    assert "is read-only" in example.run("validate", expect=1)
    main.write_text(whole)
    said = example.run("destroy", "--confirm", eu.cluster_id)
    assert "min.insync.replicas" not in said  # eligible leader replicas own it
    assert "destroyed" in said
    files = [file for file in example.folder.rglob("*") if file.is_file()]
    assert not [file.name for file in files if b"hush-" in file.read_bytes()]


def test_every_type_has_an_example() -> None:
    """Resources and data sources; a new one must be shown somewhere too."""
    files = [path for path in EXAMPLES.rglob("*") if path.suffix in (".hcl", ".tf")]
    text = "\n".join(path.read_text("utf-8") for path in files)
    shown = {
        word: set(re.findall(rf'^{word} "(\w+)"', text, re.M)) for word in ("resource", "data")
    }
    assert set(PROVIDER.types) <= shown["resource"]
    assert set(PROVIDER.data) <= shown["data"]


def test_policies(tmp_path: Path, eu: Sandbox) -> None:
    """The plan names what is waived and what is only a warning, and a shorter retention is blocked
    by the team's own rule and by that of the organisation."""
    example = one("policies", tmp_path, eu)
    said = example.run("plan", "--policy", "organisation")
    assert "(waived until 2099-12-31: measured:" in said and "policy tiers" in said
    example.applied("--policy", "organisation")
    file = example.folder / "main.kf.hcl"
    file.write_text(file.read_text("utf-8").replace('retention("7d")', 'retention("3d")'), "utf-8")
    said = example.run("apply", "--auto-approve", "--policy", "organisation", expect=8)
    said = " ".join(said.split())
    assert "policy week:" in said and "policy no_data_loss:" in said


def test_topics_of_others(tmp_path: Path, eu: Sandbox) -> None:
    """A topic that is missing is an error; configs are taken over and kept, one more changelog is
    one more change, and a destroy leaves the topics."""
    example = one("15-topics-of-others", tmp_path, eu)
    example.run("fmt", "--check")
    assert "words" in example.run("plan", expect=1)
    observe(eu).make({"words": (3, {}), CHANGELOG: (1, {"cleanup.policy": "compact"})})
    example.run("apply", "--auto-approve", "--adopt", "kafka_topic_config.*")
    assert "No changes." in example.run("plan", "--detailed-exitcode")
    live = observe(eu).topics()
    assert live["word-counts"].partitions == 3
    assert live[CHANGELOG].config["max.message.bytes"] == str(2 * 1024 * 1024)
    outputs = json.loads(example.run("output", "--json"))
    assert outputs["changelogs"]["value"] == [CHANGELOG]
    observe(eu).make({"wordcount-other-changelog": (1, {})})
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in example.run("plan")
    example.run("destroy", "--confirm", eu.cluster_id)
    left = observe(eu).topics()
    assert {"words", CHANGELOG} <= set(left) and "word-counts" not in left
    assert left[CHANGELOG].config == {}
