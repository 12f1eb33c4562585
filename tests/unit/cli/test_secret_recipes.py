"""The recipes of docs/secrets.md: each asks its client as the client is asked, with stand-ins."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform_kafka.kinds.user.simulation import credential_key
from kafkaform_kafka.memory import SimulatedClock, SimulatedCluster

from ...kit.commands.fixtures import here
from ...kit.commands.here import Here
from ...kit.sources import ROOT
from ...reliability.hostile.edited import simulate

__all__ = ["here"]

PAGE = (ROOT / "docs" / "secrets.md").read_text("utf-8")
RECIPES = [
    (title, recipe)
    for title, text in re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", PAGE, re.M | re.S)
    for recipe in re.findall(r"^```hcl\n(.*?)^```$", text, re.M | re.S)
]
AWS = ["aws", "secretsmanager", "get-secret-value", "--secret-id", "kafka/billing"]
AWS += ["--query", "SecretString", "--output", "text"]
VAULT = ["vault", "kv", "get", "-mount=secret", "-field=password"]
SOPS = ["sops", "decrypt", "--extract"]
ASKED = [
    [[*VAULT, "kafka/billing"], [*VAULT, "kafka/kafkaform"]],
    [AWS],
    [AWS, ["jq", "-er", ".password"]],
    [
        [*SOPS, '["kafka"]["billing"]', "passwords.sops.yaml"],
        [*SOPS, '["kafka"]["shipping"]', "passwords.sops.yaml"],
    ],
    [["op", "read", "op://kafka/billing/password"]],
]
"""What each recipe asks, sorted."""
SECRET = "what-the-store-has"
STAND_IN = f"""#!{sys.executable} -IS
import json, os, sys
with open(os.environ["ASKED"], "a") as log:
    log.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
print({SECRET!r})
"""


@pytest.fixture
def cluster(here: Here, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCluster]:
    made = SimulatedCluster(brokers=1, clock=SimulatedClock())
    simulate(monkeypatch, made)
    yield made


def test_every_recipe_is_tried() -> None:
    """In the page's order."""
    titles = [title for title, _ in RECIPES]
    assert titles == ["Vault", "AWS Secrets Manager", "AWS Secrets Manager", "sops", "1Password"]


@pytest.mark.parametrize(
    ("recipe", "asked"),
    [(recipe, asked) for (_, recipe), asked in zip(RECIPES, ASKED, strict=True)],
    ids=[f"{title} {number}" for number, (title, _) in enumerate(RECIPES)],
)
def test_a_recipe_works(
    here: Here,
    cluster: SimulatedCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    recipe: str,
    asked: list[list[str]],
) -> None:
    """The client gets these words once in a run, and what it prints is the password."""
    programs = tmp_path_factory.mktemp("programs")
    for name in ("vault", "aws", "jq", "sops", "op"):
        Path(programs, name).write_text(STAND_IN)
        Path(programs, name).chmod(0o755)
    log = programs / "asked"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(log))
    here.write("main.kf.hcl", recipe)
    here.write("passwords.sops.yaml", "kafka: {}\n")
    for words in (["plan"], ["apply", "--auto-approve"]):
        said = here.done(*words)
        assert SECRET not in said.text
        assert sorted(map(json.loads, log.read_text().splitlines())) == asked
        log.unlink()
    credential = cluster.world.get(credential_key("billing", "SCRAM-SHA-512"))
    assert credential is not None and credential.password == SECRET
