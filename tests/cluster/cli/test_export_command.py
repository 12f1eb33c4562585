"""`kafkaform export terraform` as it is typed, on a broker."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ...kit.commands.folder import LOG, STATE, Folder

TOFU = Path.home() / ".cache/kafkaform/peers"
"""Where `make bench-peers` puts OpenTofu and the provider."""

LIVE = """
resource "kafka_topic" "orders" {
  name       = "NAME.orders"
  partitions = 3
  config     = { "retention.ms" = "604800000", "cleanup.policy" = "delete" }
}
resource "kafka_topic" "each" {
  for_each   = toset(["NAME.a", "NAME.b"])
  name       = each.key
  partitions = 1
}
resource "kafka_access" "app" {
  principal = "User:NAME-app"
  role      = "consumer"
  topics    = ["NAME.orders"]
  group     = "NAME.app"
}
resource "kafka_quota" "app" {
  user   = "NAME-app"
  config = { producer_byte_rate = 1048576, request_percentage = 12.5 }
}
resource "kafka_quota" "pair" {
  user      = "NAME-app"
  client_id = "web"
  config    = { producer_byte_rate = 1024 }
}
resource "kafka_user_scram_credential" "app" {
  username         = "NAME-app"
  scram_mechanism  = "SCRAM-SHA-256"
  scram_iterations = 8192
  password         = secret_env("APP_PASSWORD")
}
"""


@pytest.fixture
def exported(folder: Folder) -> str:
    """What is written of a folder with every kind of object."""
    folder.monkeypatch.setenv("APP_PASSWORD", "password-of-app")
    folder.write("live.kf.hcl", LIVE.replace("NAME", folder.prefix.rstrip(".-_")))
    folder.done("apply", "--auto-approve", "--accept-unproven-access", "--accept-open-access")
    said = folder.done("export", "terraform", "--out", "terraform.tf.txt")
    assert "8 objects to export" in said.text
    assert "no quotas for a user and a client id together" in said.text
    assert "has no import block" in said.text
    return (folder.path / "terraform.tf.txt").read_text()


def find_variable(exported: str) -> str:
    """The variable of the password."""
    (name,) = [line.split('"')[1] for line in exported.splitlines() if "variable" in line]
    return name


def test_what_is_written_is_what_is_live(folder: Folder, exported: str) -> None:
    """The file is Terraform's: read as such, it declares exactly the live objects, so that a plan
    imports them and changes nothing. No password is in it."""
    assert "password-of-app" not in exported
    assert exported.count("import {") == 7
    assert 'source  = "Mongey/kafka"' in exported
    assert "secret_env" not in exported
    for name in ("live.kf.hcl", STATE, LOG):
        (folder.path / name).unlink()
    (folder.path / "provider.kf.hcl").rename(folder.path / "provider.tf")
    folder.write("main.tf", exported)
    folder.done("fmt", "--check")
    value = f"{find_variable(exported)}=password-of-app"
    said = folder.done("plan", "--adopt", "kafka_quota.*", "--var", value).text
    assert "Plan: 7 to import, 0 to add, 0 to change, 0 to destroy, 1 to adopt." in said


def test_nothing_is_overwritten(folder: Folder, exported: str) -> None:
    """A file that exists stays, and an unknown tool is named."""
    assert exported
    assert "not overwritten" in folder.fails(1, "export", "terraform", "--out", "live.kf.hcl")
    assert "Did you mean" in folder.fails(1, "export", "teraform")


@pytest.mark.skipif(not (TOFU / "tofu").exists(), reason="OpenTofu is not built: make bench-peers")
def test_opentofu_finds_nothing_to_change(folder: Folder, exported: str, tmp_path: Path) -> None:
    """OpenTofu with the real provider imports everything; only the quota, which it cannot import,
    it would set again."""
    broker = folder.broker
    where = tmp_path / "tofu"
    where.mkdir()
    (where / "main.tf").write_text(exported)
    (where / "provider.tf").write_text(
        f'provider "kafka" {{\n  bootstrap_servers = ["{broker.bootstrap}"]\n'
        '  tls_enabled       = false\n  sasl_mechanism    = "plain"\n'
        '  sasl_username     = "admin"\n'
        f'  sasl_password     = "{broker.admin_password}"\n}}\n'
    )
    (where / "rc").write_text(
        "provider_installation {\n  dev_overrides {\n"
        f'    "Mongey/kafka" = "{TOFU}"\n  }}\n  direct {{}}\n}}\n'
    )
    env = os.environ | {"TF_CLI_CONFIG_FILE": str(where / "rc")}
    env[f"TF_VAR_{find_variable(exported)}"] = "password-of-app"
    for step in (["apply", "-auto-approve"], ["plan", "-detailed-exitcode"]):
        # Its provider now and then asks before it is connected. Only a plan can simply be repeated.
        for _ in range(3 if step[0] == "plan" else 1):
            done = subprocess.run(
                [str(TOFU / "tofu"), *step, "-no-color", "-input=false"],
                cwd=where, env=env, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if "broker not connected" not in done.stderr:
                break
        assert done.returncode == 0, done.stdout + done.stderr
        if step[0] == "apply":
            assert "7 to import, 1 to add, 0 to change, 0 to destroy" in done.stdout
