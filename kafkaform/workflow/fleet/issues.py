"""Tell the owners of unused topics by issues of the project whose pipeline runs, on GitHub or
GitLab: one open issue for each owner, which later notices bring up to date, and which is closed
when none of the owner's topics is left.

An issue is found by the hidden mark in its first line, among those that the token's user has
opened, so that nobody else's issue is ever changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ...core.errors import UsageError
from ...core.resource import FaultClass
from ...core.secret import Secret
from ...provider.block_checks import is_safe_url
from ...provider.http.client import HttpClient
from ...provider.http.exchange import AnswerLost, Call, HttpAnswer, NotSent, make_fault
from ...provider.http.settings import HttpSettings
from .notices import Channel, MaybeDelivered, NotDelivered, OwnerNotice

PAGE = 100
"""Issues of a page, the most that GitHub and GitLab give."""
MOST_PAGES = 100
_PROJECT = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)


class Forge(Struct, frozen=True):
    """How the issues of a forge are listed and written."""

    sign: str
    """The variable of the environment that says that a job of the forge runs."""
    address: str
    """The variable with the address of the API; `project`, `tokens`: those with these."""
    project: str
    tokens: tuple[str, ...]
    path: str
    """Of the issues, with the project in it."""
    own: Mapping[str, str]
    """The query that lists the open issues of the token's user."""
    number: str
    """The member of an issue with its number; `text`: that with its text."""
    text: str
    edit: str
    """The method that changes an issue; `close`: the members that close it, too."""
    close: Mapping[str, str]
    header: str
    """The header with the token, and what is written before it."""
    scheme: str = ""


FORGES = (
    Forge(
        "GITHUB_ACTIONS",
        "GITHUB_API_URL",
        "GITHUB_REPOSITORY",
        ("GITHUB_TOKEN",),
        "/repos/{}/issues",
        # Who writes with the token of a job.
        {"state": "open", "creator": "github-actions[bot]"},
        "number",
        "body",
        "PATCH",
        {"state": "closed"},
        "Authorization",
        "Bearer ",
    ),
    Forge(
        "GITLAB_CI",
        "CI_API_V4_URL",
        "CI_PROJECT_ID",
        ("KAFKA_REVIEW_TOKEN",),
        "/projects/{}/issues",
        {"state": "opened", "scope": "created_by_me"},
        "iid",
        "description",
        "PUT",
        {"state_event": "close"},
        "PRIVATE-TOKEN",
    ),
)


class _Project(Struct, frozen=True):
    """The project of a job."""

    forge: Forge
    settings: HttpSettings
    path: str
    host: str


def make_issue_channel(environment: Mapping[str, str]) -> Channel:
    """Open or update one issue for each owner. Raises UsageError: no job of a pipeline runs, or it
    has no token."""
    forge = next((forge for forge in FORGES if environment.get(forge.sign)), None)
    if forge is None:
        raise UsageError(
            "--tell-issue works only in a job of GitHub Actions or GitLab CI",
            "Use --tell-file or --tell-webhook elsewhere.",
        )
    token = next(filter(None, map(environment.get, forge.tokens)), None)
    if not token:
        raise UsageError(
            "--tell-issue has no token for issues",
            f"Give the job a token that may write issues in {' or '.join(forge.tokens)}.",
        )
    address, project = environment.get(forge.address, ""), environment.get(forge.project, "")
    if not is_safe_url(address) or not _PROJECT.fullmatch(project):
        raise UsageError(
            f"{forge.address} and {forge.project} do not name the project of this job",
            "The runner sets both; leave them as they are.",
        )
    settings = HttpSettings(
        (address.rstrip("/"),),
        concurrency=1,
        headers={forge.header: Secret(forge.scheme + token)},
    )
    host = urlsplit(address).hostname or ""
    target = _Project(forge, settings, forge.path.format(project), host)
    return Channel("issue", partial(_write_issue, target), partial(_close_issue, target))


def _make_mark(owner: str | None) -> str:
    return f"<!-- kafkaform:unused:{sha256((owner or '').encode()).hexdigest()[:16]} -->"


def _make_text(forge: Forge, notice: OwnerNotice) -> dict[str, str]:
    mark = _make_mark(notice.owner)
    return {"title": notice.title, forge.text: f"{mark}\n{notice.markdown}"}


def _close_issue(project: _Project, notice: OwnerNotice) -> str:
    """Return nothing if the owner has no open issue."""
    forge = project.forge
    with closing(HttpClient(project.settings)) as client:
        number = _find_issue(client, project, _make_mark(notice.owner))
        if number is None:
            return ""
        text = {**_make_text(forge, notice), **forge.close}
        _send(client, Call(forge.edit, f"{project.path}/{number}", text), project.host)
    return f"issue {number} at {project.host}, which is closed now"


def _write_issue(project: _Project, notice: OwnerNotice) -> str:
    mark, forge = _make_mark(notice.owner), project.forge
    text = _make_text(forge, notice)
    with closing(HttpClient(project.settings)) as client:
        number = _find_issue(client, project, mark)
        if number is None:
            call = Call("POST", project.path, text)
        else:
            call = Call(forge.edit, f"{project.path}/{number}", text)
        answer = _send(client, call, project.host)
    written = answer.body if isinstance(answer.body, dict) else {}
    return f"issue {written.get(forge.number, number)} at {project.host}"


def _find_issue(client: HttpClient, project: _Project, mark: str) -> int | None:
    """Return the number of the issue that begins with this mark; None: there is none."""
    for page in range(1, MOST_PAGES + 1):
        query = {**project.forge.own, "per_page": str(PAGE), "page": str(page)}
        answer = _send(client, Call("GET", project.path, query=query, reads=True), project.host)
        issues: Any = answer.body
        if not isinstance(issues, list) or not all(isinstance(issue, dict) for issue in issues):
            raise NotDelivered(f"{project.host} did not list its issues")
        for issue in issues:
            if str(issue.get(project.forge.text) or "").startswith(mark):
                return int(issue[project.forge.number])
        if len(issues) < PAGE:
            return None
    # A second issue of the same owner would be worse than none.
    raise NotDelivered(
        f"{project.host} lists more than {PAGE * MOST_PAGES:,} open issues of this token's user"
    )


def _send(client: HttpClient, call: Call, host: str) -> HttpAnswer:
    """Return a successful answer. Raises NotDelivered, MaybeDelivered."""
    no_answer = NotDelivered if call.reads else MaybeDelivered
    try:
        answer = client.send(call)
    except NotSent as error:
        raise NotDelivered(f"{host}: {error.cause}") from None
    except AnswerLost as error:
        raise no_answer(f"{host}: {error.cause}") from None
    if answer.succeeded:
        return answer
    kind = make_fault(answer, {}, call).kind
    problem = no_answer if kind is FaultClass.AMBIGUOUS else NotDelivered
    raise problem(f"{host} answered {call.method} of issues with {answer.status}")
