"""Every folder of `examples/` as its README says, on brokers of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kafkaform.sandbox import Sandbox

from ..proof.cluster import client, own_sandbox, read

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def eu() -> Iterator[Sandbox]:
    with own_sandbox(f"eu-{os.getpid()}") as box:
        yield box


@pytest.fixture(scope="module")
def us() -> Iterator[Sandbox]:
    with own_sandbox(f"us-{os.getpid()}") as box:
        yield box


class Copy:
    """An example in a folder of its own, with what its README tells to export."""

    def __init__(self, source: str, target: Path, env: Mapping[str, str]) -> None:
        self.folder = Path(shutil.copytree(EXAMPLES / source, target / source))
        self.env = {**os.environ, **env, "NO_COLOR": "1"}

    def run(self, *arguments: str, expect: int = 0) -> str:
        """What a command prints, both streams. It must end with this exit code."""
        done = subprocess.run(
            [sys.executable, "-m", "kafkaform", *arguments],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == expect, said
        return said

    def applied(self, *arguments: str) -> None:
        """Apply; the next plan has nothing to do."""
        self.run("apply", "--auto-approve", *arguments)
        assert "No changes." in self.run("plan", "--detailed-exitcode", *arguments)


def one(name: str, tmp_path: Path, box: Sandbox) -> Copy:
    env = {
        "KAFKAFORM_SANDBOX_PASSWORD": box.admin_password,
        "KF_VAR_bootstrap": box.bootstrap,
    }
    return Copy(name, tmp_path, env)


def test_modules(tmp_path: Path, eu: Sandbox) -> None:
    """A module once and with for_each; its rule stops a plan and says who called."""
    example = one("02-modules", tmp_path, eu)
    assert "1 module" in example.run("init")
    example.run("fmt", "--check", "--recursive")
    example.applied()
    live = read(client(eu), "billing.")
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
    here, there = read(client(eu), "global."), read(client(us), "global.")
    assert sorted(here) == ["global.orders", "global.payments"]
    assert sorted(there) == ["global.audit", *sorted(here)]
    assert here["global.orders"].config["retention.ms"] != there["global.orders"].config[
        "retention.ms"
    ]  # fmt: skip
    example.env |= {"KF_VAR_us": eu.bootstrap, "KAFKA_US_PASSWORD": eu.admin_password}
    assert "this state belongs to cluster" in example.run("plan", expect=4)


def test_a_terraform_folder_is_taken_over(tmp_path: Path, eu: Sandbox) -> None:
    """Only the provider block is another; live topics of before are adopted without a change."""
    env = {"KAFKA_PASSWORD": eu.admin_password}
    example = Copy("05-from-terraform", tmp_path, env)
    brokers = ("--var", f'kafka_brokers=["{eu.bootstrap}"]')
    said = example.run("validate")
    assert 'of the provider "aws"' in said and "skipped" in said
    example.applied(*brokers)
    assert "orders" in example.run("output", "--json")
    for file in example.folder.glob("kafkaform.*"):
        file.unlink()
    assert "0 to destroy, 6 to adopt." in example.run("plan", "--adopt", "*", *brokers)
    (example.folder / "provider.tf").write_text((example.folder / "provider.tf.before").read_text())
    said = example.run("validate", expect=1)
    assert "takes a reference to a secret" in said
    assert "change-me" not in said
