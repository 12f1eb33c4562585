"""Read the files of a configuration: those of its folder and its modules, none from outside of the
root, and secrets in files, with a warning if other users of the computer can read them.

Git is asked about a checkout: its files, what changed since a commit, and files of that commit. No
program and no filter of the checkout runs.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from ...core.diagnostics import Diagnostic, Range, Severity
from ...core.errors import UsageError
from ...core.resource import Desired
from ...core.secret import NoSecret, Secret
from ...core.value import FrozenMap, find_references
from ...language.declare.folder import is_read
from ...language.declare.modules import Package, is_git, split_git_folder
from ...language.functions.files import make_confined_reader
from ...language.values.faults import LIMITS
from .. import modules

if TYPE_CHECKING:
    from ..modules.cache import Lock, Snapshot


_SECONDS = 60
BASE_VARIABLE = "KAFKAFORM_BASE_REF"
"""Names the ref that a pull request is to be merged to."""
_REMOTE = "refs/remotes/origin/"
"""In full: `origin/main` could also be a tag, which anybody can push who can push a branch."""
_PIPELINES = (
    ("GITHUB_BASE_REF", f"{_REMOTE}{{}}"),
    ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", f"{_REMOTE}{{}}"),
)
"""Variables of pipelines with the name of that branch, and what git calls it in their checkouts."""
_DEFAULT = f"{_REMOTE}HEAD"


def ask_git(folder: Path, *words: str) -> bytes:
    """The output of git in a folder. Raises PermissionError with the reason if it fails."""
    # A checkout can name a program in core.fsmonitor. In a pipeline, it often belongs to another
    # user, and git would refuse it.
    command = ("git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", *words)
    # Variables such as GIT_DIR and GIT_INDEX_FILE would lead to another repository.
    environment = {n: text for n, text in os.environ.items() if not n.startswith("GIT_")}
    environment["LC_ALL"] = "C"
    try:
        process = subprocess.run(  # noqa: S603  # no shell, and options are set apart from words
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(getattr(error, "strerror", None) or f"it took more than {_SECONDS} s").lower()
        raise PermissionError(reason) from None
    if process.returncode:
        reason = process.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise PermissionError(reason[:200])
    return process.stdout


def split_names(output: bytes) -> tuple[str, ...]:
    """The names of a list that ends each with a zero byte."""
    return tuple(output.decode(errors="surrogateescape").split("\0")[:-1])


def find_top(folder: Path) -> Path:
    """The top of the checkout that a folder is in. Raises UsageError if it is in none."""
    try:
        return Path(
            os.fsdecode(ask_git(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n"))
        )
    except PermissionError as error:
        raise UsageError(
            f"{folder} is not in a checkout of git: {error}",
            "--changed-since compares with a commit of git. Leave it out, or run it in a checkout.",
        ) from None


def find_base(top: Path, ref: str) -> str:
    """The last commit that a ref and the checkout have in common: what came to the ref after that
    is no change of the checkout. Raises UsageError."""
    try:
        commit = _find_commit(top, ref)
        return ask_git(top, "merge-base", commit, "HEAD").decode().strip()
    except PermissionError as error:
        raise UsageError(
            f"git finds no commit that {ref} and this checkout have in common: {error}".rstrip(
                ": "
            ),
            f"Fetch it with its history, such as `git fetch origin {_name_branch(ref)}`; pipelines "
            "often fetch the last commit only (fetch-depth: 0 gets all).",
        ) from None


def _find_commit(top: Path, ref: str) -> str:
    return (
        ask_git(top, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
        .decode()
        .strip()
    )


def _name_branch(ref: str) -> str:
    return ref.removeprefix(_REMOTE).removeprefix("origin/")


def list_changed_files(top: Path, commit: str) -> frozenset[Path]:
    """The files that differ from a commit, as absolute paths: changed, new, moved and deleted ones,
    whether committed or not. Raises UsageError."""
    try:
        options = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
        changed = ask_git(top, "diff", *options, commit, "--")
        new = ask_git(top, "ls-files", "--others", "--exclude-standard", "-z")
    except PermissionError as error:
        raise UsageError(
            f"git cannot list what changed since {commit}: {error}", "Check the checkout."
        ) from None
    return frozenset(top / name for name in (*split_names(changed), *split_names(new)))


def read_at(top: Path, commit: str, path: str) -> bytes | None:
    """A file as it is in a commit, without filters; None if it has none there.

    path: seen from the top, with slashes.
    """
    try:
        return ask_git(top, "cat-file", "blob", f"{commit}:{path}")
    except PermissionError:
        return None


# ── the branch that a pull request is for ───────────────────────────────────────────────


class Base(Struct, frozen=True):
    """A commit that a pull request cannot change."""

    top: Path
    """The top of the checkout."""
    commit: str

    def list_names(self, folder: Path) -> tuple[str, ...]:
        """The names of the files of a folder; none if it does not exist there."""
        path = folder.relative_to(self.top).as_posix()
        try:
            return split_names(
                ask_git(self.top, "ls-tree", "-z", "--name-only", f"{self.commit}:{path}")
            )
        except PermissionError:
            return ()

    def read(self, path: Path) -> bytes | None:
        """A file as it is there; None if there is none."""
        return read_at(self.top, self.commit, path.relative_to(self.top).as_posix())


def choose_base_ref(environment: Mapping[str, str]) -> str:
    """The ref that a pull request is to be merged to, as the environment says it."""
    if ref := environment.get(BASE_VARIABLE):
        return ref
    named = (form.format(environment[n]) for n, form in _PIPELINES if environment.get(n))
    return next(named, _DEFAULT)


def open_base(folder: Path, ref: str) -> Base | None:
    """The commit of a ref in the checkout of a folder; None if there is no checkout, or no such
    ref in it. In a submodule, it is that of the repository around it, which chose the submodule."""
    try:
        top, outer = b"", ask_git(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n")
        while outer:
            top = outer
            words = ("rev-parse", "--show-superproject-working-tree")
            outer = ask_git(Path(os.fsdecode(top)), *words).removesuffix(b"\n")
        path = Path(os.fsdecode(top))
        return Base(path, _find_commit(path, ref))
    except PermissionError:
        return None


MAX_PATH = 4096
Opened: TypeAlias = "dict[Package, Snapshot]"
"""The repositories that a configuration's modules were read from."""
OpenPackage: TypeAlias = "Callable[[Package], Snapshot]"
"""Opens a repository at a ref. Raises UnreadableModule."""
MAX_SECRET_BYTES = 1 << 16
SecretUser: TypeAlias = tuple[str, Range, FrozenMap]
"""Something that can get a secret from a file: what it is called, its block, its arguments."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def find_root(folder: Path) -> Path:
    """The folder that files and functions cannot leave: the nearest one upwards that contains .git,
    or the folder itself if there is none."""
    return next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder)


def list_checkout_files(root: Path) -> frozenset[str] | None:
    """The files that git tracks below the root; None if it is no checkout of git. Raises OSError if
    git cannot list them."""
    if not (root / ".git").exists():
        return None
    try:
        return frozenset(split_names(ask_git(root, "ls-files", "-z")))
    except PermissionError as error:
        raise PermissionError(f"git cannot list the files of the checkout: {error}") from None


class Buffers(dict[Path, bytes]):
    """Files that are open in an editor, by absolute path without links: their texts count instead
    of what is on the disk."""

    @cached_property
    def folders(self) -> Mapping[Path, Mapping[str, bytes]]:
        """Folder -> the texts of its open files, by name."""
        folders: dict[Path, dict[str, bytes]] = {}
        for path, content in self.items():
            folders.setdefault(path.parent, {})[path.name] = content
        return folders


def read_folder(
    root: Path,
    folder: Path,
    *,
    links: bool = True,
    is_wanted: Callable[[str], bool] = is_read,
    buffers: Buffers | None = None,
) -> dict[str, bytes]:
    """Read the files of a folder, by name; without `is_wanted`, those of a configuration.

    links: follow links to files inside the root. Raises OSError that says which file cannot be
    read, and why.
    """
    read = make_confined_reader(root, folder)
    files: dict[str, bytes] = {}
    typed: dict[str, bytes] = {}
    if buffers:
        opened = buffers.folders.get(folder, {})
        typed = {name: content for name, content in opened.items() if is_wanted(name)}
    # An editor can have files of a folder that does not exist yet.
    entries = () if typed and not folder.exists() else folder.iterdir()
    for name in sorted(path.name for path in entries if is_wanted(path.name)):
        if (folder / name).is_dir():
            continue
        if not links and (folder / name).is_symlink():
            raise PermissionError(f'"{name}" is a link, and --untrusted follows none')
        # A folder that anybody can write to must not use up the memory of a review.
        if len(files) >= LIMITS.files:
            raise PermissionError(
                f"a folder can contain at most {LIMITS.files:,} configuration files"
            )
        try:
            files[name] = read.content(name)
        except FileNotFoundError:
            raise PermissionError(f'"{name}" is a link that leads nowhere') from None
    return {**files, **typed}


class ModuleFolders(Struct, frozen=True):
    """Where the modules of a configuration are read."""

    root: Path
    """The folder that no local module can leave."""
    folder: Path
    """The configuration's."""
    links: bool
    """Follow links; otherwise the files are untrusted, too."""
    open_package: OpenPackage | None = None
    """None: at the locked commit, offline."""
    buffers: Buffers | None = None
    """What an editor shows instead of files on the disk."""
    opened: Opened = field(default_factory=dict)
    """What was opened already."""
    locks: dict[Package, Lock] = field(default_factory=dict)
    """The lock file, once it was needed."""

    def resolve_own_path(self, folder: str) -> str:
        """The path of a module's folder without links, so that a folder with two names is read
        once.

        "" is the configuration's folder. Without `links` they are left in, for `read_files` to
        refuse.
        """
        if is_git(folder):
            return folder
        try:
            if len(folder) > MAX_PATH:
                return folder
            start = self.folder.resolve()
            target = (start / folder).resolve() if self.links else start / folder
            relative_path = os.path.relpath(target, start)
        except (OSError, RuntimeError, ValueError):  # reading it raises the error, with its place
            return folder
        return "" if relative_path == os.curdir else relative_path

    def read_files(self, folder: str) -> dict[str, bytes]:
        """Read the files of a module's folder. Raises OSError that says why it cannot be read."""
        if is_git(folder):
            return self._read_from_git(folder)
        try:
            if len(folder) > MAX_PATH:
                raise ValueError
            target = (self.folder / folder).resolve()
        except (RuntimeError, ValueError):
            raise PermissionError("the path is invalid, or a link that leads to itself") from None
        # After resolving: "modules/../../.." and links out of the root are one and the same attack.
        if not target.is_relative_to(self.root.resolve()):
            raise PermissionError(f"{folder} leads out of the root of the configuration")
        if not self.links and Path(os.path.normpath(self.folder.resolve() / folder)) != target:
            raise PermissionError(f"{folder} is behind a link, and --untrusted follows none")
        return read_folder(self.root, target, links=self.links, buffers=self.buffers)

    def _read_from_git(self, folder: str) -> dict[str, bytes]:
        package, inside = split_git_folder(folder)
        if package not in self.opened:
            if self.open_package is not None:
                self.opened[package] = self.open_package(package)
            else:
                if not self.locks:
                    self.locks.update(
                        modules.cache.read_own_locks(self.root, self.folder, links=self.links)
                    )
                self.opened[package] = modules.cache.open_package(
                    self.locks, package, untrusted=not self.links
                )
        return modules.cache.read_package_folder(self.opened[package], inside)


def read_file_secret(path: Path) -> Secret | NoSecret | None:
    """The content of a file without the line break at its end; None if there is no such file."""
    try:
        # A device such as /dev/zero would never end.
        if not path.is_file():
            return NoSecret("It is not a regular file.") if path.exists() else None
        with path.open("rb") as file:
            data = file.read(MAX_SECRET_BYTES + 1)
    except OSError as fault:
        reason = (fault.strerror or "").lower()
        return NoSecret(f"The file cannot be read: {reason}.")
    if len(data) > MAX_SECRET_BYTES:
        return NoSecret(f"The file has more than {MAX_SECRET_BYTES:,} bytes.")
    text = decode_secret(data, "The file contains")
    return Secret(text) if isinstance(text, str) else text


def decode_secret(data: bytes, origin: str) -> str | NoSecret:
    """The text without the line break at its end. found: the beginning of a sentence about it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return NoSecret(f"{origin} something that is not UTF-8 text.")
    # Windows ends a line with two characters.
    line = text.removesuffix("\n")
    return line.removesuffix("\r") if line != text else text


def list_users(desired: Desired) -> Iterator[SecretUser]:
    """Everything in a configuration that can get a secret from a file."""
    for block in desired.providers.values():
        yield f'provider "{block.instance}"', block.range, block.config
    for item in desired.declared:
        if item.range is not None:
            yield str(item.address), item.range, item.attributes


def find_exposed_files(users: Iterable[SecretUser], folder: Path) -> Iterator[Diagnostic]:
    """A warning for each file of a secret that its group or everybody can read. folder: where
    relative paths start."""
    reported: set[str] = set()
    for user, location, attributes in users:
        for name in (ref.name for ref in find_references(attributes) if ref.source == "file"):
            if name not in reported and _is_exposed(folder / name):
                yield Diagnostic(
                    Severity.WARNING,
                    f"other users of this computer can read {name}, which contains a secret",
                    f"{user} gets a secret from it.",
                    range=location,
                    # As the configuration names it: a plan tells nothing about the computer.
                    advice=f"Run `chmod 600 {shlex.quote(name)}` in the configuration's folder.",
                )
            reported.add(name)


def _is_exposed(path: Path) -> bool:
    # The rule of ssh (sshkey_perm_ok in OpenSSH's authfile.c): who gets a file from somebody else,
    # as a container gets its secrets, cannot change its mode.
    if os.name == "nt":
        return False  # the mode says nothing about who can read a file there
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return status.st_uid == os.getuid() and bool(status.st_mode & _OTHERS)
