"""GitHub Actions: workflow commands, and the REST API."""

from __future__ import annotations

import io
import re
import secrets
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .diagnostics import Diagnostic, render_command
from .forge import (
    UNPLANNED,
    Note,
    ReviewedFiles,
    check_before,
    find_note,
    make_branch_reference,
)
from .job import JobError, Mode, References
from .rest import LARGEST_DOWNLOAD, Api, repeat_if_unavailable

BOT = "github-actions[bot]"
"""Who writes with the token of a job."""
MODES = {
    "pull_request": Mode.PLAN,
    "merge_group": Mode.PLAN,
    "push": Mode.APPLY,
    "schedule": Mode.DRIFT,
}
"""Event -> mode. A run by hand plans, or applies if it has an approval."""
BY_HAND = "workflow_dispatch"
_PULL_REFS = re.compile(r"refs/pull/(\d+)/merge|refs/heads/gh-readonly-queue/.+/pr-(\d+)-[0-9a-f]+")
"""The refs of a pull request and of its place in a merge queue."""


@dataclass(frozen=True)
class GitHub:
    """A job of GitHub Actions."""

    api: Api
    environ: Mapping[str, str]
    artifact: str
    """The name of the artifact that the plan's job keeps."""

    @property
    def repository(self) -> str:
        return f"/repos/{self.environ['GITHUB_REPOSITORY']}"

    def choose_mode(self) -> Mode:
        event = self.environ["GITHUB_EVENT_NAME"]
        if event == BY_HAND:
            return Mode.APPLY if self.environ.get("PIPELINE_APPROVAL") else Mode.PLAN
        if event not in MODES:
            raise JobError(f"The event {event} does not say what to do: give `mode`.")
        return MODES[event]

    def find_references(self) -> References:
        event, default = self.environ["GITHUB_EVENT_NAME"], self.environ.get("PIPELINE_DEFAULT", "")
        base = self.environ.get("PIPELINE_BASE", "")
        return References(
            check_before(base) if event == "push" else make_branch_reference(base) if base else "",
            make_branch_reference(default) if default else "HEAD",
        )

    # ── the reviewed plan ───────────────────────────────────────────────────────────────

    @repeat_if_unavailable
    def find_reviewed_files(self, names: Sequence[str]) -> ReviewedFiles:
        # A merge queue plans the commit that becomes the branch's; its group can contain several
        # pull requests, and their plans do not count.
        sha = self.environ["GITHUB_SHA"]
        artifact, number = self._find_artifact("merge_group", sha), None
        if artifact is None:
            number, head = self._find_merged_pull()
            artifact = self._find_artifact("pull_request", head)
        if artifact is None:
            raise JobError(UNPLANNED, 4)
        return ReviewedFiles(self._download(artifact, names), number)

    def _find_artifact(self, event: str, head: str) -> int | None:
        """The artifact of the newest run that planned this commit for this event."""
        path = f"{self.repository}/actions/runs"
        answer = self.api.send("GET", f"{path}?event={event}&head_sha={head}&per_page=100")
        runs = [run for run in answer["workflow_runs"] if self._is_own(run, event, head)]
        for number in sorted((int(run["id"]) for run in runs), reverse=True):
            answer = self.api.send("GET", f"{path}/{number}/artifacts?name={self.artifact}")
            artifacts = [
                int(artifact["id"])
                for artifact in answer["artifacts"]
                if artifact["name"] == self.artifact and not artifact["expired"]
            ]
            if artifacts:
                return max(artifacts)
        return None

    def _find_merged_pull(self) -> tuple[int, str]:
        """The number and the last commit of the pull request that became this commit: by a merge, a
        squash or a rebase, GitHub calls the result `merge_commit_sha`."""
        sha = self.environ["GITHUB_SHA"]
        pulls = self.api.send("GET", f"{self.repository}/commits/{sha}/pulls?per_page=100")
        for pull in pulls:
            if pull["merged_at"] and pull["merge_commit_sha"] == sha:
                return int(pull["number"]), _check_sha(pull["head"]["sha"])
        raise JobError(UNPLANNED, 4)

    def _is_own(self, run: Mapping[str, Any], event: str, head: str) -> bool:
        """Whether a run is of this workflow file, of that event and commit, and not of a fork."""
        # GITHUB_WORKFLOW_REF is `owner/name/.github/workflows/kafka.yml@refs/heads/main`.
        ours = self.environ["GITHUB_WORKFLOW_REF"].partition("@")[0]
        repository = self.environ["GITHUB_REPOSITORY"]
        return (
            run["conclusion"] == "success"
            and run["event"] == event
            and run["head_sha"] == head
            and run["head_repository"]["full_name"] == repository
            and f"{repository}/{run['path'].partition('@')[0]}" == ours
        )

    def _download(self, artifact: int, names: Sequence[str]) -> dict[str, bytes]:
        path = f"{self.repository}/actions/artifacts/{artifact}/zip"
        data = self.api.download_elsewhere(path)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                return {name: _read_member(archive, name) for name in names}
        except (zipfile.BadZipFile, KeyError) as error:
            raise JobError(f"The artifact of the plan is damaged: {error}.", 4) from None

    # ── comments and issues ─────────────────────────────────────────────────────────────

    @repeat_if_unavailable
    def comment(self, mark: str, body: str, *, is_new: bool = True) -> None:
        pull = _PULL_REFS.fullmatch(self.environ.get("GITHUB_REF", ""))
        if pull is None:  # a run by hand
            return
        comments = f"{self.repository}/issues/{pull[1] or pull[2]}/comments"
        note = find_note([*self._list_own(comments)], mark)
        if note is None and is_new:
            self.api.send("POST", comments, {"body": body})
        elif note is not None:
            path = f"{self.repository}/issues/comments/{note.id}"
            self.api.send("PATCH", path, {"body": body})

    @repeat_if_unavailable
    def open_issue(self, mark: str, title: str, body: str) -> None:
        issue = self._find_issue(mark)
        text = {"title": title, "body": body}
        if issue is None:
            self.api.send("POST", f"{self.repository}/issues", text)
        else:
            self.api.send("PATCH", f"{self.repository}/issues/{issue.id}", text)

    @repeat_if_unavailable
    def close_issue(self, mark: str) -> None:
        if (issue := self._find_issue(mark)) is not None:
            path = f"{self.repository}/issues/{issue.id}"
            self.api.send("PATCH", path, {"state": "closed", "state_reason": "completed"})

    def _find_issue(self, mark: str) -> Note | None:
        path = f"{self.repository}/issues?state=open&creator=github-actions%5Bbot%5D"
        return find_note([*self._list_own(path, "number")], mark)

    def _list_own(self, path: str, id_name: str = "id") -> Iterator[Note]:
        """What the pipeline wrote itself: anybody can write a comment with its mark."""
        for one in self.api.read_all(path):
            user = one["user"] or {}
            if user.get("login") == BOT and user.get("type") == "Bot":
                yield Note(int(one[id_name]), one["body"] or "")

    # ── the run ─────────────────────────────────────────────────────────────────────────

    def annotate(self, diagnostics: Sequence[Diagnostic], title: str) -> None:
        for diagnostic in diagnostics:
            print(render_command(diagnostic, title), flush=True)

    def summarize(self, text: str) -> None:
        with Path(self.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def set_outputs(self, outputs: dict[str, str]) -> None:
        assert not any("\n" in text or "\r" in text for text in outputs.values())
        with Path(self.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
            file.writelines(f"{name}={text}\n" for name, text in outputs.items())

    @contextmanager
    def mute_commands(self) -> Iterator[None]:
        # Only who knows this token can end the block.
        token = secrets.token_hex(32)
        print(f"::stop-commands::{token}", flush=True)
        try:
            yield
        finally:
            print(f"\n::{token}::", flush=True)

    def describe_run(self) -> str:
        at = self.environ
        run = f"{at['GITHUB_REPOSITORY']}/actions/runs/{int(at['GITHUB_RUN_ID'])}"
        # GITHUB_SHA of a pull request is its merge with the target branch, which nobody knows.
        sha = _check_sha(at.get("PIPELINE_HEAD") or at["GITHUB_SHA"])
        return f"Commit {sha[:12]}, [run {at['GITHUB_RUN_ID']}]({at['GITHUB_SERVER_URL']}/{run})"


def open_github(environ: Mapping[str, str], token: str, artifact: str) -> GitHub:
    """The job that this environment describes."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "kafkaform",
    }
    return GitHub(Api(environ["GITHUB_API_URL"], headers), environ, artifact)


def _check_sha(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40,64}", text):
        raise JobError(f"{text!r} is not a commit.")
    return text


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file of an archive, in memory: nothing is unpacked, so no name in it is a path."""
    if archive.getinfo(name).file_size > LARGEST_DOWNLOAD:
        raise JobError("A file of the plan's job is larger than 64 MiB.")
    return archive.read(name)
