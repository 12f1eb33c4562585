"""The container image keeps its promises: small, not root, a read-only file system, no secret of a
checkout in a layer; its steps run, as far as they can without a container runtime."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from docs.release.build import SOURCES
from kafkaform.version import VERSION

from ...kit.image.dockerfile import read_stages
from ...kit.image.room import Room, find_obstacle

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "Dockerfile"
BUILD, FINAL = read_stages(FILE)
HOME = "/opt/kafkaform"
STRANGER = "12345:12345"
"""A user that no system file names, as `docker run --user` makes one."""
PYTHON = f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin"
CONFIGURATION = """\
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:1"]
}
resource "kafka_topic" "orders" {
  name = "shop.orders"
}
"""


def list_copied() -> list[str]:
    """What the first stage takes from the checkout."""
    return [word for rest in BUILD.list_all("COPY") for word in rest.split()[:-1]]


def test_the_base_is_pinned_by_name_and_version() -> None:
    """The same small image of Python for both stages, without the address of a registry."""
    assert BUILD.base == FINAL.base
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", FINAL.base)


def test_the_image_runs_as_nobody() -> None:
    """A numeric user, which Kubernetes can see not to be root, starts the command itself: signals
    reach it, because no shell is in between."""
    (user,) = FINAL.list_all("USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    assert FINAL.list_all("ENTRYPOINT") == ['["kafkaform"]']
    assert not FINAL.list_all("CMD") and not FINAL.list_all("RUN") and not FINAL.list_all("ADD")


def test_the_image_has_only_the_environment() -> None:
    """The last stage copies nothing but what the first one installed, which keeps no cache and
    takes packages by their hashes."""
    assert FINAL.list_all("COPY") == [f"--from=build {HOME} {HOME}"]
    installs = [step for step in BUILD.list_all("RUN") if "pip" in step]
    commands = [part for step in installs for part in step.split("&&") if " -m pip " in part]
    assert len(commands) == 3 and all("--no-cache-dir" in part for part in commands)
    assert all("--require-hashes" in part or "--no-deps" in part for part in commands)


def test_the_labels_have_the_version_of_the_code() -> None:
    """The version comes from `make image`, and a build with another one fails."""
    labels = FINAL.read_pairs("LABEL")
    assert labels["org.opencontainers.image.version"] == "$VERSION"
    assert BUILD.list_all("ARG") == FINAL.list_all("ARG") == ["VERSION"]
    assert not re.search(r"\d+\.\d+\.\d+", FILE.read_text())
    (check,) = [step for step in BUILD.list_all("RUN") if "$VERSION" in step]
    environment = {"PATH": PYTHON, "PYTHONDONTWRITEBYTECODE": "1"}
    for version, code in ((VERSION, 0), ("0.0.0", 1)):
        done = subprocess.run(
            ["sh", "-ec", check],
            cwd=ROOT,
            env={**environment, "VERSION": version},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code and ("make image" in done.stderr) == bool(code)


def test_nothing_is_written_outside_the_folder_and_tmp() -> None:
    """Home, cache and state are below /tmp or the mounted folder; what must outlive the container
    is in the latter."""
    variables = FINAL.read_pairs("ENV")
    assert FINAL.list_all("WORKDIR") == ["/configuration"]
    assert variables["HOME"].startswith("/tmp")
    assert variables["XDG_CACHE_HOME"].startswith("/tmp/")
    assert variables["XDG_STATE_HOME"].startswith("/configuration/.kafkaform/")
    assert variables["PATH"] == f"{HOME}/bin:$PATH"


def test_the_context_has_what_is_copied_and_nothing_else() -> None:
    """.dockerignore leaves out everything but that: the sources of the wheel, the lock file and
    the constraints. A state or a log in a checkout stays outside."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    kept = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {word.rstrip("/") for word in list_copied()}
    assert kept == copied
    assert copied == {*SOURCES, "constraints.txt", "examples/pipelines/ci/requirements.lock"}
    dropped = [rule for rule in rules[1:] if not rule.startswith("!")]
    for path in ("kafkaform/.kafkaform", "kafkaform/__pycache__", "providers/x.egg-info"):
        assert any(fnmatch(path, rule) for rule in dropped), path


def test_hadolint_finds_nothing() -> None:
    """Where it is installed."""
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not on the path")
    done = subprocess.run(["hadolint", str(FILE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """/opt/kafkaform as the steps of the first stage make it, on files that .dockerignore lets
    through."""
    if obstacle := find_obstacle():
        pytest.skip(obstacle)
    place = tmp_path_factory.mktemp("image")
    source, home = place / "src", place / "opt"
    for folder in (source, home):
        folder.mkdir(mode=0o755)
    for rest in BUILD.list_all("COPY"):
        *names, target = rest.split()
        for name in names:
            path = ROOT / name
            if path.is_dir():
                leave = shutil.ignore_patterns("__pycache__", "*.egg-info", ".kafkaform")
                shutil.copytree(path, source / target, ignore=leave)
            else:
                shutil.copy(path, source / target)
    of_pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    room = Room(
        {"/src": source, HOME: home},
        {**of_pip, "PATH": PYTHON, "HOME": "/tmp", "VERSION": VERSION},
        *BUILD.list_all("WORKDIR"),
    )
    for step in BUILD.list_all("RUN"):
        done = room.run("sh", "-ec", step)
        if done.returncode and "No matching distribution" in done.stderr:
            pytest.skip("no package index can be reached")
        assert done.returncode == 0, (step, done.stdout + done.stderr)
    yield home


@pytest.mark.slow("installs packages from the package index")
@pytest.mark.timeout(600)
def test_the_image_works_read_only_and_for_any_user(installed: Path, tmp_path: Path) -> None:
    """With a root file system that cannot be written and a user without a name or a home, the
    entry point tells its version, reads the mounted configuration and tries to reach the cluster.
    It writes only below the mounted folder. There is no pip in the environment."""
    tmp_path.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / "main.kf.hcl").write_text(CONFIGURATION)
    os.chown(work, *map(int, STRANGER.split(":")))
    variables = FINAL.read_pairs("ENV")
    variables["PATH"] = variables["PATH"].replace("$PATH", PYTHON)
    mounts = {HOME: installed, "/configuration": work}
    room = Room(mounts, variables, *FINAL.list_all("WORKDIR"), STRANGER, read_only=True)
    refused = room.run("sh", "-c", "echo x > /opt/x")
    assert refused.returncode and "Read-only" in refused.stderr
    (entry,) = FINAL.list_all("ENTRYPOINT")
    command = entry.strip('[]"')

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return room.run(*shlex.split(command), *words)

    told = run("version")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(f"kafkaform {VERSION}\n")
    checked = run("validate")
    assert checked.returncode == 0 and "1 object" in checked.stdout, checked.stderr
    planned = run("plan", "--out", "plan.kfplan")
    assert planned.returncode == 1 and "cannot reach Kafka at 127.0.0.1:1" in planned.stderr
    assert not list(installed.glob("lib/python3.*/site-packages/pip"))
    assert list(installed.glob("lib/python3.*/site-packages/kafkaform/__pycache__/*.pyc"))
