"""How a topic's readers log in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.workflow.connection import Connection, ConnectionInputs, resolve_configured
from kafkaform.workflow.fleet import runs

SETTINGS = "KAFKAFORM_TOPIC_SETTINGS"
PROVIDER = """provider "kafka" {{
  bootstrap_servers = ["127.0.0.1:1"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "{}"
  {}
}}
"""
BY_TOKEN = PROVIDER.format("OAUTHBEARER", 'sasl_token_file = "token"')
BY_PASSWORD = PROVIDER.format(
    "SCRAM-SHA-512", 'sasl_username = "a"\n  sasl_password = secret_env("ORDERS_PASSWORD")'
)


def configured() -> Connection:
    return resolve_configured(ConnectionInputs())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, without settings of a topic in the environment, now and afterwards."""
    monkeypatch.setenv(SETTINGS, "")
    monkeypatch.delenv(SETTINGS)
    monkeypatch.setenv("ORDERS_PASSWORD", "x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_login_by_tokens_is_refused_in_words(folder: Path) -> None:
    """Workers would wait for a token that never comes and call it a time-out; told at once, with
    what to do, and nothing is left in the environment."""
    (folder / "main.kf.hcl").write_text(BY_TOKEN)
    (folder / "token").write_text("a.b.c")
    with pytest.raises(UsageError, match=r"topic audit .* token login \(OAUTHBEARER\)") as told:
        runs._make_follower("audit", configured, "local[1]")
    assert "SCRAM" in str(told.value.advice) and SETTINGS not in os.environ


def test_a_login_by_password_goes_to_the_workers(folder: Path) -> None:
    """In the environment, in the words of their client."""
    (folder / "main.kf.hcl").write_text(BY_PASSWORD)
    runs._make_follower("audit", configured, "local[1]")
    found = json.loads(os.environ[SETTINGS])
    assert (found["sasl.mechanism"], found["sasl.password"]) == ("SCRAM-SHA-512", "x")
