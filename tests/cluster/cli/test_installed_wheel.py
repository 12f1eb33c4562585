"""The wheel in an empty environment does the tutorial, on a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest

from docs.release.build import build_wheel

from ...conftest import Broker
from ...kit.installed import install_wheel, make_environment

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/01-topics"


@pytest.mark.timeout(600)
def test_the_wheel_alone_does_the_tutorial(broker: Broker, tmp_path: Path) -> None:
    """`init`, `validate`, `plan --out`, `show`, `apply` of the saved plan, `output`, and a second
    plan that finds nothing to do, without a package index and without this checkout."""
    commands = install_wheel(build_wheel(tmp_path / "dist"), tmp_path / "environment")
    folder = tmp_path / "folder"
    folder.mkdir()
    prefix = f"wheel-{uuid.uuid4().hex[:8]}."
    for path in EXAMPLE.glob("*.kf.hcl"):
        (folder / path.name).write_text(path.read_text("utf-8").replace('"shop.', f'"{prefix}'))
    environment = make_environment(
        tmp_path,
        KF_VAR_bootstrap=broker.bootstrap,
        KAFKAFORM_SANDBOX_PASSWORD=broker.admin_password,
        **{name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ},
    )

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(commands / "kafkaform"), *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, (words, done.stdout + done.stderr)
        return done.stdout

    run("init")
    run("validate")
    assert "Plan: 4 to add" in run("plan", "--no-color", "--out", "plan.kfplan")
    assert f"{prefix}payments" in run("show", "plan.kfplan")
    run("apply", "plan.kfplan")
    assert run("output", "-raw", "customers_id").strip()
    run("plan", "--detailed-exitcode")
    state = json.loads((folder / "kafkaform.state.json").read_text())
    assert {row["identity"].removeprefix(prefix) for row in state["objects"]} == {
        *("clicks", "customers", "payments", "sessions")
    }
