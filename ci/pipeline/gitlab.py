"""GitLab CI: the REST API, and a code quality report in place of annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .diagnostics import Diagnostic, render_code_quality, render_text
from .forge import (
    UNPLANNED,
    Note,
    ReviewedFiles,
    check_before,
    find_note,
    make_branch_reference,
)
from .job import JobError, Mode, References
from .rest import Api, Missing, repeat_if_unavailable

MODES = {"merge_request_event": Mode.PLAN, "push": Mode.APPLY, "schedule": Mode.DRIFT}
"""The source of a pipeline -> mode. A run by hand plans, or applies if it has an approval."""


@dataclass(frozen=True)
class GitLab:
    """A job of GitLab CI."""

    api: Api
    environ: Mapping[str, str]
    out: str
    """The folder of the job's files in the project, which its artifacts keep."""

    @property
    def project(self) -> str:
        return f"/projects/{int(self.environ['CI_PROJECT_ID'])}"

    def choose_mode(self) -> Mode:
        source = self.environ["CI_PIPELINE_SOURCE"]
        if source == "web":
            return Mode.APPLY if self.environ.get("PIPELINE_APPROVAL") else Mode.PLAN
        if source not in MODES:
            raise JobError(f"The pipeline source {source} does not say what to do.")
        return MODES[source]

    def find_references(self) -> References:
        target = self.environ.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "")
        before = check_before(self.environ.get("CI_COMMIT_BEFORE_SHA", ""))
        return References(
            make_branch_reference(target) if target else before,
            make_branch_reference(self.environ["CI_DEFAULT_BRANCH"]),
        )

    # ── the reviewed plan ───────────────────────────────────────────────────────────────

    @repeat_if_unavailable
    def find_reviewed_files(self, names: Sequence[str]) -> ReviewedFiles:
        number = self._find_merged()
        job = self._find_plan_job(number)
        files = f"{self.project}/jobs/{job}/artifacts/{self.out}"
        try:
            contents = {name: self.api.download(f"{files}/{name}") for name in names}
        except Missing:
            raise JobError(UNPLANNED, 4) from None
        return ReviewedFiles(contents, number)

    def _find_merged(self) -> int:
        """The number of the merge request that became this commit: by a merge, a squash or a
        fast-forward."""
        sha = self.environ["CI_COMMIT_SHA"]
        for one in self.api.send("GET", f"{self.project}/repository/commits/{sha}/merge_requests"):
            results = (one["merge_commit_sha"], one["squash_commit_sha"], one["sha"])
            if one["state"] == "merged" and sha in results:
                return int(one["iid"])
        raise JobError(UNPLANNED, 4)

    def _find_plan_job(self, number: int) -> int:
        """The job that planned the last state of a merge request. An older plan does not count."""
        # The list also has the pipelines of the branch, in which nothing is planned.
        own = f"refs/merge-requests/{number}/"
        pipelines = self.api.read_all(f"{self.project}/merge_requests/{number}/pipelines")
        numbers = [int(one["id"]) for one in pipelines if one["ref"].startswith(own)]
        newest = max(numbers, default=None)
        if newest is not None:
            wanted = self.environ["PIPELINE_PLAN_JOB"]
            for job in self.api.read_all(f"{self.project}/pipelines/{newest}/jobs?scope=success"):
                if job["name"] == wanted:
                    return int(job["id"])
        raise JobError(UNPLANNED, 4)

    # ── notes and issues ────────────────────────────────────────────────────────────────

    @repeat_if_unavailable
    def comment(self, mark: str, body: str, *, is_new: bool = True) -> None:
        if "CI_MERGE_REQUEST_IID" not in self.environ:  # a run by hand
            return
        notes = f"{self.project}/merge_requests/{int(self.environ['CI_MERGE_REQUEST_IID'])}/notes"
        note = find_note([*self._list_own(notes, "id", "body")], mark)
        if note is None and is_new:
            self.api.send("POST", notes, {"body": body})
        elif note is not None:
            self.api.send("PUT", f"{notes}/{note.id}", {"body": body})

    @repeat_if_unavailable
    def open_issue(self, mark: str, title: str, body: str) -> None:
        issue = self._find_issue(mark)
        text = {"title": title, "description": body}
        if issue is None:
            self.api.send("POST", f"{self.project}/issues", text)
        else:
            self.api.send("PUT", f"{self.project}/issues/{issue.id}", text)

    @repeat_if_unavailable
    def close_issue(self, mark: str) -> None:
        if (issue := self._find_issue(mark)) is not None:
            path = f"{self.project}/issues/{issue.id}"
            self.api.send("PUT", path, {"state_event": "close"})

    def _find_issue(self, mark: str) -> Note | None:
        path = f"{self.project}/issues?state=opened&scope=created_by_me"
        return find_note([*self._list_own(path, "iid", "description")], mark)

    def _list_own(self, path: str, id_name: str, text_name: str) -> Iterator[Note]:
        """What the pipeline wrote itself: anybody can write a note with its mark."""
        me: Any = self.api.send("GET", "/user")
        for one in self.api.read_all(path):
            if one["author"]["id"] == me["id"]:
                yield Note(int(one[id_name]), one[text_name] or "")

    # ── the run ─────────────────────────────────────────────────────────────────────────

    def annotate(self, diagnostics: Sequence[Diagnostic], title: str) -> None:
        for diagnostic in diagnostics:
            print(render_text(diagnostic), flush=True)
        Path(self.out, "code-quality.json").write_text(render_code_quality(diagnostics, title))

    def summarize(self, text: str) -> None:
        """GitLab has no summaries: the note and the log say the same."""

    def set_outputs(self, outputs: dict[str, str]) -> None:
        """Later jobs of GitLab read the artifacts."""

    @contextmanager
    def mute_commands(self) -> Iterator[None]:
        # GitLab's logs know no commands but ANSI escapes, which kafkaform never prints.
        yield

    def describe_run(self) -> str:
        sha, address = self.environ["CI_COMMIT_SHA"], self.environ["CI_JOB_URL"]
        return f"Commit {sha[:12]}, [job {int(self.environ['CI_JOB_ID'])}]({address})"


def open_gitlab(environ: Mapping[str, str], token: str) -> GitLab:
    """The job that this environment describes."""
    headers = {"PRIVATE-TOKEN": token, "User-Agent": "kafkaform"}
    return GitLab(Api(environ["CI_API_V4_URL"], headers), environ, environ["PIPELINE_OUT"])
