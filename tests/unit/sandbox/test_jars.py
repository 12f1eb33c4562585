"""The pinned class path and its cache."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kafkaform.core.errors import ConnectError, KafkaformError, UsageError
from kafkaform.core.progress import Event, Progress, ignore_event
from kafkaform.sandbox import jars, record, versions
from kafkaform.sandbox.jars import Fetch, Jar

CONTENT = b"class files"
JAR = Jar("org.example", "thing", "1.0", "", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


every_version = pytest.mark.parametrize("version", versions.list_versions())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; the folder that will hold the jars."""
    monkeypatch.setenv(record.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    return tmp_path / "jars"


def serving(content: bytes) -> jars.Source:
    """A repository that answers every request with this content."""

    def fetch(jar: Jar, folder: Path) -> Path:
        path = folder / jar.file_name
        path.write_bytes(content)
        return path

    @contextmanager
    def source() -> Iterator[Fetch]:
        yield fetch

    return source


def offline() -> AbstractContextManager[Fetch]:
    """A repository that cannot be reached."""
    raise ConnectError("no network")


def test_equal_jars_of_two_versions_are_one_file() -> None:
    """All versions share one cache: no name is that of two contents."""
    pinned = {jar for each in versions.list_versions() for jar in jars.read_pinned_jars(each)}
    assert len({jar.file_name for jar in pinned}) == len(pinned)


@every_version
def test_list_is_complete_and_well_formed(version: str) -> None:
    """Each list holds the jars of its version and a logging binding once, with a checksum."""
    pinned = jars.read_pinned_jars(version)
    artifacts = {jar.artifact for jar in pinned}
    assert len({jar.coordinate for jar in pinned}) == len(pinned) > 45
    assert len({jar.file_name for jar in pinned}) == len(pinned)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in pinned)
    kafka = {jar.version for jar in pinned if jar.group == "org.apache.kafka"}
    assert kafka == {version}
    assert {"kafka_2.13", "kafka-tools"} <= artifacts
    assert ("log4j-slf4j-impl" in artifacts) is (versions.parse_version(version) >= (4, 0))
    assert ("slf4j-reload4j" in artifacts) is ("zookeeper" in artifacts) is (version < "4")
    assert not any("connect-runtime" in artifact for artifact in artifacts)


@every_version
def test_list_names_no_host(version: str) -> None:
    """The list says what is needed, not where from."""
    text = versions.read_class_path(version)
    assert "://" not in text
    assert not re.search(r"\bwww\.|\brepo\d?\.", text)


def test_classifier_is_part_of_coordinate_and_file_name() -> None:
    """A line may name a classifier."""
    jar = jars.parse_jar("g:a:1:linux " + "0" * 64 + " 7")
    assert (jar.coordinate, jar.file_name, jar.size) == ("g:a:1:linux", "a-1-linux.jar", 7)


def test_missing_jar_is_downloaded_and_progress_reaches_the_total(cache: Path) -> None:
    """After a download the jar is in the cache, alone, and the bar was filled."""
    events: list[Event] = []
    assert jars.ensure_jars((JAR,), events.append, serving(CONTENT)) == (cache / JAR.file_name,)
    assert [path.name for path in cache.iterdir()] == [JAR.file_name]
    last = events[-1]
    assert isinstance(last, Progress)
    assert last.finished and last.done == last.total == JAR.size


def test_cached_jar_needs_no_network(cache: Path) -> None:
    """A second run works offline."""
    jars.ensure_jars((JAR,), ignore_event, serving(CONTENT))
    assert jars.ensure_jars((JAR,), ignore_event, offline) == (cache / JAR.file_name,)


def test_corrupted_cached_jar_is_refused_removed_and_named(cache: Path) -> None:
    """A jar that changed on disk never runs; the next command downloads it afresh."""
    jars.ensure_jars((JAR,), ignore_event, serving(CONTENT))
    (cache / JAR.file_name).write_bytes(b"other files")
    with pytest.raises(KafkaformError) as caught:
        jars.ensure_jars((JAR,), ignore_event, offline)
    assert JAR.coordinate in caught.value.message
    assert JAR.sha256 in caught.value.message
    assert hashlib.sha256(b"other files").hexdigest() in caught.value.message
    assert "again" in caught.value.advice
    assert not (cache / JAR.file_name).exists()
    jars.ensure_jars((JAR,), ignore_event, serving(CONTENT))


def test_wrong_download_never_reaches_the_cache(cache: Path) -> None:
    """A repository that answers with other bytes is refused and leaves nothing behind."""
    with pytest.raises(KafkaformError, match=JAR.coordinate):
        jars.ensure_jars((JAR,), ignore_event, serving(b"<html>sign in</html>"))
    assert list(cache.iterdir()) == []


def test_kafka_home_replaces_the_list(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With KAFKA_HOME its jars are used and nothing is downloaded."""
    libs = tmp_path / "kafka" / "libs"
    libs.mkdir(parents=True)
    for name in ("kafka_2.13-4.3.1.jar", "kafka-clients-4.3.1.jar", "notes.txt"):
        (libs / name).touch()
    monkeypatch.setenv("KAFKA_HOME", str(libs.parent))
    found = jars.find_class_path(ignore_event, offline)
    assert [path.name for path in found] == ["kafka-clients-4.3.1.jar", "kafka_2.13-4.3.1.jar"]


def test_kafka_home_without_kafka_is_explained(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong KAFKA_HOME is an error that says what is missing."""
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="libs/ has no kafka"):
        jars.find_class_path(ignore_event, offline)


def test_a_version_without_a_list_is_refused(cache: Path) -> None:
    """The message names all versions that there are, and the way to another one."""
    for wanted in ("3.9.0", "9", "../4.3.1", ""):
        with pytest.raises(UsageError) as caught:
            versions.read_class_path(wanted)
        assert all(known in caught.value.advice for known in versions.list_versions())
        assert "KAFKA_HOME" in caught.value.advice
    assert versions.choose_version(None) == versions.DEFAULT_VERSION in versions.list_versions()
    assert versions.choose_version("3.9.2") == "3.9.2"


def test_the_version_of_kafka_home_is_its_own(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is read from its jar; another one cannot be asked for."""
    libs = tmp_path / "kafka" / "libs"
    libs.mkdir(parents=True)
    for name in ("kafka_2.13-3.8.1.jar", "kafka_2.13-test-sources.jar"):
        (libs / name).touch()
    monkeypatch.setenv("KAFKA_HOME", str(libs.parent))
    assert versions.choose_version(None) == versions.choose_version("3.8.1") == "3.8.1"
    with pytest.raises(UsageError, match=r"is Kafka 3\.8\.1, not 3\.9\.2"):
        versions.choose_version("3.9.2")


@every_version
def test_every_version_has_its_java_and_its_logging(version: str) -> None:
    """Before 4.0, brokers log with Log4j 1 and do not run on Java 24; later ones need 17."""
    traits = versions.find_traits(version)
    old = versions.parse_version(version) < (4, 0)
    assert (24 not in traits.java) is old and 17 in traits.java and 11 not in traits.java
    assert traits.logging.file_name == ("log4j.properties" if old else "log4j2.properties")
