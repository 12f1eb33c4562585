"""The pages as functions of what was read: what they say, and that foreign text stays text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.audit.history import ToldChanges
from kafkaform.audit.index import LogIndex
from kafkaform.audit.journal import Journal
from kafkaform.core.change import PathChange
from kafkaform.core.errors import StorageError
from kafkaform.core.resource import Fault, FaultClass, Identity
from kafkaform.core.secret import MASK, watch_secrets
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import collect_types
from kafkaform.provider.registry import Registry
from kafkaform.state.model import MemoryBackend, Row, State
from kafkaform.window import access, objects, overview, page, plans, related, runs
from kafkaform.window import runs as log
from kafkaform.window.objects import ObjectFilter
from kafkaform.window.page import Cell, WindowPage, WindowSection, make_id, make_table, render_page
from kafkaform.window.runs import LogSurvey, RunEntry
from kafkaform.window.server import find_page
from kafkaform.workflow.stores import AUDIT_FILE, STATE_FILE, Store
from kafkaform_kafka.kinds.quota import resource_type as quotas

from ...kit.audit_story import (
    ORDERS,
    MemorySink,
    Ticking,
    begin,
    conclude,
    intend,
    records_of,
)
from ...kit.markup import Page
from ...kit.quick import examples
from ...kit.states import large, state_of, topic
from ..render import plans as some_plans
from ..render.hostile import HOSTILE
from .world import acl, make_folder, make_hostile_folder, make_sources

ROOT = "/root/"


def render(shown: WindowPage) -> str:
    return render_page(shown, ROOT)


def list_pages(text: str) -> list[WindowPage]:
    """Every page with this text in every place that holds foreign text."""
    identity = Identity(text, text, text)
    row = replace(topic("x", text, owner=text), identity=identity)
    named = replace(row, labels=FrozenMap({text: text}), attributes=FrozenMap({text: text}))
    rights = acl(text, text, text)
    state = State(text, 3, {identity: named, rights.identity: rights}, FrozenMap({text: text}))
    runs = {text: RunEntry(text, text, text, text, text, True, FrozenMap({text: 1}), 2)}
    survey = LogSurvey(text, None, runs=runs, fault=text)
    saved = plans.SavedPlan(text, 3, 1.0)
    plan = some_plans.plan(some_plans.drifted(1), created=text)
    changed = replace(plan.changes[0], identity=identity, last_set=text)
    plan = replace(plan, changes=(changed,))
    found = plans.NewestPlan(plans.FoundPlan(plan, text, "plans"), (text,))
    asked = access.AccessForm(text, "Topic", text, text, "1.2.3.4", "User:root")
    return [
        overview.show_overview(overview.Overview(text, text, state, LogIndex(), text, ())),
        overview.show_overview(overview.Overview(text, text, state, None, text, ())),
        plans.show_plans([plans.ReadPlan(saved, plan), plans.ReadPlan(saved, None, text)]),
        objects.show_objects(replace(state, objects={identity: named}), ObjectFilter(text)),
        objects.show_objects(state),
        objects.show_object(objects.ObjectStory(identity, named, (), ToldChanges(), text), "id"),
        show_topic(text),
        show_run(text),
        log.show_log(survey),
        access.show_access(state, asked),
        plans.show_drift(found, {identity}),
        page.make_fault_page(text, text, text),
    ]


def show_topic(text: str) -> WindowPage:
    """The page of a topic with an ACL, a quota and a schema, all with this text in them."""
    found = topic(text, text)
    subject = FrozenMap(subject=f"{text}-value", format=text, schema=text, references=())
    quota = FrozenMap(entity=FrozenMap(user=text), config=FrozenMap({text: text}))
    rows = (
        found,
        replace(acl(f"User:{text}", "Read", text), owners=(text,), owner=text),
        Row(Identity("kafka", "kafka_quota", make_quota_key(text)), (text,), 4, quota),
        Row(Identity("reg", "schema_registry_schema", f"{text}-value"), (text,), 4, subject),
    )
    types = collect_types([Registry().load("kafka"), Registry().load("schema_registry")])
    sections = related.list_related_sections(
        state_of(*rows), found.identity, types, "id", dict.fromkeys(related.TABLES, 0)
    )
    story = objects.ObjectStory(found.identity, found, (), ToldChanges(), text)
    return objects.show_object(story, "id", types, sections)


def make_quota_key(user: str) -> str:
    return quotas.entity_key({"user": user})


def show_run(text: str) -> WindowPage:
    """The page of a run with this text in its records."""
    identity = Identity(text, text, text)
    subject = replace(
        ORDERS,
        identity=identity,
        address=text,
        step=text,
        action=text,
        paths=(PathChange((text, text), text, text + "x"),),
    )
    sink = MemorySink()
    log = Journal(sink, Ticking(), text, text, text)
    begin(log)
    intend(log, subject, None)
    conclude(log, subject, "failed", fault=Fault(text, text, FaultClass.PERMISSION, text))
    survey = runs.survey_run(Store(Path(), MemoryBackend(), sink), make_id(text))
    assert survey is not None
    records = {one.seq: one for one in records_of(sink)}
    return runs.show_run(survey, "id", slice(0, 200), records, {})


def shape(text: str) -> list[tuple[str, str | None]]:
    return [(tag, attrs.get("class")) for tag, attrs in Page(text).tags]


PLAIN = [shape(render(one)) for one in list_pages("plain")]


def assert_only_text(text: str) -> None:
    for shown, plain in zip(list_pages(text), PLAIN, strict=True):
        made = render(shown)
        assert shape(made) == plain, shown.title
        names = {name for _, attrs in Page(made).tags for name in attrs}
        assert not [name for name in names if name.startswith("on") or name in ("src", "style")]
        for link in Page(made).all("a"):
            assert re.fullmatch(r"/root/[\w/]*(\?[\w=&%.+*~-]*)?", link["href"] or ""), link
        assert all(line.isprintable() for line in made.split("\n"))
        made.encode("utf-8")


@pytest.mark.parametrize("text", [*HOSTILE, "x" * 100_000, "\u202e" * 50, "a" * 90 + "\x1b[2J"])
def test_hostile_names_are_text(text: str) -> None:
    """Markup, control characters, reversed and very long text add no element, no attribute and no
    link, and invisible characters can be seen."""
    assert_only_text(text)


@given(st.text(min_size=1, max_size=40).filter(lambda text: text.strip() != ""))
@settings(max_examples=examples(30), deadline=None)
def test_any_text_stays_text(text: str) -> None:
    """The same for texts that nobody thought of."""
    assert_only_text(text)


def test_a_long_text_says_how_long_it_is() -> None:
    """Its beginning and its length are shown, so that nobody takes the beginning for all of it."""
    assert page.clip_text("x" * 2_000) == "x" * 2_000
    assert page.clip_text("x" * 5_000).endswith("x … (5,000 characters)")


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_pages_are_accessible(number: int) -> None:
    """Language, one main heading, headings in order, captions, scopes, labels, unique ids."""
    made = render(list_pages("plain")[number])
    parsed = Page(made)
    assert parsed.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in parsed.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))
    assert len(parsed.all("table")) == len(parsed.all("caption"))
    assert all(head["scope"] == "col" for head in parsed.all("th"))
    assert all(
        one["role"] == "region" and one["aria-label"]
        for one in parsed.all("div")
        if one.get("class") == "scroll"
    )
    fields = len(parsed.all("input")) + len(parsed.all("select"))
    assert len(parsed.all("label")) == fields
    assert len([a for a in parsed.all("a") if a.get("aria-current") == "page"]) == 1
    ids = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert parsed.within("title").strip()


def test_pages_load_nothing() -> None:
    """No script, address, picture, font or frame."""
    for shown in list_pages("plain"):
        made = render(shown)
        assert Page(made).all("script") == []
        assert not re.search(r"https?://|url\(|@import|<link|<img|<iframe", made)


def test_secrets_are_masked() -> None:
    """A secret that a log repeats is masked, also if HTML writes its quotes in another way."""
    secret = "pass\"'<word>&more"
    shown = WindowPage("", "x", "", (WindowSection("a", "b", (f"the server said {secret}",)),))
    with watch_secrets() as known:
        known.add(secret)
        made = render(shown)
    assert f"the server said {MASK}" in made and "word" not in Page(made).within("main")


def test_rows_are_shown_in_portions() -> None:
    """Each row is on exactly one page, links lead to the others, and a number that is too large
    leads to the last page."""
    rows = [(Cell(f"row-{number}"),) for number in range(450)]
    seen = []
    for first in (0, 200, 400):
        table = make_table("x", ("a",), rows, first, "objects", q="a b")
        seen += [row[0].text for row in table.rows]
        assert table.total == 450
    assert seen == [row[0].text for row in rows]
    assert [one.text for one in table.row_links] == ["Rows 201 to 400"]
    assert table.row_links[0].link == "objects?q=a+b&first=200"
    assert make_table("x", ("a",), rows, 10**9).rows == table.rows
    assert make_table("x", ("a",), (), 200).rows == ()


def test_a_large_state_is_searched() -> None:
    """All words must occur in kind, name, address or owner, in any case."""
    state = large(1_000)
    assert objects.show_objects(state).sections[0].tables[0].total == 1_000
    chosen = ObjectFilter(q="TOPIC-000042 kafka_topic")
    found = objects.show_objects(state, chosen).sections[0].tables[0]
    assert [row[0].text for row in found.rows] == ["topic-000042"]
    nothing = objects.show_objects(state, ObjectFilter(q="topic-000042 acl")).sections[0]
    assert nothing.tables == ()
    assert nothing.lead == ("None of 1,000 recorded objects fits the filter.",)


# ── what is read ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "folder")


def read(folder: Path, path: str, query: str = "") -> str:
    found = find_page(make_sources(folder), path, query, ROOT)
    assert found is not None, path
    texts = (text for trail, text in Page(found).texts if "body" in trail)
    return " ".join(" ".join(texts).split())


def test_an_empty_folder_has_pages(tmp_path: Path) -> None:
    """Without state, log, plans and fleet, each page says so."""
    said = {
        "": "There is no state yet",
        "plans": "no saved plan",
        "drift": "No plan was saved",
        "objects": "The state is empty",
        "log": "Sound records 0",
        "access": "records no ACLs",
        "fleet": "No fleet data is configured",
    }
    for path, words in said.items():
        assert words in read(tmp_path, path), path


def test_the_overview_names_what_matters(folder: Path) -> None:
    """Serial, system, objects by kind, the last run and what it left open."""
    text = read(folder, "")
    for words in ("Serial 3", "cluster-1", "kafka_acl", "kafka_topic", "run-2", "not complete"):
        assert words in text
    assert "ada SCRAM-SHA-512" in text, "its intent has no outcome"
    assert "2 saved plans" in text


def test_plans_are_found_by_their_content(folder: Path) -> None:
    """Files that begin like a plan, whatever their names; links and damaged plans are no plans."""
    (folder / "no ending").write_bytes((folder / "review.kfplan").read_bytes())
    damaged = (folder / "review.kfplan").read_bytes().replace(b"retention", b"Retention")
    (folder / "damaged.kfplan").write_bytes(damaged)
    text = read(folder, "plans")
    assert "no ending" in text and "link.kfplan" not in text and "notes.txt" not in text
    assert "damaged.kfplan" in text and "cannot be used" in text and "checksum differs" in text
    shown = find_page(make_sources(folder), f"plans/{make_id('everything.kfplan')}", "", ROOT)
    assert shown is not None and '<a href="/root/plans">Back</a>' in shown


def test_the_log_is_verified(folder: Path) -> None:
    """A sound log says so; one with a changed byte, or a cut end, says what is wrong and where."""
    assert "Every record is as it was written" in read(folder, "log")
    whole = (folder / AUDIT_FILE).read_bytes()
    (folder / AUDIT_FILE).write_bytes(whole.replace(b"orders", b"Orders", 1))
    assert "its content was changed" in read(folder, "log")
    assert "its content was changed" in read(folder, ""), "the overview says it, too"
    lines = whole.splitlines(keepends=True)
    (folder / AUDIT_FILE).write_bytes(b"".join(lines[:-2]))
    text = read(folder, "log")
    assert f"record {len(lines)} is known to exist" in text
    assert f"Sound records {len(lines) - 2}" in text


def test_a_run_shows_its_records(folder: Path) -> None:
    """Each of them in order, with objects, outcomes and the plan."""
    text = read(folder, f"records/{make_id('run-1')}")
    assert "run_begin apply by ada@ci" in text
    assert text.index("intent") < text.index("outcome") < text.index("run_end")
    assert "Cluster authorization failed." in text and "The plan of this run" in text
    shown = find_page(make_sources(folder), f"recorded/{make_id('run-1')}", "", ROOT)
    assert shown is not None and "kafkaform plan" in shown


def test_an_object_has_a_history(folder: Path) -> None:
    """Its recorded attributes, and every record about it, the newest first."""
    identity = Identity("kafka", "kafka_topic", "orders")
    text = read(folder, f"objects/{make_id(str(identity))}")
    assert "config.retention.ms" in text and "kafka_topic.orders" in text
    assert "Changes, the newest first" in text and "e5e5e5e5e" in text
    assert text.index("run-2") < text.index("run-1")
    assert "partitions = 12" in text


def test_sensitive_values_are_hidden(folder: Path) -> None:
    """The history of a password says only that it changed; a row that is gone is said to be."""
    identity = Identity("kafka", "kafka_user_scram_credential", "ada SCRAM-SHA-512")
    text = read(folder, f"objects/{make_id(str(identity))}")
    assert "password = (sensitive)" in text and "ADA" not in text
    assert "does not record this object any more" in text


def test_access_follows_from_recorded_acls(folder: Path) -> None:
    """The provider's own rules answer, and the page says what it cannot know."""
    text = read(folder, "access", "kind=Topic&name=orders&super_users=User:root&no_acl=no")
    assert "User:ada Write allowed" in text and "User:ci Read allowed" in text
    assert "User:ci Write" not in text and "User:root Read allowed" in text
    assert "ACLs that others made are not known here" in text
    unknown = read(folder, "access", "kind=Topic&name=orders")
    assert "anybody else Read unknown" in unknown and "Some answers are unknown" in unknown
    one = read(
        folder, "access", "kind=Topic&name=orders&principal=User:ci&super_users=User:root&no_acl=no"
    )
    assert "User:ci Write denied" in one and "User:ada Write allowed" not in one


RULES = """
variable "password" { type = string }
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
  sasl_username     = "ci"
  sasl_password     = var.password
  authorizer {
    super_users     = SUPERS
    allow_if_no_acl = false
  }
}
"""
DECLARED = RULES.replace("SUPERS", '["User:root", "User:CN=a,O=b"]')


def test_access_uses_the_declared_authorizer(folder: Path) -> None:
    """The answers are those of `explain access` with the folder's provider block: super users and
    what holds without an ACL, also if the connection's own variables have no value."""
    (folder / "main.kf.hcl").write_text(DECLARED)
    text = read(folder, "access", "kind=Topic&name=orders")
    assert "unknown" not in text.partition("User:root Read")[2]
    assert "User:root Read allowed" in text and "User:CN=a,O=b Write allowed" in text
    assert "User:root, User:CN=a,O=b (declared, main.kf.hcl:3:1)" in text
    assert "Without an ACL denied (declared, main.kf.hcl:3:1)" in text
    form = read(folder, "access", "kind=Topic&name=orders&super_users=User:x;User:CN=c,O=d")
    assert "User:CN=c,O=d Read allowed" in form and "User:root Read" not in form
    assert "User:x, User:CN=c,O=d (from the form)" in form


def test_access_says_why_a_block_is_not_used(folder: Path) -> None:
    """A variable without a value, an error or a file that cannot be read leave the answers unknown,
    with the reason."""
    (folder / "main.kf.hcl").write_text(
        'variable "admins" { type = list(string) }\n' + RULES.replace("SUPERS", "var.admins")
    )
    text = read(folder, "access", "kind=Topic&name=orders")
    assert "2 variables have no value: admins, password" in text and "Read unknown" in text
    (folder / "main.kf.hcl").write_text(DECLARED.replace("super_users", "super_user"))
    assert 'no argument "super_user" (main.kf.hcl:8:5)' in read(folder, "access", "name=orders")
    opened = make_sources(folder)
    (folder / "main.kf.hcl").unlink()
    (folder / "main.kf.hcl").symlink_to("nowhere")
    page = find_page(opened, "access", "name=orders", ROOT)
    assert page is not None and "is a link that leads nowhere" in page


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("principal=ci", "Principal: ci has no type. Write User:ci."),
        ("super_users=root", "Super users: root has no type. Write User:root."),
        ("right=IdempotentWrite", "IdempotentWrite does not exist for resources of type Topic."),
        ("host=kafka.example.com", "kafka.example.com is not an IP address"),
    ],
)
def test_access_refuses_what_the_command_refuses(folder: Path, query: str, words: str) -> None:
    """A name that no principal has would get a wrong answer for certain."""
    text = read(folder, "access", f"kind=Topic&name=orders&{query}")
    assert words in text and "any address" not in text


@pytest.mark.parametrize(
    "query",
    ["kind=Nothing&name=x", "host=not-an-address&name=x", "no_acl=maybe&name=x", "instance=x"]
    + ["first=-1", "first=99999999999999999999", "first=1e3", "&".join(["a=b"] * 100), "%ff=%fe"],
)
def test_any_query_is_answered(folder: Path, query: str) -> None:
    """A question that the form cannot ask is another page, not a failure."""
    for path in ("access", "objects", "log", "drift"):
        assert read(folder, path, query)


def test_drift_is_that_of_the_newest_plan(folder: Path) -> None:
    """The page names the plan and its time, and says that it is not the present."""
    text = read(folder, "drift")
    assert "the saved plan everything.kfplan" in text and "Later changes are not known" in text
    assert "Changed outside kafkaform" in text
    assert "t00" in text and "kafka_topic.t00" in text, "object and address"
    for name in ("everything.kfplan", "review.kfplan"):
        (folder / name).unlink()
    assert "the plan of run run-2" in read(folder, "drift")


def test_a_state_that_cannot_be_read_is_never_an_empty_one(folder: Path) -> None:
    """Pages that need it fail with the reason."""
    (folder / STATE_FILE).write_bytes(b'{"serial": 1')
    for path in ("", "objects", "log", "access"):
        with pytest.raises(StorageError):
            find_page(make_sources(folder), path, "", ROOT)


def test_hostile_files_are_shown(tmp_path: Path) -> None:
    """The same texts in real files: every page, of every thing, can be read."""
    sources = make_sources(make_hostile_folder(tmp_path / "hostile"))
    waiting, seen = ["/root/"], set()
    while waiting:
        path, _, query = waiting.pop().removeprefix("/root/").partition("?")
        if (path, query) in seen:
            continue
        seen.add((path, query))
        made = find_page(sources, path, query, ROOT)
        assert made is not None, path
        waiting += [str(a["href"]) for a in Page(made).all("a") if str(a["href"])[0] == "/"]
    assert len(seen) > 10
