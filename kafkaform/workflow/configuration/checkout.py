"""Ask git about a checkout: its files, what changed since a commit, and files of that commit. No
program and no filter of the checkout runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ...core.errors import UsageError

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
