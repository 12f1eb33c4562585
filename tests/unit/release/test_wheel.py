"""The wheel has all of the product and nothing else, and works without this checkout."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from docs.release.build import build_wheel
from kafkaform.version import VERSION

from ...kit.extras import EXTRAS
from ...kit.installed import install_wheel, make_environment

ROOT = Path(__file__).resolve().parents[3]
BUILT = "builds and installs a wheel"
PACKAGES = (ROOT / "kafkaform", *sorted((ROOT / "providers").glob("kafkaform_*")))
CONFIGURATION = """\
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:1"]
}
resource "kafka_topic" "orders" {
  name       = "shop.orders"
  partitions = 3
}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_wheel(wheel, tmp_path_factory.mktemp("environment"))


@pytest.mark.slow(BUILT)
def test_a_wheel_has_the_files_of_the_packages_and_no_others(wheel: Path) -> None:
    """Every module, template, table, list of jars and manual page, byte for byte; nothing from
    tests or an earlier build; the licence."""
    ours = {
        path.relative_to(top.parent).as_posix(): path.read_bytes()
        for top in PACKAGES
        for path in top.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    manual = f"kafkaform-{VERSION}.data/data/share/man/man1/"
    ours |= {manual + path.name: path.read_bytes() for path in (ROOT / "docs/man").iterdir()}
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    about = {name for name in found if name.startswith(f"kafkaform-{VERSION}.dist-info/")}
    assert {name: found[name] for name in found.keys() - about} == ours
    assert {name.rpartition("/")[2] for name in about} >= {"LICENSE", "NOTICE", "METADATA"}


@pytest.mark.slow(BUILT)
def test_the_installed_command_works_without_the_checkout(commands: Path, tmp_path: Path) -> None:
    """`version` names every provider, `validate` reads a configuration, `fmt` and `providers
    schema` find their tables, and each module comes from the new environment."""
    (tmp_path / "main.kf.hcl").write_text(CONFIGURATION)

    def run(*words: str) -> str:
        command, environment = [str(commands / words[0]), *words[1:]], make_environment(tmp_path)
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    told = json.loads(run("kafkaform", "version", "--json"))
    assert told["kafkaform_version"] == VERSION
    assert told["provider_selections"].keys() == {"kafka", "kafka_connect", "schema_registry"}
    assert (commands.parent / "share/man/man1/kafkaform.1").is_file()
    run("kafkaform", "validate")
    run("kafkaform", "fmt", "--check")
    assert "kafka_topic" in run("kafkaform", "providers", "schema", "--json")
    places = run(
        "python",
        "-c",
        "import kafkaform, kafkaform_kafka, kafkaform_connect, kafkaform_schema_registry as r\n"
        "print(kafkaform.__file__, kafkaform_kafka.__file__, kafkaform_connect.__file__, "
        "r.__file__)",
    ).split()
    assert all(Path(place).is_relative_to(commands.parent) for place in places)


@pytest.mark.slow(BUILT)
def test_no_module_needs_a_package_that_only_tests_have(commands: Path, tmp_path: Path) -> None:
    """Every module that needs no extra can be imported with nothing but the wheel's own
    dependencies: none leans on a package of an extra or of the tests."""
    program = (
        "import importlib, pkgutil, sys\n"
        "import kafkaform, kafkaform_kafka, kafkaform_connect, kafkaform_schema_registry as r\n"
        "for top in (kafkaform, kafkaform_kafka, kafkaform_connect, r):\n"
        "    for found in pkgutil.walk_packages(top.__path__, top.__name__ + '.'):\n"
        "        if not found.name.endswith('__main__'):\n"
        "            try:\n"
        "                importlib.import_module(found.name)\n"
        "            except ModuleNotFoundError as error:\n"
        "                print(error.name)\n"
    )
    done = subprocess.run(
        [str(commands / "python"), "-c", program],
        cwd=tmp_path,
        env=make_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    missing = {name.partition(".")[0] for name in done.stdout.split()}
    assert missing <= EXTRAS.keys() | {"gssapi"}
