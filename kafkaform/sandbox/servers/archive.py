"""Provide the files of a program that the Maven repository has as an archive.

Each file must have the SHA-256 of the list, as a jar of Kafka's must.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ...core.errors import KafkaformError
from ...core.progress import Progress, Reporter
from .. import places
from ..jars import PARTIAL, Jar, Source, parse_jar, remove_abandoned, split_list, verify_file
from ..jars import verify_jar as verify_archive


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
        return places.get_cache_folder() / f"{self.jar.artifact}-{self.jar.sha256[:16]}"


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
    cache = places.get_cache_folder() / "jars"
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
