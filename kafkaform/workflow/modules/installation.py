"""Fetch the repositories that modules come from, and pin them in the lock file.

`git` says which commit a ref means, and which files a commit has. It works in an empty repository
of its own, so that neither a checkout's configuration nor its hooks count. It never checks anything
out: contents are read as they are stored, without filters (LFS), line ends, links or submodules.
Credential helpers and ssh's agent are the user's.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from msgspec import Struct, field

from ...core.diagnostics import Diagnostic, Severity
from ...core.objects import Folder
from ...language.declare.modules import Package, UnreadableModule
from ...language.values.faults import LIMITS
from ...syntax.nodes import ALL_FILES_BYTES
from .cache import (
    LINK,
    LOCK_FILE,
    SUBMODULE,
    Lock,
    Snapshot,
    is_complete,
    load_snapshot,
    make_content_fault,
    open_store,
    render_locks,
    store_snapshot,
)

ASK_SECONDS = 120.0
"""For the list of refs."""
FETCH_SECONDS = 900.0
"""For a commit, whose repository can be large."""
_LOOK_SECONDS = 0.5
"""How long a signal can go unnoticed that arrives just before a wait, or in another thread."""
_REAP_SECONDS = 5.0
"""How long to wait for the end of a command that was stopped."""
_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_DROPPED = re.compile(
    # Those of `git rev-parse --local-env-vars`, which would lead git to another repository, and
    # those that print requests, which an error message would repeat.
    r"GIT_(?:DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES"
    r"|SHALLOW_FILE|GRAFT_FILE|REPLACE_REF_BASE|NO_REPLACE_OBJECTS|PREFIX|NAMESPACE|TEMPLATE_DIR"
    r"|IMPLICIT_WORK_TREE|INTERNAL_SUPER_PREFIX|ALLOW_PROTOCOL|PROTOCOL_FROM_USER"
    r"|TRACE\w*|CURL_VERBOSE)"
)
_SETTINGS = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.version=2"),
    *("gc.auto=0", "maintenance.auto=false", "fetch.recurseSubmodules=false"),
    # A server that sends less than 1,000 bytes a second for a minute is given up.
    *("http.lowSpeedLimit=1000", "http.lowSpeedTime=60"),
)
_ADVICE = (
    "Check address and access with `git ls-remote {}`. kafkaform asks for no password, so git "
    "needs a credential helper, and ssh an agent."
)

SOURCES = "KAFKAFORM_MODULE_SOURCES"
"""The sources that may be fetched if the files are not trusted, separated by commas."""


class RefCommit(Struct, frozen=True):
    """What a ref of a repository is now."""

    kind: str
    """tag, branch or commit."""
    commit: str


def find_commit(package: Package) -> RefCommit:
    """The commit of the package's ref. Raises UnreadableModule."""
    ref = package.ref
    if re.fullmatch(_COMMIT, ref):
        return RefCommit("commit", ref)
    kinds = {f"refs/tags/{ref}": "tag", f"refs/heads/{ref}": "branch"}
    if ref.startswith("refs/"):
        kinds = {ref: "tag" if ref.startswith("refs/tags/") else "branch"}
    with _open_repository(package) as run:
        # `^{}` is the commit behind an annotated tag.
        patterns = [pattern for name in kinds for pattern in (name, f"{name}^{{}}")]
        text = run(("ls-remote", "--quiet", "--", package.url, *patterns), ASK_SECONDS).decode()
    lines = [line.partition("\t") for line in text.splitlines()]
    listed = {name: commit for commit, _, name in lines}
    matches = [
        RefCommit(kind, listed.get(f"{name}^{{}}") or listed[name])
        for name, kind in kinds.items()
        if name in listed
    ]
    if len(matches) > 1:
        raise UnreadableModule(
            f"{ref} is a tag and a branch of the repository.",
            f"Write ref=refs/tags/{ref} or ref=refs/heads/{ref}.",
        )
    if not matches or not re.fullmatch(_COMMIT, matches[0].commit):
        raise UnreadableModule(
            f"The repository has no tag and no branch {ref}.",
            f"`git ls-remote {package.url}` lists them. A commit needs all of its 40 digits.",
        )
    return matches[0]


def fetch_entries(package: Package, commit: str) -> list[tuple[str, str, bytes]]:
    """Path, mode and content of everything in a commit; for a submodule, its commit is the content.
    Raises UnreadableModule."""
    with _open_repository(package, len(commit)) as run:
        fetch = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules")
        try:
            run((*fetch, "--depth=1", "--", package.url, commit), FETCH_SECONDS)
        except UnreadableModule:
            # Some servers give out branches and tags only.
            every = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
            run((*fetch, "--", package.url, *every), FETCH_SECONDS)
        try:
            kind = run(("cat-file", "-t", commit), ASK_SECONDS)
        except UnreadableModule:
            raise UnreadableModule(
                f"The repository has no commit {commit} any more.",
                "Ask its owner what became of it; `kafkaform init --upgrade` takes the commit that "
                f"{package.ref} is now.",
            ) from None
        if kind.strip() != b"commit":
            raise UnreadableModule(
                f"{commit} is not a commit.", "Write a tag, a branch or a whole commit as ref."
            )
        listed = list(_list_tree(run(("ls-tree", "-rzl", "--full-tree", commit), ASK_SECONDS)))
        _check_size(listed)
        names = [name for mode, name, _, _ in listed if mode != SUBMODULE]
        batch = run(("cat-file", "--batch"), ASK_SECONDS, "".join(f"{n}\n" for n in names).encode())
        return list(_split_batch(batch, listed))


def _list_tree(output: bytes) -> Iterator[tuple[str, str, int, str]]:
    """Mode, object, size and path of each entry."""
    for line in output.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, name, size = about.decode().split()
        try:
            yield mode, name, 0 if size == "-" else int(size), path.decode()
        except UnicodeDecodeError:
            raise UnreadableModule(
                "The repository has a file whose name is not UTF-8.", "Its owner has to rename it."
            ) from None


def _check_size(listed: Collection[tuple[str, str, int, str]]) -> None:
    size = sum(item[2] for item in listed)
    if len(listed) > LIMITS.files or size > ALL_FILES_BYTES:
        raise UnreadableModule(
            f"The repository is too large: {len(listed):,} files with {size:,} bytes.",
            f"It can have {LIMITS.files:,} files and {ALL_FILES_BYTES:,} bytes. Keep modules in a "
            "repository of their own.",
        )


def _split_batch(
    batch: bytes, listed: Collection[tuple[str, str, int, str]]
) -> Iterator[tuple[str, str, bytes]]:
    """The contents that `cat-file --batch` has printed, in the order of the list."""
    at = 0
    for mode, name, size, path in listed:
        if mode == SUBMODULE:
            yield path, mode, name.encode()
            continue
        start = batch.index(b"\n", at) + 1
        if batch[at:start] != f"{name} blob {size}\n".encode():
            raise UnreadableModule(
                "git did not return its files.", "Run the command again, or update git."
            )
        yield path, LINK if mode == LINK else mode, batch[start : start + size]
        at = start + size + 1


class _Running:
    """A command of git, in a thread of its own.

    Signals are for the main thread. One that ends the command while a process is being started
    would leave that process running, if both were in the same thread.
    """

    def __init__(self, words: Sequence[str], folder: Path, url: str) -> None:
        self._words, self._folder, self._url = words, folder, url
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.over = Event()
        """Set if it has ended, or did not start."""
        self.code = 0
        self.output = b""
        self.said = b""
        """On the standard error."""
        self.fault: UnreadableModule | None = None
        """It did not start, or took too long."""

    def run(self, data: bytes, seconds: float) -> None:
        """Run it to its end. data: its standard input."""
        try:
            with subprocess.Popen(  # no shell; sources were checked
                self._words,
                cwd=self._folder,
                env=_make_environment(self._url, self._folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Without a terminal, ssh cannot ask a question that nobody would see.
                start_new_session=True,
            ) as self._process:
                if self._stopped:  # meanwhile
                    self.stop()
                self._communicate(self._process, data, seconds)
        except OSError as error:
            cause = (error.strerror or "").lower()
            self.fault = UnreadableModule(f"git cannot be run: {cause}.", "Check its installation.")
        finally:
            self.over.set()

    def _communicate(self, process: subprocess.Popen[bytes], data: bytes, seconds: float) -> None:
        try:
            self.output, self.said = process.communicate(data, seconds)
            self.code = process.returncode
        except subprocess.TimeoutExpired:
            self.stop()
            self.fault = UnreadableModule(
                f"git took more than {seconds:g} s and was ended.",
                "Try again, or find out with `git fetch` by hand what is slow.",
            )

    def stop(self) -> None:
        """End it, and what it has started, such as ssh: that is in its process group."""
        self._stopped = True
        if self._process is not None and self._process.returncode is None:
            # It can end between the look and the signal.
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)


class _Repository(Struct, frozen=True):
    """An empty repository in which git runs."""

    folder: Path
    package: Package
    program: str

    def __call__(self, words: Sequence[str], seconds: float, data: bytes = b"") -> bytes:
        """What a command of git prints. Raises UnreadableModule."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        running = _Running([self.program, *settings, *words], self.folder, self.package.url)
        try:
            Thread(target=running.run, args=(data, seconds)).start()
            while not running.over.wait(_LOOK_SECONDS):
                pass
        finally:
            running.stop()
            # The thread may still be starting git, and would not stop it if kafkaform ended now.
            running.over.wait(_REAP_SECONDS)
        if running.fault is not None:
            raise running.fault
        if running.code:
            advice = _ADVICE.format(self.package.url)
            raise UnreadableModule(f"git failed: {_summarise(running.said)}", advice)
        return running.output


@contextmanager
def _open_repository(package: Package, digits: int = 40) -> Iterator[_Repository]:
    """An empty repository, removed afterwards. digits: of its commits."""
    program = shutil.which("git")
    if program is None:
        raise UnreadableModule(
            "There is no program git.", "Install git, or add its folder to PATH."
        )
    with tempfile.TemporaryDirectory(prefix="kafkaform-git-", ignore_cleanup_errors=True) as folder:
        run = _Repository(Path(folder), package, program)
        form = ("--object-format=sha256",) if digits == 64 else ()
        run(("init", "--bare", "--quiet", "--template=", *form, folder), ASK_SECONDS)
        yield run


def _make_environment(url: str, folder: Path) -> dict[str, str]:
    variables = {name: text for name, text in os.environ.items() if not _DROPPED.fullmatch(name)}
    local = url.startswith("file:")
    return {
        **variables,
        "GIT_DIR": str(folder),
        # Rules such as `url.….insteadOf` can lead from https to ssh, and never to `ext`, which
        # runs programs.
        "GIT_ALLOW_PROTOCOL": "file" if local else "https:ssh",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }


def _summarise(output: bytes) -> str:
    """The first fault that git names, without credentials, which a rule of the user can add."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    faults = [line for line in lines if line.startswith(("fatal:", "error:"))]
    # If ssh fails, git only says that it could not read, and ssh has said why before.
    if faults and "Could not read from remote" in faults[0]:
        faults = lines
    reason = (faults or lines or ["it gives no reason"])[0]
    reason = re.sub(r"^(?:fatal|error|ssh): ", "", reason)
    return re.sub(r"//[^/@\s']+@", "//…@", reason)[:300].rstrip(".")


class Installation(Struct, frozen=True):
    """One run of `kafkaform init` over the modules of a configuration."""

    locked: Mapping[Package, Lock]
    """The lock file as it was."""
    upgrade: bool = False
    """Move each lock to what its ref is now."""
    readonly: bool = False
    """Fetch what is locked, and leave the lock file as it is."""
    sources: Sequence[str] | None = None
    """What may be fetched, if the files are not trusted; None: everything."""
    store: Folder = field(default_factory=open_store)
    used: dict[Package, Lock] = field(default_factory=dict)
    """The lock file as it should be."""
    actions: dict[Package, str] = field(default_factory=dict)
    """What was done, for a table."""
    warnings: list[Diagnostic] = field(default_factory=list)

    def open_package(self, package: Package) -> Snapshot:
        """The files of a repository, fetched if they are missing. Raises UnreadableModule."""
        lock = self.locked.get(package)
        if lock is None and self.readonly:
            raise UnreadableModule(
                f"{LOCK_FILE} has no entry for it, and only locked modules are fetched here.",
                f"Run `kafkaform init` where you trust the files, and commit {LOCK_FILE}.",
            )
        if lock is not None and not self.upgrade:
            snapshot = self._load_complete(lock)
            return self._keep(package, lock) if snapshot else self._fetch_locked(package, lock)
        now = find_commit(package)
        if lock is not None and now.commit == lock.commit and self._load_complete(lock):
            return self._keep(package, lock)
        if lock is not None and now.commit != lock.commit and now.kind == "tag":
            self._warn_moved(package, lock, now.commit, "The lock file has the new commit now.")
        return self._fetch_new(package, lock, now.commit)

    def list_removed(self) -> Iterator[Package]:
        """The entries of the lock file that no module needs any more."""
        return (package for package in self.locked if package not in self.used)

    def render_lock_file(self) -> bytes | None:
        """What the lock file should contain; None if it stays as it is."""
        changes = not self.readonly and self.used != dict(self.locked)
        return render_locks(self.used) if changes else None

    def _load_complete(self, lock: Lock) -> Snapshot | None:
        try:
            snapshot = load_snapshot(self.store, lock)
        except UnreadableModule:
            return None
        return snapshot if is_complete(snapshot) else None

    def _keep(self, package: Package, lock: Lock) -> Snapshot:
        return self._use(package, lock, f"{_shorten(lock.commit)}, as locked")

    def _fetch_locked(self, package: Package, lock: Lock) -> Snapshot:
        """Fetch what the lock file pins, and nothing else."""
        self._refuse_other_sources(package)
        try:
            now = find_commit(package)
        except UnreadableModule:  # the commit can be there without the ref
            now = RefCommit("", lock.commit)
        if now.kind == "tag" and now.commit != lock.commit:
            self._warn_moved(
                package,
                lock,
                now.commit,
                "The locked commit is used; `kafkaform init --upgrade` would take the new one.",
            )
        digest = self._store(package, lock.commit)
        if digest != lock.sha256:
            raise make_content_fault(lock.commit)
        return self._use(package, lock, f"{_shorten(lock.commit)}, fetched as locked")

    def _fetch_new(self, package: Package, before: Lock | None, commit: str) -> Snapshot:
        digest = self._store(package, commit)
        lock, moved = Lock(package.source, package.ref, commit, digest), ""
        if before is not None and before.commit != commit:
            moved = f"{_shorten(before.commit)} → "
        elif before is not None and before.sha256 != digest:
            raise make_content_fault(commit)
        action = "upgraded" if moved else "fetched" if before else "fetched and locked"
        return self._use(package, lock, f"{moved}{_shorten(commit)}, {action}")

    def _store(self, package: Package, commit: str) -> str:
        entries = fetch_entries(package, commit)
        return store_snapshot(self.store, package.source, commit, entries)

    def _use(self, package: Package, lock: Lock, action: str) -> Snapshot:
        self.used[package], self.actions[package] = lock, action
        return load_snapshot(self.store, lock)

    def _refuse_other_sources(self, package: Package) -> None:
        # A prefix without a slash would allow acme-forged with acme.
        if self.sources is not None and not any(
            package.source == source or (source.endswith("/") and package.source.startswith(source))
            for source in self.sources
        ):
            raise UnreadableModule(
                f"It is not on this computer, and {SOURCES} does not allow fetching it.",
                f"Whoever runs this sets {SOURCES} to the allowed sources, such as "
                "git::https://git.example/acme/ for all below it, or restores the cache.",
            )

    def _warn_moved(self, package: Package, lock: Lock, commit: str, action: str) -> None:
        self.warnings.append(
            Diagnostic(
                Severity.WARNING,
                f"The tag {package.ref} was at {_shorten(lock.commit)}, "
                f"and is at {_shorten(commit)} now",
                f"Tags of {package.source} should never move: somebody may have replaced what was "
                f"reviewed. {action}",
                advice="Ask the owner of the repository, and read what has changed.",
            )
        )


def _shorten(commit: str) -> str:
    return commit[:12]


def read_sources(text: str | None) -> tuple[str, ...]:
    """The sources that KAFKAFORM_MODULE_SOURCES lists. One that ends in a slash stands for all
    repositories below."""
    return tuple(source.strip() for source in (text or "").split(",") if source.strip())
