"""The single file works alone: compiled packages are in it, and neither an environment nor a
checkout is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from docs.release.build import build_wheel
from docs.release.zipapp import FILE, build_zipapp
from kafkaform.version import VERSION

from ...kit.installed import install_wheel, make_environment

CONFIGURATION = """\
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:1"]
}
resource "kafka_topic" "orders" {
  name = "shop.orders"
}
"""


@pytest.mark.slow("makes an archive of all packages")
@pytest.mark.timeout(600)
def test_the_file_works_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`version`, `validate`, and a plan that tries to connect, with the interpreter that the
    file was made for and an empty home."""
    import_module("pex")
    monkeypatch.setenv("PEX_ROOT", str(tmp_path / "pex"))
    environment = tmp_path / "environment"
    install_wheel(build_wheel(tmp_path / "dist"), environment)
    build_zipapp(tmp_path, environment)
    home = tmp_path / "home"
    home.mkdir()
    (home / "main.kf.hcl").write_text(CONFIGURATION)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [os.path.realpath(sys.executable), str(tmp_path / FILE), *words],
            cwd=home,
            env=make_environment(home),
            capture_output=True,
            text=True,
            timeout=240,
        )

    told = run("version", "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["kafkaform_version"] == VERSION
    checked = run("validate")
    assert checked.returncode == 0 and "1 object" in checked.stdout, checked.stderr
    planned = run("plan")
    assert planned.returncode == 1 and "cannot reach Kafka at 127.0.0.1:1" in planned.stderr
