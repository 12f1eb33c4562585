"""Owners of unused topics are told once: by files, webhooks, issues; every notice is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import StorageError
from kafkaform.fleet.answers.unused import NoticeOutcome
from kafkaform.inventory.landing import open_place
from kafkaform.workflow.fleet import notices
from kafkaform.workflow.fleet.channels import TOKEN_VARIABLE
from kafkaform.workflow.fleet.issues import PAGE

from ...kit.commands.fixtures import here as here
from ...kit.fleet.unused import FLEET, TOLD, World, tell
from ...kit.fleet.unused import world as world
from ...kit.http.server import Request, serving
from ...kit.pipelines import github, gitlab
from ...kit.pipelines.server import TOKEN, Answer
from ...kit.pipelines.server import serving as serving_forge

# ── telling ─────────────────────────────────────────────────────────────────────────────


def test_nobody_is_told_twice_of_the_same(world: World) -> None:
    """A topic that is new goes to its owner; --again repeats everything."""
    tell(world)
    assert tell(world) == ""
    world.add("carts")
    world.build(days=1)
    assert "shop: 1 topic, told" in tell(world)
    assert "shop: 2 topics, told" in tell(world, *TOLD, "--again")
    text = (world.here.path / "told/shop.md").read_text()
    assert text.count("| `eu` |") == 2
    assert world.find("clicks")["until"] == "2026-12-06T05:00:00Z", "the first notice counts"


def test_each_owner_gets_a_file_that_says_everything(world: World) -> None:
    world.add("audit|log", owner="a/b")
    world.add("lost", owner=None, bytes=None, evidence=["x\ny"])
    world.build()
    tell(world)
    texts = {path.name: path.read_text() for path in (world.here.path / "told").iterdir()}
    assert texts.keys() == {"shop.md", "nobody.md", "a-b-c14cddc0.md"}
    assert "2026-12-06" in texts["shop.md"]
    assert "nothing read since 2026-08-01" in texts["shop.md"]
    assert 'topic   = "clicks"' in texts["shop.md"]
    assert "audit\\|log" in texts["a-b-c14cddc0.md"]
    assert "x\\ny" in texts["nobody.md"]
    assert "clicks" not in texts["nobody.md"]


def test_a_file_says_when_nothing_is_left(world: World) -> None:
    """Once, and only a file that is there."""
    tell(world)
    world.topics["clicks"]["verdict"] = "in_use"
    world.build(days=1)
    assert tell(world, "--tell-file", "elsewhere") == ""
    file = world.here.path / "told/shop.md"
    assert f"shop: none of its topics is left, told by {file.relative_to(world.here.path)}" in (
        tell(world)
    )
    assert "There is nothing left to do" in file.read_text()
    assert tell(world) == ""
    file.write_text("# The shop\n")
    assert tell(world) == "", "somebody else's file of this name"
    assert file.read_text() == "# The shop\n"
    assert len(notices.read_notices(open_place("data"))) == 1


def test_what_is_sent_is_recorded_before(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that dies while it sends leaves a notice of which nobody knows whether it arrived: it
    is not repeated, and it does not count as told."""

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkaform.workflow.fleet.channels.save_file", die)
    assert world.here.run("fleet", "unused", *TOLD).code == 130
    monkeypatch.undo()
    world_clock(world, monkeypatch)
    (notice,) = notices.read_notices(open_place("data"))
    assert (notice.topic, notice.outcome) == ("clicks", NoticeOutcome.UNKNOWN)
    assert "nobody knows whether the file of 2026-11-22 arrived" in world.find("clicks")["next"]
    assert tell(world) == ""
    assert "told by" in tell(world, *TOLD, "--again")
    assert world.find("clicks")["step"] == "told"


def world_clock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.now += timedelta(seconds=1)
    monkeypatch.chdir(world.here.path)
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: world.now.timestamp()))


def test_a_file_that_cannot_be_written_is_not_told(world: World) -> None:
    world.here.write("told", "a file")
    text = world.here.fails("fleet", "unused", *TOLD, code=5)
    assert "shop: 1 topic, NOT told: told: " in text
    assert world.find("clicks")["step"] == "candidate"
    (world.here.path / "told").unlink()
    world.now += timedelta(seconds=1)
    assert "told by told/shop.md" in tell(world)


def test_a_notice_that_cannot_be_recorded_is_not_sent(world: World) -> None:
    world.here.write("data/notices", "a file")
    world.here.fails("fleet", "unused", *TOLD, code=9)
    assert not (world.here.path / "told").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.jsonl", "{"),
        ("x.jsonl", '{"format":1}'),
        ("x.outcome.json", "[]"),
        ("x.outcome.json", '{"outcome":"told","at":"2026-11-22T05:00:00Z","format":2}'),
    ],
)
def test_damaged_notices_are_named(world: World, name: str, text: str) -> None:
    """Without them, an owner could be told twice, or a topic go on without a notice."""
    line = dict.fromkeys(("owner", "topic_id", "idle_since")) | {"evidence": []}
    line |= {"at": "2026-11-22T05:00:00Z", "channel": "file", "cluster": "eu", "topic": "clicks"}
    world.here.write("data/notices/x.jsonl", json.dumps(line) + "\n")
    assert len(notices.read_notices(open_place("data"))) == 1
    world.here.write(f"data/notices/{name}", text + "\n")
    with pytest.raises(StorageError, match=f"notices/{name} cannot be used"):
        notices.read_notices(open_place("data"))


# ── webhooks ────────────────────────────────────────────────────────────────────────────


def test_a_webhook_gets_one_request_for_each_owner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a bearer token from the environment; its answer need not be JSON."""
    monkeypatch.setenv(TOKEN_VARIABLE, "token-of-the-hook")
    world.add("lost", owner=None)
    world.build()
    with serving(lambda request: (200, "ok")) as served:
        text = tell(world, "--tell-webhook", f"{served.url}/services/secret-part?sig=secret-sig")
    assert "shop: 1 topic, told by the webhook at 127.0.0.1" in text
    assert [request.body["owner"] for request in served.asked] == [None, "shop"]
    (first, _) = served.asked
    assert (first.method, first.path) == ("POST", "/services/secret-part?sig=secret-sig")
    assert first.login == "Bearer token-of-the-hook"
    assert [topic["topic"] for topic in served.asked[1].body["topics"]] == ["clicks"]
    assert "Unused topics of `shop`" in served.asked[1].body["text"]
    files = "".join(path.read_text() for path in (world.here.path / "data/notices").iterdir())
    for secret in ("secret-part", "secret-sig", "token-of-the-hook"):
        assert secret not in text + files


@pytest.mark.parametrize(
    ("status", "code", "sentence"),
    [
        (404, 5, "NOT told: the webhook at 127.0.0.1 answered with 404"),
        (302, 5, "NOT told: the webhook at 127.0.0.1 answered with 302"),
        (429, 5, "NOT told: the webhook at 127.0.0.1 answered with 429"),
        (502, 6, "nobody knows whether it was told: the webhook at 127.0.0.1 answered with 502"),
    ],
)
def test_what_a_webhook_refuses_is_not_told(
    world: World, status: int, code: int, sentence: str
) -> None:
    """A refusal is tried again by the next run; an error that may come after the effect is not."""
    with serving(lambda request: (status, {"message": request.path})) as served:
        hook = ("--tell-webhook", f"{served.url}/secret-part")
        text = world.here.fails("fleet", "unused", *hook, code=code)
        assert sentence in text
        assert "secret-part" not in text
        world.now += timedelta(seconds=1)
        world.here.run("fleet", "unused", *hook)
    assert len(served.asked) == (2 if code == 5 else 1)


def test_one_owner_that_fails_keeps_no_other_from_being_told(world: World) -> None:
    world.add("lost", owner="ops")
    world.build()

    def answer(request: Request) -> tuple[int, Any]:
        return (400 if request.body["owner"] == "ops" else 200), {}

    with serving(answer) as served:
        document = world.list("--tell-webhook", served.url, code=5)
    assert {d["owner"]: d["outcome"] for d in document["deliveries"]} == {
        "ops": "failed",
        "shop": "told",
    }
    assert {t["topic"]: t["step"] for t in world.list()["topics"]} == {
        "lost": "candidate",
        "clicks": "told",
    }


def test_a_webhook_that_nobody_serves_is_not_told(world: World) -> None:
    with serving() as served:
        url = served.url
    assert "NOT told" in world.here.fails("fleet", "unused", "--tell-webhook", url, code=5)


def test_an_answer_that_is_lost_is_not_repeated(world: World) -> None:
    """The notice may have arrived; only --again sends it once more."""

    def hang_up(_: Request) -> tuple[int, Any]:
        raise ConnectionResetError

    with serving(hang_up) as served:
        hook = ("fleet", "unused", "--tell-webhook", served.url)
        assert "nobody knows whether it was told" in world.here.fails(*hook, code=6)
        world.here.done(*hook)
        assert len(served.asked) == 1
        world.now += timedelta(seconds=1)
        world.here.fails(*hook, "--again", code=6)
        assert len(served.asked) == 2


@pytest.mark.parametrize(
    "url", ["http://example.com/x", "https://u:p@example.com/x", "example.com", "https://"]
)
def test_an_unsafe_webhook_is_refused(world: World, url: str) -> None:
    text = world.here.fails("fleet", "unused", "--tell-webhook", url)
    assert "--tell-webhook is not an address that can be used" in text
    assert url not in text or url == "https://"
    assert not (world.here.path / "data/notices").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((*TOLD, "--propose", "p"), "--tell-file and --propose exclude each other"),
        (("--again",), "--again tells nobody by itself"),
        (("--root", "nowhere"), "there is no build yet"),
        (("--file", "none.hcl"), "none.hcl cannot be read"),
    ],
)
def test_wrong_flags_are_refused(world: World, flags: tuple[str, ...], sentence: str) -> None:
    assert sentence in " ".join(world.here.fails("fleet", "unused", *flags).split())


# ── issues ──────────────────────────────────────────────────────────────────────────────


@contextmanager
def open_forge(
    world: World, api: github.Api | gitlab.Api, variables: Mapping[str, str]
) -> Iterator[None]:
    """The environment of a job of this forge."""
    with serving_forge(api.web):
        for name, value in {"GITHUB_ACTIONS": "", "GITLAB_CI": "", **variables}.items():
            text = value.replace("ADDRESS", api.web.address)
            world.here.monkeypatch.setenv(name, text)
        yield


GITHUB = {
    **{"GITHUB_ACTIONS": "true", "GITHUB_API_URL": "ADDRESS", "GITHUB_TOKEN": TOKEN},
    "GITHUB_REPOSITORY": github.NAME,
}
GITLAB = {
    **{"GITLAB_CI": "true", "CI_API_V4_URL": "ADDRESS", "KAFKA_REVIEW_TOKEN": TOKEN},
    "CI_PROJECT_ID": "1",
}
FORGES = [
    pytest.param(github.Api, GITHUB, "body", id="github"),
    pytest.param(gitlab.Api, GITLAB, "description", id="gitlab"),
]


@pytest.mark.parametrize(("make_api", "variables", "member"), FORGES)
def test_each_owner_has_one_issue(
    world: World, make_api: Any, variables: Mapping[str, str], member: str
) -> None:
    """A later notice brings it up to date; what somebody else wrote is left alone."""
    api = make_api()
    with open_forge(world, api, variables):
        text = tell(world, "--tell-issue")
        assert "shop: 1 topic, told by issue 1 at 127.0.0.1" in text
        assert TOKEN not in text
        world.add("carts")
        world.build(days=1)
        assert "told by issue 1" in tell(world, "--tell-issue")
        world.add("lost", owner=None)
        world.build(days=1)
        assert "nobody: 1 topic, told by issue 2" in tell(world, "--tell-issue")
    first, second = api.issues.values()
    assert first["title"] == "Unused topics of shop: 2 topics"
    assert "`carts`" in first[member] and "`clicks`" in first[member]
    assert second["title"] == "Unused topics of nobody: 1 topic"
    assert all(asked.has_token for asked in api.web.asked)


@pytest.mark.parametrize(("make_api", "variables", "member"), FORGES)
def test_an_issue_is_closed_when_nothing_is_left(
    world: World, make_api: Any, variables: Mapping[str, str], member: str
) -> None:
    """Every run looks at what is open, so the second one finds nothing to close. A topic that is
    unused later gets a new issue."""
    api = make_api()
    world.add("lost", owner=None)
    world.build()
    with open_forge(world, api, variables):
        tell(world, "--tell-issue")
        world.topics["clicks"] |= {"verdict": "in_use", "evidence": ("read, as shown on 2026-11",)}
        world.build(days=1)
        text = tell(world, "--tell-issue")
        assert "shop: none of its topics is left, told by issue 2 at 127.0.0.1, which" in text
        assert "nobody" not in text
        assert tell(world, "--tell-issue") == ""
        world.add("clicks", idle_since=world.now)
        world.build(days=91)
        assert "shop: 1 topic, told by issue 3" in tell(world, "--tell-issue")
    lost, clicks, later = api.issues.values()
    assert clicks["state"] == "closed"
    assert clicks["title"] == "Unused topics of shop: none left"
    assert "| `clicks` | it is in use: read, as shown on 2026-11 |" in clicks[member]
    assert lost["state"] == later["state"] != "closed"


def _hide(world: World) -> None:
    world.cluster["status"] = "failed"


def _stop_watching(world: World) -> None:
    world.topics["clicks"] |= {"verdict": "insufficient_evidence", "evidence": ("a gap", "x")}


def _leave_another(world: World) -> None:
    world.topics["clicks"]["verdict"] = "in_use"
    world.add("carts")


@pytest.mark.parametrize("change", [_hide, _stop_watching, _leave_another])
def test_an_issue_stays_open_while_something_is_left_or_unknown(
    world: World, change: Callable[[World], None]
) -> None:
    """A cluster that was not read, and a use that was not watched, prove nothing."""
    api = github.Api()
    with open_forge(world, api, GITHUB):
        tell(world, "--tell-issue")
        change(world)
        world.build(days=1)
        text = world.here.run("fleet", "unused", "--tell-issue").text
    assert "none of its topics is left" not in text
    (issue,) = api.issues.values()
    assert issue["state"] == "open"


def test_a_reason_is_text_in_the_issue(world: World) -> None:
    """Whoever writes fleet.hcl cannot end the row, write a link or call somebody."""
    keep = 'keep {\n  topic  = "clicks"\n  until  = "2027-01-01"\n  reason = "a | [b](c) @mia"\n}\n'
    api = github.Api()
    with open_forge(world, api, GITHUB):
        tell(world, "--tell-issue")
        world.here.write("fleet.hcl", FLEET + keep)
        assert "none of its topics is left" in tell(world, "--tell-issue")
    (row,) = [line for line in api.issues[1]["body"].splitlines() if "clicks" in line]
    assert row.count("|") == 4
    assert "[b]" not in row and "@mia" not in row


@pytest.mark.parametrize("flags", [("--cluster", "eu"), ("--owner", "shop")])
def test_a_part_of_the_topics_closes_no_issue(world: World, flags: tuple[str, str]) -> None:
    """What else an owner has was not looked at."""
    api = github.Api()
    with open_forge(world, api, GITHUB):
        tell(world, "--tell-issue")
        world.topics["clicks"]["verdict"] = "in_use"
        world.build(days=1)
        assert tell(world, "--tell-issue", *flags) == ""
        assert api.issues[1]["state"] == "open"
        assert "none of its topics is left" in tell(world, "--tell-issue")


@pytest.mark.parametrize(
    ("route", "status", "code", "sentence"),
    [
        ("GET", 500, 5, "shop: none of its topics is left, NOT told: 127.0.0.1 answered GET"),
        ("PATCH", 403, 5, "shop: none of its topics is left, NOT told: 127.0.0.1 answered PATCH"),
        ("PATCH", 502, 6, "nobody knows whether it was told: 127.0.0.1 answered PATCH of issues "),
    ],
)
def test_an_issue_that_cannot_be_closed_is_named(
    world: World, route: str, status: int, code: int, sentence: str
) -> None:
    """The next run looks, and closes it."""
    api = github.Api()
    with open_forge(world, api, GITHUB):
        tell(world, "--tell-issue")
        world.topics["clicks"]["verdict"] = "in_use"
        world.build(days=1)
        routes = dict(api.web.routes)
        api.web.routes = {f"{route} .*": lambda *_: Answer(status), **routes}
        text = world.here.fails("fleet", "unused", "--tell-issue", code=code)
        assert sentence in " ".join(text.split())
        api.web.routes = routes
        assert "which is closed now" in tell(world, "--tell-issue")


@pytest.mark.parametrize(("make_api", "variables", "member"), FORGES)
@pytest.mark.parametrize(
    ("method", "status", "code"),
    [("GET", 500, 5), ("GET", 401, 5), ("POST", 403, 5), ("POST", 502, 6)],
)
def test_a_forge_that_fails_is_named(
    world: World,
    make_api: Any,
    variables: Mapping[str, str],
    member: str,
    method: str,
    status: int,
    code: int,
) -> None:
    """A failed look has written nothing; an error after a write may have come after the effect."""
    api = make_api()
    api.web.routes = {f"{method} .*": lambda *_: Answer(status), **api.web.routes}
    with open_forge(world, api, variables):
        text = world.here.fails("fleet", "unused", "--tell-issue", code=code)
    assert f"127.0.0.1 answered {method} of issues with {status}" in text
    assert not api.issues


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"message": "moved"}, "127.0.0.1 did not list its issues"),
        (["an issue"], "127.0.0.1 did not list its issues"),
        ([{"number": 7, "body": ""}] * PAGE, "127.0.0.1 lists more than 200 open issues"),
    ],
)
def test_a_list_that_is_none_or_has_no_end(
    world: World, monkeypatch: pytest.MonkeyPatch, body: object, sentence: str
) -> None:
    """Nothing is written, because the owner may have an issue that was not found."""
    monkeypatch.setattr("kafkaform.workflow.fleet.issues.MOST_PAGES", 2)
    api = github.Api()
    api.web.routes = {"GET .*": lambda *_: Answer(200, body), **api.web.routes}
    with open_forge(world, api, GITHUB):
        text = world.here.fails("fleet", "unused", "--tell-issue", code=5)
    assert sentence in " ".join(text.split())
    assert not api.issues


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({}, "--tell-issue works only in a job of GitHub Actions or GitLab CI"),
        ({**GITHUB, "GITHUB_TOKEN": ""}, "--tell-issue has no token for issues"),
        (
            {**GITHUB, "GITHUB_API_URL": "http://example.com"},
            "do not name the project of this job",
        ),
        ({**GITLAB, "CI_PROJECT_ID": "../../user"}, "do not name the project of this job"),
    ],
)
def test_an_issue_needs_a_job(world: World, variables: Mapping[str, str], sentence: str) -> None:
    with open_forge(world, github.Api(), variables):
        assert sentence in world.here.fails("fleet", "unused", "--tell-issue")
    assert not (world.here.path / "data/notices").exists()
