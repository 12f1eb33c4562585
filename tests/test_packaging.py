"""What is installed is what is here: nothing that a checkout has is missing from a wheel."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.release import sbom
from docs.release.build import release_lock
from docs.release.lock import EXTRAS_LOCK, LOCK, read_lock
from kafkaform.sandbox.jars import read_pinned_jars
from kafkaform.sandbox.servers import start
from kafkaform.sandbox.servers.start import list_connect_versions
from kafkaform.sandbox.versions import list_versions
from kafkaform.version import VERSION
from kafkaform.workflow.fleet.runs import DELTA

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


_UNSTATED = {"license": {"name": sbom.UNSTATED}}
PACKAGES = (ROOT / "kafkaform", *sorted((ROOT / "providers").glob("kafkaform_*")))


def test_every_folder_of_modules_is_a_package() -> None:
    """The build finds packages by their `__init__.py`: no folder that holds modules lacks one."""
    for top in PACKAGES:
        for folder in {path.parent for path in top.rglob("*.py")}:
            assert (folder / "__init__.py").exists(), folder.relative_to(ROOT)


def test_types_are_declared_as_complete() -> None:
    """Each package says that its annotations can be relied on (PEP 561)."""
    assert all((top / "py.typed").exists() for top in PACKAGES)


def test_every_data_file_is_listed() -> None:
    """Templates and the jar list travel with the package."""
    listed = PROJECT["tool"]["setuptools"]["package-data"]
    for top in PACKAGES:
        for path in top.rglob("*"):
            if path.is_dir() or path.suffix in (".py", ".pyc"):
                continue
            owners = [
                (".".join(parent.relative_to(top.parent).parts), parent)
                for parent in path.parents
                if parent.is_relative_to(top)
            ]
            assert any(
                path.relative_to(parent).match(glob)
                for package, parent in owners
                for glob in listed.get(package, ())
            ), f"{path.relative_to(ROOT)} is in no package-data"


def test_every_dependency_has_an_upper_bound() -> None:
    """A release of somebody else that breaks us is not installed before the tests ran with it;
    that goes for what builds the package, too."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(item for extra in extras for item in extra)]
    wanted += PROJECT["build-system"]["requires"]
    for requirement in map(Requirement, wanted):
        operators = {one.operator for one in requirement.specifier}
        ours = requirement.name == PROJECT["project"]["name"]
        assert ours or operators & {"<", "<=", "==", "~="}, requirement


def closure(environments: Iterable[Mapping[str, str]]) -> set[str]:
    """What kafkaform without extras needs, and what that needs, in any of these environments."""
    found: set[str] = set()
    waiting = list(PROJECT["project"]["dependencies"])
    while waiting:
        one = Requirement(waiting.pop())
        name = canonicalize_name(one.name)
        where = [{**each, "extra": extra} for each in environments for extra in one.extras or {""}]
        if name in found or (one.marker and not any(map(one.marker.evaluate, where))):
            continue
        found.add(name)
        waiting += [r for r in metadata.requires(name) or () if "extra ==" not in r]
    return found


def test_the_lock_file_is_the_closure() -> None:
    """It has each package that an installation needs on any system and Python that we support, at
    the version that the tests ran with, with hashes, and nothing else."""
    environments = [
        {"python_version": version, "sys_platform": system, "platform_system": name}
        for version in ("3.11", "3.12", "3.13", "3.14")
        for system, name in (("linux", "Linux"), ("darwin", "Darwin"))
    ]
    lock = read_lock(LOCK.read_text())
    assert lock.keys() == closure(environments)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    known = {canonicalize_name(name): version for name, version in pins.items()}
    for name, (version, hashes) in lock.items():
        assert version == known[name]
        assert hashes and all(re.fullmatch("[0-9a-f]{64}", one) for one in hashes), name


@pytest.mark.slow("asks the package index")
@pytest.mark.timeout(600)
def test_pip_takes_the_lock_file_and_no_other_hash(tmp_path: Path) -> None:
    """Where packages can be had: everything is found with its hash, as wheels, and one file with
    another hash is refused."""
    pip = [sys.executable, "-m", "pip"]
    flags = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--dest", str(tmp_path)]

    def download(lock: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "requirements.lock"
        file.write_text(lock)
        command = [*pip, "download", "--quiet", *flags, "-r", str(file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=500)

    good = "mdurl==0.1.2 \\\n" + "".join(
        f"    --hash=sha256:{one} \\\n" for one in read_lock(LOCK.read_text())["mdurl"][1]
    )
    if download(good).returncode:
        pytest.skip("no package index can be reached")
    whole = download(LOCK.read_text())
    assert whole.returncode == 0, whole.stderr
    assert len(list(tmp_path.glob("*.whl"))) == len(read_lock(LOCK.read_text()))
    for file in tmp_path.glob("mdurl*"):
        file.unlink()
    bad = download(f"mdurl==0.1.2 --hash=sha256:{'0' * 64}\n")
    assert bad.returncode != 0 and "DO NOT MATCH" in bad.stderr.upper(), bad.stderr


@pytest.mark.slow("installs packages from the package index")
@pytest.mark.timeout(600)
def test_a_pipeline_installs_itself(tmp_path: Path) -> None:
    """Where packages can be had: `ci/install.sh` with the real pip, which takes packages by their
    hashes only, makes an environment in which kafkaform runs."""
    command = ["sh", str(ROOT / "ci/install.sh"), str(tmp_path / "venv")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=tmp_path)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"kafkaform {VERSION}")
    python = str(tmp_path / "venv/bin/python")
    listed = subprocess.run([python, "-m", "pip", "list"], capture_output=True, text=True)
    assert {*read_lock(LOCK.read_text())} <= {
        str(canonicalize_name(line.split()[0])) for line in listed.stdout.splitlines()[2:]
    }


def test_the_lock_file_of_a_release_has_the_wheel(tmp_path: Path) -> None:
    """With the hash of that very file, so that no other package of the name is installed."""
    wheel = tmp_path / f"kafkaform-{VERSION}-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    lock = read_lock(release_lock(wheel))
    version, hashes = lock.pop("kafkaform")
    assert version == VERSION
    assert hashes == (hashlib.sha256(b"wheel").hexdigest(),)
    assert lock == read_lock(LOCK.read_text())


def test_the_bill_of_materials_is_complete(tmp_path: Path) -> None:
    """CycloneDX: each package of the lock file and each pinned jar once, with version, hashes and
    a licence; every reference leads to something; equal inputs give equal bytes."""
    wheel = tmp_path / "w.whl"
    wheel.write_bytes(b"wheel")
    lock = release_lock(wheel)
    found = sbom.bill(lock)
    assert (found["bomFormat"], found["specVersion"], found["version"]) == ("CycloneDX", "1.6", 1)
    root = found["metadata"]["component"]
    assert root["purl"] == f"pkg:pypi/kafkaform@{VERSION}"
    parts = {part["bom-ref"]: part for part in found["components"]}
    assert len(parts) == len(found["components"])
    needed, more = (read_lock(file.read_text()) for file in (LOCK, EXTRAS_LOCK))
    assert not needed.keys() & more.keys() and "pyspark" in more
    packages = {n: v for n, (v, _) in (needed | more).items()}
    assert {p for p in parts if p.startswith("pkg:pypi/")} == {
        f"pkg:pypi/{name}@{version}" for name, version in packages.items()
    }
    jars = {p: parts[p] for p in parts if p.startswith("pkg:maven/")}
    pinned = {
        *DELTA,
        *(jar for each in list_versions() for jar in read_pinned_jars(each)),
        *(jar for each in list_connect_versions() for jar in start.read_pinned_jars(each)),
        start.read_pinned_archive().jar,
    }
    assert len(jars) == len(pinned)
    assert {jar["hashes"][0]["content"] for jar in jars.values()} == {jar.sha256 for jar in pinned}
    for part in parts.values():
        hashes = part.get("hashes") or part["externalReferences"][0]["hashes"]
        assert hashes and all(re.fullmatch("[0-9a-f]{64}", one["content"]) for one in hashes)
        (told,) = part["licenses"]
        assert told.get("expression") or told["license"]["name"], part
    # One package of an extra states none in its metadata.
    unstated = [p["name"] for p in parts.values() if p["licenses"] == [_UNSTATED]]
    assert [n for n in unstated if n != "hdfs-native" and find_spec(n.replace("-", "_"))] == []
    known = {root["bom-ref"], *parts}
    for node in found["dependencies"]:
        assert {node["ref"], *node["dependsOn"]} <= known
    reached, waiting = set(), [root["bom-ref"]]
    needs = {node["ref"]: node["dependsOn"] for node in found["dependencies"]}
    while waiting:
        one = waiting.pop()
        reached.add(one)
        waiting += [n for n in needs.get(one, ()) if n not in reached]
    assert reached == known
    assert sbom.text(lock) == sbom.text(lock) and json.loads(sbom.text(lock)) == found


def test_delta_jars_of_a_spark_cluster_are_checked() -> None:
    """What the example checks after Maven are the hashes that `fleet run` insists on."""
    lines = (ROOT / "examples/fleet/spark/delta.sha256").read_text().splitlines()
    assert dict(line.split("  ")[::-1] for line in lines) == {
        jar.file_name: jar.sha256 for jar in DELTA
    }


def test_constraints_hold_an_exact_version_of_every_dependency() -> None:
    """Whatever the project asks for is pinned exactly for its own tests and demo."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(line.split("==")[0]) for line in lines if not line.startswith("#")}
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(item for extra in extras for item in extra)]
    names = {canonicalize_name(Requirement(item).name) for item in wanted} - {"kafkaform"}
    assert names <= pinned, names - pinned
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines if not line.startswith("#"))
