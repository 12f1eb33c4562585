"""Java's classes, kept for later sessions: whose they are, whether whole, and who uses them."""

from __future__ import annotations

import os
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.progress import ignore_event
from kafkaform.fleet.spark import doctor, session
from kafkaform.fleet.spark.session import (
    SPARK,
    SparkSetup,
    find_archive,
    make_keep_options,
    make_start_options,
    prepare,
)
from kafkaform.jvm.archive import BASE, Archive
from kafkaform.sandbox.record import get_cache_folder

# Has no classes of its own: it writes some where it is told to, unless a file says that it cannot.
DUMPS = """\
#!/bin/sh
case $1 in
-Xshare:on) exit 1 ;;
-Xshare:dump) [ -e "$0.cannot" ] && exit 1; echo classes > "${2#*=}" ;;
esac
"""


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkSetup:
    """A Java that runs but is none, and an empty cache."""
    home = tmp_path / "a java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="21.0.1"\nMODULES="jdk.incubator.vector"\n')
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return SparkSetup("local[2]", tmp_path / "its cache")


def kept(setup: SparkSetup) -> Archive:
    """With its folder."""
    found = find_archive(setup.cache, session.find_java(setup.cache))
    found.folder.mkdir(parents=True, exist_ok=True)
    return found


def settled(found: Archive, part: str, text: str) -> Path:
    new = found.folder / "new"
    new.write_text(text)
    return found.settle_file(part, new)


def options(setup: SparkSetup) -> str:
    return session.build_settings(setup)["spark.driver.extraJavaOptions"]


def test_a_session_starts_from_what_is_kept(setup: SparkSetup) -> None:
    """From the newest file alone, of this Java alone; and from none where none is kept."""
    assert "Archive" not in options(setup)
    assert not setup.cache.exists()
    first = settled(kept(setup), SPARK, "one")
    assert options(setup).endswith(f' -XX:SharedArchiveFile="{first}"')
    second = settled(kept(setup), SPARK, "two")
    assert options(setup).endswith(f' -XX:SharedArchiveFile="{second}"')
    assert list(second.parent.iterdir()) == [second]
    release = Path(os.environ["JAVA_HOME"], "release")
    release.write_text(release.read_text().replace("21.0.1", "21.0.2"))
    assert "Archive" not in options(setup)


def test_jars_that_came_later_are_read_anew(
    setup: SparkSetup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Java does without what is kept, and nobody is told that preparing again would help."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    jar = tmp_path / "jars" / "spark.jar"
    jar.parent.mkdir()
    jar.write_text("classes")
    os.utime(jar, (1_700_000_000, 1_700_000_000))
    old = settled(kept(setup), SPARK, "one")
    assert make_start_options(setup.cache)
    os.utime(jar, (1_700_000_001, 1_700_000_001))
    assert make_start_options(setup.cache) == ""
    assert "fleet prepare" in doctor._check_classes(setup).advice
    new = settled(kept(setup), SPARK, "one")
    assert make_start_options(setup.cache)
    assert not old.exists()
    jar.with_name("more.jar").touch()
    assert make_start_options(setup.cache) == ""
    jar.with_name("more.jar").unlink()
    assert make_start_options(setup.cache)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "other"))
    assert make_start_options(setup.cache) == ""
    assert new.exists()


@pytest.mark.parametrize("part", [SPARK, BASE])
@pytest.mark.parametrize("data", [b"", b"the clas", b"the classeS", b"the classes and more"])
def test_what_is_not_whole_is_not_used(setup: SparkSetup, part: str, data: bytes) -> None:
    """Java would end at once; so would every run from then on."""
    file = {each: settled(kept(setup), each, "the classes") for each in (SPARK, BASE)}[part]
    assert make_start_options(setup.cache)
    file.write_bytes(data)
    assert make_start_options(setup.cache) == ""
    assert "Archive" not in options(setup)


def test_a_java_without_classes_of_its_own_gets_some(setup: SparkSetup, tmp_path: Path) -> None:
    """Once: they are kept, too. A Java that has some needs none."""
    new, found, used = tmp_path / "new", kept(setup), session.find_java(setup.cache)
    words = f'-XX:ArchiveClassesAtExit="{new}"'
    assert make_keep_options(found, used, new) == words
    program = Path(os.environ["JAVA_HOME"], "bin", "java")
    program.write_text(DUMPS)
    assert make_keep_options(found, used, new).endswith(words)
    base = found.find_whole_file(BASE)
    assert base is not None and base.read_text() == "classes\n"
    Path(f"{program}.cannot").touch()
    assert make_keep_options(found, used, new) == f'-XX:SharedArchiveFile="{base}" {words}'
    base.write_text("")
    with pytest.raises(KafkaformError, match=r"Java 21\.0\.1 \(JAVA_HOME\) cannot keep") as caught:
        make_keep_options(found, used, new)
    assert "JAVA_HOME" in caught.value.advice


@pytest.mark.parametrize("master", ["spark://host:7077", "sc://host", "yarn"])
def test_only_this_computer_is_prepared(setup: SparkSetup, master: str) -> None:
    with pytest.raises(UsageError, match=f"{re.escape(master)} is not this computer"):
        prepare(SparkSetup(master, setup.cache), ignore_event)
    assert not setup.cache.exists()


def test_the_doctor_tells_whether_classes_are_kept(
    setup: SparkSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "fleet prepare" in doctor._check_classes(setup).advice
    settled(kept(setup), SPARK, "one")
    assert (doctor._check_classes(setup).good, doctor._check_classes(setup).advice) == (True, "")
    monkeypatch.setattr(session, "_list_candidates", lambda: iter(()))
    assert doctor._check_classes(setup).good is None
    monkeypatch.undo()
    monkeypatch.setattr("kafkaform.fleet.spark.session.version", _missing)
    assert doctor._check_classes(setup).good is None


def _missing(name: str) -> str:
    raise PackageNotFoundError(name)


def test_java_takes_what_prepare_has_kept(spark: Any) -> None:
    """The file is in the memory of the Java that runs: one that does not fit is let go of."""
    found = find_archive(get_cache_folder(), session.find_java(get_cache_folder()))
    file = found.find_whole_file(SPARK)
    assert file is not None
    assert file.stat().st_size > 50_000_000
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    mapped = Path(f"/proc/{pid}/maps")
    if not mapped.exists():
        pytest.skip("only Linux shows what a process has in memory")
    assert str(file) in mapped.read_text()
