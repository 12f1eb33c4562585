"""Java's classes, kept by the first sandbox for those that come later."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.progress import ignore_event
from kafkaform.jvm import Archive
from kafkaform.sandbox import jars, lifecycle, record
from kafkaform.sandbox.jars import keep_classes, list_start_options
from kafkaform.sandbox.record import SandboxOptions


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    made = tmp_path / "kafka.jar"
    made.write_text("classes")
    return made


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs but is none; the cache is empty."""
    monkeypatch.setenv(record.CACHE_VARIABLE, str(tmp_path / "its cache"))
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    program = tmp_path / "home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def found(java: Path, jar: Path) -> Archive:
    made = jars.find_archive(java, (jar,))
    assert made is not None
    return made


def formatted(archive: Archive, text: str = "classes") -> tuple[str, ...]:
    """What the storage tool is told, which writes this text where it is told to."""
    with keep_classes(archive) as options:
        for option in options:
            name, _, file = option.partition("=")
            if name == "-XX:ArchiveClassesAtExit":
                Path(file).write_text(text)
    return options


def test_the_first_keeps_what_others_start_from(java: Path, jar: Path) -> None:
    """Whole, and nothing beside it."""
    archive = found(java, jar)
    assert list_start_options(archive) == ()
    assert not archive.folder.exists()
    (option,) = formatted(archive)
    assert option.startswith("-XX:ArchiveClassesAtExit=")
    (file,) = archive.folder.iterdir()
    assert file.read_text() == "classes"
    assert list_start_options(archive) == formatted(archive) == (f"-XX:SharedArchiveFile={file}",)


def test_what_no_longer_fits_is_kept_anew(java: Path, jar: Path) -> None:
    """Java would end at once with a damaged file, and do without it after a jar has changed."""
    formatted(found(java, jar))
    (file,) = found(java, jar).folder.iterdir()
    file.write_text("classe")
    assert list_start_options(found(java, jar)) == ()
    os.utime(jar, (1_700_000_000, 1_700_000_000))
    formatted(found(java, jar))
    os.utime(jar, (1_700_000_001, 1_700_000_001))
    assert list_start_options(found(java, jar)) == ()
    formatted(found(java, jar))
    assert len(list(file.parent.iterdir())) == 1
    (java.parent.parent / "release").write_text('JAVA_VERSION="21.0.2"\n')
    assert list_start_options(found(java, jar)) == ()


def test_of_two_that_are_first_one_keeps(java: Path, jar: Path) -> None:
    """The other's file may be in use already."""
    archive = found(java, jar)
    with keep_classes(archive) as options:
        formatted(archive, "the other's")
        Path(options[0].partition("=")[2]).write_text("ours")
    (file,) = archive.folder.iterdir()
    assert file.read_text() == "the other's"


def test_a_sandbox_works_without(java: Path, jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Java writes nothing, cannot, may not, or where the user has options of their own."""
    archive = found(java, jar)
    with keep_classes(archive) as options:
        assert options
    assert list_start_options(archive) == ()
    java.write_text("#!/bin/sh\nexit 1\n")
    assert formatted(archive) == ()
    assert list(archive.folder.iterdir()) == []
    archive.folder.rmdir()
    archive.folder.write_text("in the way")
    assert formatted(archive) == ()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-javaagent:watch.jar")
    assert jars.find_archive(java, (jar,)) is None
    assert list_start_options(None) == formatted_without() == ()


def formatted_without() -> tuple[str, ...]:
    with keep_classes(None) as options:
        return options


def test_a_jar_of_the_users_is_never_kept(
    java: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their next build of it would make everything that was kept useless."""
    monkeypatch.setattr(lifecycle.versions, "find_java", lambda *_: java)
    monkeypatch.setattr(lifecycle.jars, "find_class_path", lambda *_: (jar,))
    assert lifecycle._find_runtime(SandboxOptions("own"), ignore_event).classes is not None
    assert (
        lifecycle._find_runtime(SandboxOptions("own", classpath=(jar,)), ignore_event).classes
        is None
    )


def test_each_kafka_has_its_own_classes(java: Path, tmp_path: Path) -> None:
    """What one version has kept is neither used nor removed by another."""
    found = []
    for version in ("3.9.2", "4.3.1"):
        each = tmp_path / f"kafka_2.13-{version}.jar"
        each.touch()
        archive = jars.find_archive(java, (each,))
        assert archive is not None
        found.append(archive.name)
    assert len(set(found)) == 2


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("own_brokers")
def test_a_broker_starts_from_what_is_kept(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Already the first. The file is in the memory of the Java that runs: one that does not fit is
    let go of. The storage tool was told passwords, and they are not in it."""
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    jars, cache = record.get_cache_folder() / "jars", tmp_path / "its cache"
    for folder in (jars, cache):
        folder.mkdir(parents=True, exist_ok=True)
    (cache / "jars").symlink_to(jars)
    monkeypatch.setenv(record.CACHE_VARIABLE, str(cache))
    box = sandbox.up(SandboxOptions("kept"), count_brokers, ignore_event)
    try:
        archive = lifecycle._find_runtime(SandboxOptions("kept"), ignore_event).classes
        file = archive.find_start_file() if archive else None
        assert file is not None
        kept = file.read_bytes()
        assert len(kept) > 10_000_000
        assert b"StorageTool" in kept
        assert box.admin_password.encode() not in kept
        mapped = Path(f"/proc/{box.list_processes()[0].pid}/maps")
        if not mapped.exists():
            pytest.skip("only Linux shows what a process has in memory")
        assert str(file) in mapped.read_text()
    finally:
        sandbox.down("kept")
