"""Fetch the repositories that modules come from, and pin them in the lock file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from ...core.diagnostics import Diagnostic, Severity
from ...core.objects import Folder
from ...language.declare.module_sources import Package, UnreadableModule
from .git import RefCommit, fetch_entries, find_commit
from .lock_file import LOCK_FILE, Lock, render_locks
from .snapshots import (
    Snapshot,
    is_complete,
    load_snapshot,
    make_content_fault,
    open_store,
    store_snapshot,
)

SOURCES = "KAFKAFORM_MODULE_SOURCES"
"""The sources that may be fetched if the files are not trusted, separated by commas."""


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
    done: dict[Package, str] = field(default_factory=dict)
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
        self.used[package], self.done[package] = lock, action
        return load_snapshot(self.store, lock)

    def _refuse_other_sources(self, package: Package) -> None:
        if self.sources is not None and not any(
            _is_allowed(package, source) for source in self.sources
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


def _is_allowed(package: Package, source: str) -> bool:
    # A prefix without a slash would allow acme-forged with acme.
    return package.source == source or (source.endswith("/") and package.source.startswith(source))


def _shorten(commit: str) -> str:
    return commit[:12]


def read_sources(text: str | None) -> tuple[str, ...]:
    """The sources that KAFKAFORM_MODULE_SOURCES lists. One that ends in a slash stands for all
    repositories below."""
    return tuple(source.strip() for source in (text or "").split(",") if source.strip())
