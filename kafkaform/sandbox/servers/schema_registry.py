"""Run Apicurio Registry, which has the API of Confluent's Schema Registry.

Its application keeps schemas in an H2 database. In a file, they survive a restart of the sandbox;
its variant that keeps them in Kafka would need a topic and rights on every cluster. Its files come
from an archive of the Maven repository; each must have the SHA-256 of the list.

It has no logins: users come from an OpenID provider or not at all
(https://www.apicur.io/registry/docs/apicurio-registry/2.6.x/getting-started/assembly-configuring-registry-security.html).
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from msgspec import Struct

from ...core.errors import KafkaformError
from ...core.progress import Progress, Reporter
from ...core.storage import make_private_folder
from .. import folders
from ..jars import PARTIAL, Jar, Source, parse_jar, remove_abandoned, split_list, verify_file
from ..jars import verify_jar as verify_archive
from ..record import HOST, Sandbox, Server
from .program import Program


class Member(Struct, frozen=True):
    """A file in the archive."""

    name: str
    """Its path in the archive, with slashes."""
    sha256: str
    """64 hexadecimal digits."""
    size: int
    """Bytes."""


class ProgramArchive(Struct, frozen=True):
    """An archive and those of its files that a program needs."""

    jar: Jar
    """Where the repository has it."""
    members: tuple[Member, ...]

    @property
    def folder(self) -> Path:
        """Where its files are, in the user's cache."""
        return folders.get_cache_folder() / f"{self.jar.artifact}-{self.jar.sha256[:16]}"


def parse_archive(text: str) -> ProgramArchive:
    """A list: the archive in its first line, then one file in each."""
    first, *member_lines = split_list(text)
    jar = parse_jar(first)
    members = (line.split() for line in member_lines)
    return ProgramArchive(
        Jar(jar.group, jar.artifact, jar.version, jar.classifier, jar.sha256, jar.size, "tar.gz"),
        tuple(Member(name, sha256, int(size)) for name, sha256, size in members),
    )


def ensure_archive(archive: ProgramArchive, report: Reporter, source: Source, product: str) -> Path:
    """The folder with the files of the archive, which is downloaded if one is missing.
    product: what the screen calls it.

    Raises KafkaformError for a file with other content, after removing it; ConnectError.
    """
    folder = archive.folder
    missing = [member for member in archive.members if not (folder / member.name).is_file()]
    for member in archive.members:
        if member not in missing:
            _verify_member(archive, member, folder / member.name)
    if missing:
        _download(archive, missing, report, source, product)
    return folder


def _download(
    archive: ProgramArchive,
    missing: Sequence[Member],
    report: Reporter,
    source: Source,
    product: str,
) -> None:
    cache = folders.get_cache_folder() / "jars"
    cache.mkdir(parents=True, exist_ok=True)
    remove_abandoned(cache)
    label, total = f"downloading {product}", archive.jar.size
    report(Progress("archive", label, 0, total, "bytes"))
    with source() as fetch, tempfile.TemporaryDirectory(prefix=PARTIAL, dir=cache) as partial:
        file = fetch(archive.jar, Path(partial))
        verify_archive(archive.jar, file)
        report(Progress("archive", label, total, total, "bytes", finished=True))
        _unpack_members(archive, {member.name: member for member in missing}, file)


def _unpack_members(archive: ProgramArchive, members: Mapping[str, Member], file: Path) -> None:
    # As a stream: to go back to an earlier file, the archive would be unpacked from its beginning.
    with tarfile.open(file, "r|gz") as tar:
        for entry in tar:
            content = tar.extractfile(entry) if entry.name in members else None
            if content is not None:
                _keep_member(archive, members[entry.name], content.read(), file.parent)
    lacking = [name for name in members if not (archive.folder / name).is_file()]
    if lacking:
        raise KafkaformError(
            f"{archive.jar.coordinate} lacks {', '.join(lacking)}",
            "the list of its files is wrong: report it as a bug",
        )


def _keep_member(archive: ProgramArchive, member: Member, content: bytes, partial: Path) -> None:
    # By an atomic rename: another command may unpack the same file, or start from it.
    fresh, target = partial / "member", archive.folder / member.name
    fresh.write_bytes(content)
    _verify_member(archive, member, fresh)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh.replace(target)


def _verify_member(archive: ProgramArchive, member: Member, path: Path) -> None:
    name = f"{member.name} of {archive.jar.coordinate}"
    verify_file(name, member.sha256, member.size, path)


_FOLDER = "schema-registry"
# Without the second part, what was committed in the last half second is lost with the process.
_URL = f"jdbc:h2:file:./data/{_FOLDER}/registry;WRITE_DELAY=0"
"""Relative to the run folder: a path can contain characters that mean something here."""


def read_pinned_archive() -> ProgramArchive:
    file = resources.files(__package__).joinpath("class_paths", "schema-registry.txt")
    return parse_archive(file.read_text("ascii"))


def _find_class_path(_: Sandbox, report: Reporter, source: Source) -> tuple[Path, ...]:
    archive = read_pinned_archive()
    folder = ensure_archive(archive, report, source, PROGRAM.title)
    # The manifest of this jar names all others.
    (runner,) = folder.glob("*-runner.jar")
    return (runner,)


def _write_files(sandbox: Sandbox, _: Server) -> None:
    make_private_folder(sandbox.data / _FOLDER, parents=True)


def _make_options(_: Sandbox, server: Server) -> Sequence[str]:
    settings = {
        "quarkus.http.host": HOST,
        "quarkus.http.port": str(server.port),
        "REGISTRY_DATASOURCE_URL": _URL,
        # One connection is opened at once, not 20.
        "quarkus.datasource.jdbc.initial-size": "1",
        "quarkus.datasource.jdbc.min-size": "1",
        # Every request is a line at INFO.
        "LOG_LEVEL": "WARN",
        "REGISTRY_LOG_LEVEL": "WARN",
    }
    return tuple(f"-D{key}={value}" for key, value in settings.items())


def _make_headers(_: Sandbox) -> Mapping[str, str]:
    return {}


PROGRAM = Program(
    title="Apicurio Registry",
    main="io.quarkus.runner.GeneratedMain",
    find_class_path=_find_class_path,
    write_files=_write_files,
    make_options=_make_options,
    make_arguments=lambda _, __: (),
    ready_path="/apis/ccompat/v7/subjects",
    make_headers=_make_headers,
)
