"""The report: what it says, that it says it again in the same bytes, and that it runs nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import write_deltalake

from kafkaform.core.errors import UsageError
from kafkaform.fleet.report import access, capacity, documents, drift, model
from kafkaform.fleet.report.cause_questions import CAUSES
from kafkaform.fleet.report.documents import (
    CELL_CHARACTERS,
    PATTERNS,
    SERIES_ALIASES,
    escape_code,
    escape_prose,
    make_build_redactor,
    make_redactor,
    render_data,
    render_html,
    render_markdown,
)
from kafkaform.fleet.report.figures import (
    Bar,
    Chart,
    ColumnKind,
    GridColumn,
    Series,
    make_day_bars,
    make_grid,
    render_age,
    render_amount,
    render_bytes,
    render_value,
)
from kafkaform.fleet.report.model import FleetReport, build_report
from kafkaform.fleet.report.questions import (
    COST_PARTS,
    DETAILS,
    LIMIT,
    NUMBERS,
    UNKNOWN,
    ask_questions,
)
from kafkaform.fleet.tables import reader
from kafkaform.fleet.tables.definitions import GOLD, SCHEMA_VERSION, TABLES
from kafkaform.fleet.tables.reader import Build, Gold
from kafkaform.provider.registry import Registry

from ...kit.fleet import sample
from ...kit.fleet.lake import NOW, arrow, publish
from ...kit.markup import Page

GOLDEN = Path(__file__).parent / "golden"
DOCS = Path(__file__).resolve().parents[3] / "docs"
HOSTILE = "</table><script>alert(1)</script><a href=https://evil.test>=cmd|'x'!A0\x1b[31m\u202e`|*_"
DAY = timedelta(days=1)


ELEMENTS = """
html head meta title style body header h1 h2 p time code nav ul ol li a main section dl div dt dd
strong span b figure figcaption svg defs pattern rect path text line desc details summary
table caption thead tbody tr th td footer script"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    publish(folder, "b-1", sample.tables(Random(7)), NOW - DAY)
    publish(folder, "b-2", sample.tables(Random(7), grown=2))
    return folder


@pytest.fixture(scope="module")
def found(root: Path) -> FleetReport:
    return documents.make_report(Gold(reader.read_current(str(root))), csv="fleet")


@pytest.fixture(scope="module")
def page(found: FleetReport) -> str:
    return render_html(found)


def build() -> Build:
    return Build("root", "b-1", "f", {}, NOW, NOW, NOW)


def answered(**answers: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Answers of a fleet of one cluster that was read and shows nothing, but for these."""
    whole = [{"status": "read", "registered": True, "clusters": 1, "oldest": NOW}]
    empty: dict[str, Any] = {name: [] for name in (*DETAILS, *CAUSES)}
    numbers = {name: [{"n": 0}] for name in NUMBERS}
    return empty | numbers | {"clusters": whole} | answers


# ── what it says ────────────────────────────────────────────────────────────────────────


LOST = {"payments-eu-1": "stale", "payments-us-2": "failed", "staging": "never"}
"""Clusters of the sample that were read, and what they are in a build with their old rows."""


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The builds `with` and `without` the rows of LOST in every table, each with all files of its
    report."""
    folder = tmp_path_factory.mktemp("lost")
    tables = sample.tables(Random(7))
    for row in tables["cluster"]:
        row["status"] = LOST.get(row["cluster"], row["status"])
    of_clusters = [name for name in tables if "cluster" in TABLES[name].names]
    for name in set(of_clusters) - {"cluster"}:
        tables[name] += [{**tables[name][0], "cluster": cluster} for cluster in LOST]
    rest = {
        name: [row for row in rows if name == "cluster" or row.get("cluster") not in LOST]
        for name, rows in tables.items()
    }
    assert set(GOLD) <= set(of_clusters)
    for name, some in (("with", tables), ("without", rest)):
        publish(folder / name, "b-1", some)
        for suffix in (".html", ".md", ".json"):
            documents.write_report(
                str(folder / name), folder / name / f"r{suffix}", csv=suffix == ".html"
            )
    return folder


def test_a_cluster_that_nobody_knows_is_in_no_figure(lost: Path) -> None:
    """Every answer about a stale, a failed and a never-read cluster is the one without its rows,
    but for what logs say of it at the coverage."""
    asked = {**NUMBERS, **DETAILS, **CAUSES}
    answers, expected = (
        ask_questions(Gold(reader.read_current(str(lost / name))), asked)
        for name in ("with", "without")
    )
    failures, rest = (some.pop("failures_off") or () for some in (answers, expected))
    assert {row["cluster"] for row in failures} - {row["cluster"] for row in rest} == set(LOST)
    assert answers == expected


@pytest.mark.parametrize("status", UNKNOWN)
def test_no_form_of_the_report_shows_a_cluster_that_nobody_knows(lost: Path, status: str) -> None:
    """Outside of the coverage its name is nowhere in the page, the text and the data, nothing
    differs from a report without its rows, and no CSV file has a row of it."""
    name = next(name for name, word in LOST.items() if word == status)
    page, text, data = (
        [(lost / folder / f"r.{suffix}").read_text() for folder in ("with", "without")]
        for suffix in ("html", "md", "json")
    )
    for some, cut in (
        (page, re.compile('<section id="coverage".*?</section>', re.DOTALL)),
        (text, re.compile(r"^- `.*$", re.MULTILINE)),
    ):
        bare = [cut.sub("", document) for document in some]
        assert name in some[0] and name not in bare[0]
        assert bare[0] == bare[1]
    made = [json.loads(document) for document in data]
    coverage = [document.pop("coverage") for document in made]
    assert made[0] == made[1] and name not in json.dumps(made[0])
    assert name in json.dumps(coverage[0])
    files = sorted(path.name for path in (lost / "with").glob("*.csv"))
    assert files == sorted(f"r-{table}.csv" for table in GOLD)
    for file in files:
        rows = (lost / "with" / file).read_text()
        assert rows == (lost / "without" / file).read_text() and name not in rows
        assert len(rows.splitlines()) > 1


def test_numbers_are_those_of_the_tables(root: Path, found: FleetReport) -> None:
    """Counted once more, row by row."""
    tables = sample.tables(Random(7), grown=2)
    objects = [r for r in tables["drift"] if not r["path"]]
    foreign = ("unmanaged", "unadopted")
    outside = [
        r
        for r in tables["change_attribution"]
        if r["verdict"] == "out_of_band" and r["window_end"] > NOW - 30 * DAY
    ]
    since = (NOW - 30 * DAY).date()
    failed = [
        r
        for r in tables["apply_reliability"]
        if not r["error_code"] and r["day"] > since and r["cluster"] in sample.KNOWN
    ]
    high = Counter(r["severity"] for r in tables["grant_findings"])["high"]
    rules = [r for r in tables["policy_findings"] if r["severity"] == "high" and not r["waived"]]
    assert [number.value for number in found.numbers] == [
        sum(r["drift_class"] not in ("in_sync", "unknown", *foreign) for r in objects),
        sum(r["drift_class"] in foreign for r in objects),
        len(outside),
        len(rules),
        high,
        sum(r["failed"] for r in failed),
    ]
    before = documents.make_report(Gold(reader.read_build(str(root), "b-1")))
    assert [n.before for n in found.numbers] == [n.value for n in before.numbers]
    assert [n.change for n in before.numbers] == [None] * 6


def test_coverage_counts_expected_clusters(found: FleetReport) -> None:
    """Clusters that are not in fleet.hcl are told apart."""
    known = found.coverage
    assert known.expected == 12
    assert known.counts == {"read": 8, "partial": 1, "stale": 1, "failed": 1, "never": 1}
    assert (known.unknown, known.unregistered, known.whole) == (3, 1, False)
    assert [number.least for number in found.numbers] == [True] * 6


def test_sections_stand_in_their_order(found: FleetReport) -> None:
    """Coverage and numbers come before them."""
    order = "drift changes permissions unused groups quotas capacity applies trust"
    assert " ".join(section.id for section in found.sections) == order


def test_unknown_is_never_zero() -> None:
    """No cluster was read: nothing that is counted is known."""
    failed = [{"status": "failed", "registered": True, "clusters": 3, "oldest": None}]
    made = build_report(build(), answered(clusters=failed))
    assert [number.value for number in made.numbers] == [None] * 6
    assert "unknown" in render_markdown(made)
    assert render_html(made).count('<span class="figure none">unknown</span>') == 6


def test_a_build_without_tables_says_unknown(tmp_path: Path) -> None:
    """Not one figure is made up, and every section names what is missing."""
    publish(tmp_path, "b-1", {"quarantine": []})
    made = documents.make_report(Gold(reader.read_current(str(tmp_path))))
    assert made.coverage.expected is None
    assert [number.value for number in made.numbers] == [None] * 6
    missing = {section.id: section.missing for section in made.sections}
    assert missing["drift"] == ("drift", "drift by day", "drift by class")
    assert missing["trust"] == ("audit logs", "consistency")
    assert "is unknown" in Page(render_html(made)).within("section")
    assert "Coverage: unknown" in render_markdown(made)


def test_a_part_of_the_tables_is_enough(tmp_path: Path) -> None:
    """A section shows the tables that there are and names the others."""
    tables = sample.tables(Random(2))
    publish(tmp_path, "b-1", {name: tables[name] for name in ("cluster", "policy_findings")})
    made = documents.make_report(Gold(reader.read_current(str(tmp_path))))
    rules = next(section for section in made.sections if section.id == "permissions")
    assert rules.missing == ("access findings", "credentials")
    assert [grid.csv for grid in rules.grids] == ["policy_findings"]


def test_tables_of_an_earlier_version_have_a_report(tmp_path: Path) -> None:
    """Costs and growth of topics had fewer columns: what they did not say is unknown."""
    tables = sample.tables(Random(2))
    publish(tmp_path, "b-1", tables, schema_version=SCHEMA_VERSION - 1)
    traffic = ["ingress_per_day", "egress_per_day"]
    gone = {
        "capacity": [*traffic, "cost_at_least", "cost_unknown", "unpriced_topics"],
        "topic_growth": traffic,
    }
    path = tmp_path / "builds" / "b-1.json"
    manifest = json.loads(path.read_text())
    for name, columns in gone.items():
        place = tmp_path / "tables" / TABLES[name].layer / name
        rows = arrow(name, tables[name]).drop_columns(columns)
        write_deltalake(place, rows, mode="overwrite", schema_mode="overwrite")
        manifest["tables"][name]["version"] += 1
    path.write_text(json.dumps(manifest))
    gold = Gold(reader.read_current(str(tmp_path)))
    section = next(s for s in documents.make_report(gold).sections if s.id == "capacity")
    assert section.missing == ()
    grid = next(grid for grid in section.grids if grid.caption.startswith("Cost by owner"))
    rows_by_owner = {row[0]: row for row in grid.rows}
    names = [column.name for column in grid.columns]
    cost, written = names.index("cost"), names.index("ingress_per_day")
    assert rows_by_owner["team-payments"][cost] > 0 and rows_by_owner["platform"][cost] is None
    assert {row[written] for row in grid.rows} == {None}
    folder = tmp_path / "csv"
    folder.mkdir()
    documents.write_csv(gold, folder, "fleet")
    assert "cost_at_least" in (folder / "fleet-capacity.csv").read_text("utf-8")


def test_a_whole_and_quiet_fleet() -> None:
    """Every sentence has a form for nothing."""
    made = build_report(build(), answered())
    text = " ".join(lead for section in made.sections for lead in section.leads)
    assert made.coverage.whole
    for words in (
        "No object that could be compared differs",
        "No change in 30 days",
        "No access findings",
        "No rule is broken",
        "No topic is a candidate",
        "No audit log has landed",
        "Nothing is in quarantine",
    ):
        assert words in text
    Page(render_html(made))


def owner_row(owner: str | None, **more: Any) -> dict[str, Any]:
    """An answer to `capacity_owners`: all is known of four topics."""
    nothing = {column.name: None for column in capacity._OWNERS}
    gaps = {f"unknown_{part}": False for part in COST_PARTS}
    counts = {"topics": 4, "partitions": 8, "replicas": 24, "clusters": 1, "unpriced_topics": 0}
    return {**nothing, **gaps, **counts, "owner": owner, "cost_at_least": None, **more}


def test_each_currency_has_a_chart_of_its_own() -> None:
    """Currencies are any text; of two without letters or digits each has its own chart."""
    rows = [owner_row("payments", cost_at_least=3.5, currency=sign) for sign in ("€", "$", "€")]
    block = capacity.show_cost({"capacity_owners": rows}, NOW)
    assert [(chart.title, len(chart.bars)) for chart in block.charts] == [
        ("Cost by owner, $", 1),
        ("Cost by owner, €", 2),
    ]
    assert len({chart.id for chart in block.charts}) == 2


def test_a_cost_that_lacks_something_does_not_look_complete() -> None:
    """In the table, in the chart and in the sum, with the name of what is unknown."""
    unknown = {"unpriced_topics": 3, "unknown_ingress": True, "unknown_bytes": True}
    rows = [
        owner_row("payments", cost_at_least=1200.5, currency="EUR"),
        owner_row(None, cost_at_least=7.25, currency="EUR", **unknown),
    ]
    block = capacity.show_cost({"capacity_owners": rows}, NOW)
    assert block.leads == (
        "By the declared rates, all owners together: at least 1,207.75 EUR a month.",
        "Not in it, because nobody knows it: size and ingress of 3 topics.",
    )
    [grid], [chart] = block.grids, block.charts
    at, reason = (
        next(n for n, column in enumerate(grid.columns) if column.name == name)
        for name in ("cost", "uncounted")
    )
    cells = [
        tuple(render_value(row[n], grid.columns[n]) for n in (at, reason)) for row in grid.rows
    ]
    assert cells == [("1,200.50", "–"), ("at least 7.25", "size and ingress of 3 topics")]
    assert [(bar.label, bar.note) for bar in chart.bars] == [("payments", ""), ("none", "or more")]
    whole = capacity.show_cost({"capacity_owners": rows[:1]}, NOW)
    assert whole.leads == ("By the declared rates, all owners together: 1,200.50 EUR a month.",)
    free = capacity.show_cost({"capacity_owners": [owner_row("payments")]}, NOW)
    assert (free.leads, free.charts) == ((), ())


def test_growth_by_owner() -> None:
    """The fastest first, in one unit; owners that do not grow are left out, and those of whom it is
    unknown are named."""
    sizes = {"small": 2**20, "big": 3 * 2**30, "still": 0, "less": -5, "dark": None, "dim": None}
    rows = [owner_row(owner, bytes_per_day=size) for owner, size in sizes.items()]
    block = capacity.show_owner_growth({"capacity_owners": rows}, NOW)
    [chart] = block.charts
    assert (chart.unit, chart.label) == ("GiB a day", "owner")
    assert [(bar.label, bar.values) for bar in chart.bars] == [("big", (3.0,))]
    assert chart.more == 1, "small is in the table"
    assert block.leads == (
        "Growth is not known of all topics of dark and dim, so the chart lacks them.",
    )
    quiet = capacity.show_owner_growth({"capacity_owners": [owner_row("still")]}, NOW)
    assert not quiet.charts[0].bars


def test_drift_is_oldest_first() -> None:
    """Clusters of which nothing is known come last, and are not counted as differing."""
    rows = [
        {"cluster": "a", "drift_class": "drifted", "objects": 2, "oldest": NOW - 2 * DAY},
        {"cluster": "b", "drift_class": "unmanaged", "objects": 5, "oldest": NOW - 9 * DAY},
        {"cluster": "b", "drift_class": "conflict", "objects": 1, "oldest": NOW - DAY},
        {"cluster": "c", "drift_class": "unknown", "objects": 7, "oldest": NOW - 99 * DAY},
    ]
    classes = [{**row, "clusters": 1} for row in rows]
    made = build_report(build(), answered(drift_clusters=rows, drift_classes=classes))
    bars = made.sections[0].charts[0].bars
    assert [(bar.label, bar.values, bar.note) for bar in bars] == [
        ("b", (1, 0, 0, 5, 0), "oldest 9 d"),
        ("a", (2, 0, 0, 0, 0), "oldest 2 d"),
        ("c", (0, 0, 0, 0, 7), ""),
    ]
    assert made.sections[0].leads[0] == (
        "3 objects on 2 clusters differ from what is declared, the oldest for 2 d. "
        "5 objects are managed by nobody. "
        "7 objects could not be compared."
    )


def test_what_was_edited_stands_before_what_nobody_manages(found: FleetReport) -> None:
    """Else a fleet that adopts kafkaform step by step would show nothing but its old topics."""
    table = next(
        g for g in found.sections[0].grids if g.caption.startswith("Objects that differ: edited")
    )
    names = [column.name for column in table.columns]
    at, since = names.index("drift_class"), names.index("first_seen")
    group = {"outside": 0, "unmanaged": 2}
    ranks = [(group.get(drift._GROUP_OF[row[at]], 1), row[since]) for row in table.rows]
    assert ranks == sorted(ranks) and {rank for rank, _ in ranks} == {0, 1, 2}


def test_every_word_of_the_tables_is_known() -> None:
    """Classes and verdicts of tables.txt have a group, a meaning, a series."""
    from kafkaform.fleet.tables.definitions import TABLES

    def words(table: str, column: str) -> set[str]:
        about = next(c.about for c in TABLES[table].columns if c.name == column)
        return set(re.findall(r"\b[a-z]+(?:_[a-z]+)*\b", about.replace(" or ", " ")))

    assert words("drift", "drift_class") == set(drift._MEANING)
    page = (DOCS / "fleet/report.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in drift._MEANING)
    assert set(drift._GROUP_OF) == set(drift._MEANING) - {"in_sync"}
    assert words("change_attribution", "verdict") == set(drift._VERDICT_OF)
    assert words("grant_findings", "finding") == set(access.FINDINGS)
    assert words("fleet_consistency", "finding") == set(model._FINDINGS)
    verdicts = {drift._USE_VERDICT_OF.get(v, v) for v in words("unused_topics", "verdict")}
    assert verdicts == {series.key for series in drift._USE_VERDICTS}
    assert words("group_progress", "verdict") == set(drift._GROUP_VERDICT_OF)


def test_what_a_keep_block_keeps_is_no_candidate() -> None:
    """It is counted apart, and shown with the reason."""
    kept = {"total": 1, "cluster": "a", "topic": "old", "kept": "fleet.hcl keeps it until 2027: r"}
    verdicts = [{"verdict": "kept", "topics": 1}, {"verdict": "candidate", "topics": 2}]
    report = build_report(build(), answered(unused_verdicts=verdicts, kept_topics=[kept]))
    section = next(section for section in report.sections if section.title == "Unused topics")
    assert section.leads == (
        "2 topics may be unused: ask the owner before anything is deleted."
        " fleet.hcl keeps 1 unused topic.",
    )
    assert section.charts[0].bars[0].values == (2, 1, 0, 0, 0)
    assert [grid.caption for grid in section.grids] == ["Candidates, most certain first", "Kept"]
    assert section.grids[1].rows[0][-1] == "fleet.hcl keeps it until 2027: r"


def test_findings_have_the_words_of_the_rules_of_plans() -> None:
    """What means the same has the same title, and the id of its rule."""
    rules = {rule.id: rule for rule in Registry().load("kafka").load_rules().rules}
    assert {finding: rule.id for finding, rule in access.RULES.items()} == {
        "any_principal": "access-gained-by-everybody",
        "any_operation": "access-gained-everything",
        "any_resource": "access-gained-widely",
        "shadowed": "access-unchanged",
        "no_login": "user-login-missing",
    }
    for finding, rule in access.RULES.items():
        assert rules[rule.id] is rule and access.FINDINGS[finding][1:] == rule.title[1:]
    row = {"finding": "shadowed", "severity": "low", "cluster": "a"}
    other = {**row, "finding": "any_host"}
    known = {"grant_kinds": [], "principals": [], "grant_rows": [row, other]}
    grid = access.show_grants(known, datetime.now(UTC)).grids[1]
    place = [column.name for column in grid.columns].index("what")
    assert [cells[place] for cells in grid.rows] == [
        "an ACL changes nobody's access [access-unchanged]",
        "from every host",
    ]


def test_tables_are_cut_and_say_so(tmp_path: Path) -> None:
    """At most 500 rows, and how many more there are."""
    rows = [
        {"cluster": "a", "finding": "any_host", "severity": "low", "subject": f"s{n:04}"}
        for n in range(LIMIT + 34)
    ]
    clusters = [{"cluster": "a", "status": "read", "registered": True}]
    publish(tmp_path, "b-1", {"grant_findings": rows, "cluster": clusters})
    made = documents.make_report(Gold(reader.read_current(str(tmp_path))), csv="fleet")
    table = next(g for s in made.sections for g in s.grids if g.csv == "grant_findings")
    assert (len(table.rows), table.total, table.more) == (LIMIT, LIMIT + 34, 34)
    assert "34 more in <code>fleet-grant_findings.csv</code>" in render_html(made)


def test_a_run_of_two_kinds_is_one_run(tmp_path: Path) -> None:
    """It stands in the rows of both; steps add up, runs do not."""
    row = {"cluster": "a", "day": NOW.date(), "steps": 2, "applied": 1, "partial_runs": 1}
    kinds = [row | {"kind": kind, "failed": 1} for kind in ("kafka_topic", "kafka_quota")]
    days = [row | {"kind": "kafka_topic", "day": (NOW - DAY).date()}]
    clusters = [{"cluster": "a", "status": "read", "registered": True}]
    publish(tmp_path, "b-1", {"apply_reliability": kinds + days, "cluster": clusters})
    rows = ask_questions(Gold(reader.read_current(str(tmp_path))), DETAILS)["apply_clusters"] or []
    assert [(r["steps"], r["failed"], r["partial_runs"]) for r in rows] == [(6, 2, 2)]


def test_markdown_is_the_golden_one(found: FleetReport) -> None:
    """KAFKAFORM_UPDATE_GOLDEN=1 rewrites the file."""
    path = GOLDEN / "fleet.md"
    if os.environ.get("KAFKAFORM_UPDATE_GOLDEN") == "1":
        path.write_text(render_markdown(found))
    assert render_markdown(found) == path.read_text()


def test_json_has_what_the_page_has(found: FleetReport) -> None:
    """With the version of the tables and every row that is shown."""
    made = json.loads(render_data(found))
    assert made["schema_version"] == SCHEMA_VERSION
    assert made["coverage"]["counts"]["failed"] == 1
    assert made["numbers"][0]["value"] == found.numbers[0].value
    tables = {grid["caption"]: grid for section in made["sections"] for grid in section["grids"]}
    grants = tables["Access findings"]
    assert grants["total"] == len(grants["rows"]) == found.sections[2].grids[1].total
    assert grants["rows"][0]["severity"] == "high"


def test_the_same_tables_make_the_same_bytes(root: Path, found: FleetReport, page: str) -> None:
    """Also when they are read again."""
    again = documents.make_report(Gold(reader.read_current(str(root))), csv="fleet")
    assert (render_html(again), render_markdown(again), render_data(again)) == (
        page,
        render_markdown(found),
        render_data(found),
    )


def test_the_order_of_rows_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters that are alike in everything but their names, and more rows than are shown: which
    ones are shown, and in which order, is the same."""
    monkeypatch.setattr("kafkaform.fleet.report.questions.LIMIT", 3)
    tables = {name: list(rows) for name, rows in sample.tables(Random(7)).items()}
    clusters = [row["cluster"] for row in tables["cluster"]]
    for name, rows in tables.items():
        if name not in ("cluster", "run", "lineage") and rows and "cluster" in rows[0]:
            tables[name] = [{**row, "cluster": c} for row in rows[:40] for c in clusters]
    answers = []
    for number in range(3):
        publish(tmp_path / str(number), "b", tables)
        gold = Gold(reader.read_current(str(tmp_path / str(number))))
        answers.append(ask_questions(gold, {**NUMBERS, **CAUSES, **DETAILS}))
        tables = {name: Random(number).sample(rows, len(rows)) for name, rows in tables.items()}
    for name, rows in answers[0].items():
        assert rows == answers[1][name] == answers[2][name], name


# ── the page ────────────────────────────────────────────────────────────────────────────


def test_the_page_asks_for_nothing(page: str) -> None:
    """No address, no image, no font, no frame; links lead into the page."""
    parsed = Page(page)
    assert {tag for tag, _ in parsed.tags} <= set(ELEMENTS.split())
    ids = {attrs["id"] for _, attrs in parsed.tags if "id" in attrs}
    for tag, attrs in parsed.tags:
        for name, value in attrs.items():
            assert name not in ("src", "srcset", "action", "style") and not name.startswith("on")
            assert name != "href" or str(value).removeprefix("#") in ids, (tag, value)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", page)


def test_only_our_script_may_run(page: str) -> None:
    """The policy names the hashes of the one script and the one style sheet, which hold nothing of
    the tables."""
    script, style = Page(page).within("script"), Page(page).within("style")
    code, sheet = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script, style)
    )
    policy = next(m["content"] for m in Page(page).all("meta") if "http-equiv" in m)
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{sheet}'; "
        f"script-src 'sha256-{code}'; base-uri 'none'; form-action 'none'"
    )
    assert page.count("<script") == 1
    assert script in render_html(build_report(build(), answered()))


def test_the_page_is_accessible(page: str) -> None:
    """Language, headings in order, captions, scopes, titles, unique ids."""
    parsed = Page(page)
    assert parsed.all("html") == [{"lang": "en"}]
    heads = [tag for tag, _ in parsed.tags if tag in ("h1", "h2", "h3")]
    assert heads == ["h1"] + ["h2"] * 12
    assert all(attrs.get("scope") == "col" for attrs in parsed.all("th"))
    assert len(parsed.all("caption")) == len(parsed.all("table")) > 20
    ids = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    regions = [attrs for attrs in parsed.all("div") if attrs.get("class") == "scroll"]
    assert all(r["role"] == "region" and r["tabindex"] == "0" and r["aria-label"] for r in regions)


def test_every_chart_is_told_in_words_and_figures(found: FleetReport, page: str) -> None:
    """Each drawing has a title and a description; beside each chart stands a table of it."""
    parsed = Page(page)
    drawings = re.findall(r"<svg([^>]*)>\s*<title[^>]*>([^<]+)</title>(<desc)?", page)
    assert len(drawings) == page.count("<svg")
    charts = [attrs for attrs in parsed.all("svg") if "aria-hidden" not in attrs]
    assert len(charts) == page.count('<details class="figures">') >= 9
    ids = {attrs["id"] for _, attrs in parsed.tags if "id" in attrs}
    for attrs in charts:
        assert attrs["role"] == "img"
        assert set(str(attrs["aria-labelledby"]).split()) <= ids
    for section in found.sections:
        for chart in section.charts:
            assert len(chart.figures.rows) == len(chart.bars)
            assert chart.figures.caption in page


def test_series_differ_in_more_than_colour(found: FleetReport) -> None:
    """In one chart each series has a letter and a pattern of its own."""
    charts = [chart for section in found.sections for chart in section.charts]
    for chart in [*charts, found.coverage.chart]:
        lines = [PATTERNS[SERIES_ALIASES.get(s.key, s.key)] for s in chart.series]
        assert len({s.letter for s in chart.series}) == len(chart.series), chart.id
        assert len(set(lines)) == len(chart.series), chart.id


def colours(blocks: list[str]) -> dict[str, tuple[int, ...]]:
    """The colours that later blocks leave of the earlier ones, names of others resolved."""
    found = re.findall(r"--([a-z-]+): (?:#([0-9a-f]{6})|var\(--([a-z]+)\));", " ".join(blocks))
    values = {name: value or like for name, value, like in found}
    return {name: tuple(bytes.fromhex(values.get(value, value))) for name, value in values.items()}


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """WCAG 2.2, relative luminance."""

    def light(colour: tuple[int, ...]) -> float:
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


PAIRS = (
    *((ink, paper) for ink in ("ink", "muted", "link") for paper in ("paper", "card", "track")),
    *((f"{word}-ink", f"{word}-paper") for word in ("warn", "bad", "note")),
    *(("letter", series) for series in PATTERNS),
)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(page: str, scheme: int) -> None:
    """Every text against every ground that it stands on: at least 4.5 to 1."""
    # The light ones and the dark ones of all pages, then those of this one.
    blocks = re.findall(r":root \{(.*?)\}", page, re.DOTALL)
    known = colours(blocks[::2] + blocks[1::2] * scheme)
    for ink, paper in PAIRS:
        assert contrast(known[ink], known[paper]) >= 4.5, (ink, paper)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """Whatever they hold, they add no element, no attribute, no character that cannot be seen."""
    tables = sample.tables(Random(7))
    publish(tmp_path, "b-1", sample.hostile(tables, HOSTILE))
    made = documents.make_report(Gold(reader.read_current(str(tmp_path))), csv="fleet")
    text = render_html(made)
    parsed = Page(text)
    assert len(parsed.all("script")) == 1
    assert "alert(1)</td>" not in text
    assert not [a for a in parsed.all("a") if not str(a["href"]).startswith("#")]
    assert "\x1b" not in text and "\u202e" not in text
    assert "\\u202e" in parsed.within("td") and "<script>" in parsed.within("td")
    short = render_markdown(made)
    assert "\x1b" not in short and "\u202e" not in short
    bare = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", short)
    assert "<" not in bare and "://" not in bare


# ── masks ───────────────────────────────────────────────────────────────────────────────


def test_redacted_reports_name_nobody(root: Path) -> None:
    """Principals, users and actors, in columns, keys and texts, as page, Markdown, JSON."""
    tables = Gold(reader.read_current(str(root)))
    made = documents.make_report(tables, mask=make_build_redactor(tables, b"key"))
    text = render_html(made) + render_markdown(made) + render_data(made)
    for name in ("User:billing", "old-etl", "mirror", "mia", "ci-runner", "user-3", "Ann Lee"):
        assert name not in text
    assert "User:*" in text
    assert "Principals are masked" in render_html(made)
    assert render_data(
        documents.make_report(tables, mask=make_build_redactor(tables, b"key"))
    ) == render_data(made)
    assert render_data(
        documents.make_report(tables, mask=make_build_redactor(tables, b"other"))
    ) != render_data(made)


ROWS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"principal": "User:ci"}, {"principal": "User:@ci"}),
    ({"principal": "User:*", "user": ""}, {"principal": "User:*", "user": ""}),
    ({"actor": "ci", "host": "ci"}, {"actor": "@ci", "host": "ci"}),
    ({"kind": "kafka_acl", "key": "User:ci|*|Read"}, {"key": "User:@ci|*|Read"}),
    ({"kind": "kafka_acl", "key": "User:a\\|b|*"}, {"key": "User:@a|b|*"}),
    ({"kind": "kafka_user_scram_credential", "key": "ci|SCRAM"}, {"key": "@ci|SCRAM"}),
    ({"kind": "kafka_quota", "key": "user=ci|client-id=ci"}, {"key": "user=@ci|client-id=ci"}),
    ({"kind": "kafka_quota", "key": "user|client-id"}, {"key": "user|client-id"}),
    ({"kind": "kafka_topic", "key": "ci"}, {"key": "ci"}),
    ({"kind": "kafka_acl", "address": "kafka_acl.ci"}, {"address": "kafka_acl.@kafka_acl.ci"}),
    ({"detail": "ci may read; cider not"}, {"detail": "@ci may read; cider not"}),
    ({"detail": "from User:nobody, twice"}, {"detail": "from User:@nobody, twice"}),
    ({"via": ["User:ci|*", "User:*|*"]}, {"via": ["User:@ci|*", "User:*|*"]}),
    ({"message": "CN=Ann Lee, OU=x is bad"}, {"message": "@CN=Ann Lee, OU=x is bad"}),
    ({"n": 5, "at": NOW, "none": None}, {"n": 5, "at": NOW, "none": None}),
)


@pytest.mark.parametrize(("row", "expected"), ROWS)
def test_masks(row: dict[str, Any], expected: dict[str, Any]) -> None:
    """`@name` stands for its other name, which is the same everywhere."""
    mask = make_redactor(b"key", ("User:ci", "CN=Ann Lee, OU=x", "User:*", ""))
    names = ("kafka_acl.ci", "CN=Ann Lee, OU=x", "a|b", "nobody", "ci")

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(item) for item in value]
        for name in names if isinstance(value, str) else ():
            value = value.replace(f"@{name}", mask.mask_name(name))
        return value

    masked: Mapping[str, Any] = mask("any", row)
    assert masked == row | {name: named(value) for name, value in expected.items()}
    assert "ci" not in mask.mask_name("ci")


# ── parts ───────────────────────────────────────────────────────────────────────────────


def test_shapes_of_bars() -> None:
    """Pieces lie side by side, on the scale of the longest bar or limit."""
    series = (Series("applied", "a", "A"), Series("failed", "f", "F"))
    chart = Chart("c", "t", "u", "l", series, (Bar("x", (10, 30)), Bar("y", (0, 1), "", 90)))
    assert chart.top == 100
    assert [(p.series.letter, p.x, p.width, p.letter) for p in chart.parts] == [
        ("A", 0, 10, True),
        ("F", 10, 30, True),
        ("F", 0, 1, False),
    ]
    assert [(mark.text, mark.x) for mark in chart.limits] == [("limit 90", 90)]
    assert [mark.text for mark in chart.notes] == ["40", "1 of 90"]
    assert chart.about == ("Bars of u, one a l. The largest are x: 40 (a 10, f 30); y: 1 (f 1).")


@pytest.mark.parametrize(
    ("days", "labels"),
    [
        (0, []),
        (1, [("1", 0)]),
        (3, [("1", 0)]),
        (4, [("1", 0), ("4", 25)]),
        (25, [("1", 0), ("13", 50), ("25", 100)]),
    ],
)
def test_few_days_are_no_walls(days: int, labels: list[tuple[str, float]]) -> None:
    """A column takes a twelfth of the width at the most; days that have no room are not named."""
    bars = tuple(Bar(str(n + 1), (1,)) for n in range(days))
    chart = Chart("c", "t", "u", "day", (Series("a", "a", "A"),), bars, days=True)
    assert all(part.width <= 100 / 12 for part in chart.parts)
    assert [(mark.text, pytest.approx(mark.x)) for mark in chart.labels] == labels


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(-1, "0 min"), (59.9, "59 min"), (60, "1 h"), (47 * 60, "47 h"), (48 * 60, "2 d")],
)
def test_ages(minutes: float, expected: str) -> None:
    """In the largest unit that says enough."""
    assert render_age(NOW - timedelta(minutes=minutes), NOW) == expected
    assert render_age(None, NOW) == ""


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (1234.0, "1,234"), (0.36, "0.36")])
def test_amounts(value: float, shown: str) -> None:
    """What costs less than one is not free."""
    assert render_amount(value) == shown


def test_every_piece_lies_in_its_field() -> None:
    """For random bars and days: nothing sticks out, and widths are in proportion."""
    random = Random(3)
    series = tuple(Series(str(n), str(n), str(n)) for n in range(4))
    for _ in range(100):
        days = random.random() < 0.5
        bars = tuple(
            Bar(str(n), tuple(random.choice((0, 0.4, 7, 1234)) for _ in series))
            for n in range(random.randint(1, 30))
        )
        chart = Chart("c", "t", "u", "l", series, bars, days=days)
        top = chart.top
        for part in chart.parts:
            assert part.x >= -1e-6 and part.x + part.width <= 100 + 1e-6
            assert part.y >= -1e-6 and part.y + part.height <= chart.height
            size = part.height / 126 if days else part.width / 100
            assert size * top == pytest.approx(part.value)
        for one, after in zip(chart.parts, chart.parts[1:], strict=False):
            if days and after.x == one.x:
                assert after.y + after.height == pytest.approx(one.y)
            if not days and after.y == one.y:
                assert after.x == pytest.approx(one.x + one.width)
        assert sum(part.value for part in chart.parts) == pytest.approx(sum(b.total for b in bars))


def test_days_have_no_holes() -> None:
    """A day on which nothing was is a bar of nothing."""
    first, last = date(2026, 1, 30), date(2026, 2, 2)
    bars = make_day_bars([last, first], {(first, "a"): 2, (last, "a"): 1}, (Series("a", "a", "A"),))
    assert [(bar.label[5:], bar.values) for bar in bars] == [
        ("01-30", (2,)),
        ("01-31", (0,)),
        ("02-01", (0,)),
        ("02-02", (1,)),
    ]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, ColumnKind.NUMBER, "unknown"),
        ("", ColumnKind.CODE, "unknown"),
        ("", ColumnKind.VALUE, '""'),
        (0, ColumnKind.NUMBER, "0"),
        (1234567, ColumnKind.NUMBER, "1,234,567"),
        (-0.5, ColumnKind.NUMBER, "-0.5"),
        (0.125, ColumnKind.SHARE, "12.5%"),
        (1234.5, ColumnKind.MONEY, "1,234.50"),
        (1023, ColumnKind.BYTES, "1,023 B"),
        (1536 * 1024, ColumnKind.BYTES, "1.5 MiB"),
        (False, ColumnKind.FLAG, "no"),
        (NOW, ColumnKind.TIME, "2026-11-22 05:00"),
        (NOW.date(), ColumnKind.DAY, "2026-11-22"),
        (["a", "b\n"], ColumnKind.LONG, "a, b\\n"),
        ("x" * 300, ColumnKind.TEXT, "x" * 239 + "…"),
    ],
)
def test_cells(value: object, kind: ColumnKind, expected: str) -> None:
    """Each kind of cell; null is what the column says."""
    assert render_value(value, GridColumn("c", "C", kind, "unknown")) == expected


def test_sizes() -> None:
    """Up to pebibytes and beyond."""
    assert render_bytes(2.0**60) == "1,024.0 PiB"


def test_grids_know_how_many_there_are() -> None:
    """From the first row, else by counting."""
    columns = (GridColumn("a", "A"),)
    assert make_grid("c", columns, [{"a": 1, "total": 9}]).total == 9
    assert make_grid("c", columns, [{"a": 1}, {"a": 2}]).total == 2
    assert make_grid("c", columns, []).total == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "`a`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("", "`  `"),
        ("a\\|b", "`a\\x7cb`"),
        ("a\nb", "`a\\nb`"),
        ("x" * 200, f"`{'x' * (CELL_CHARACTERS - 1)}…`"),
    ],
)
def test_code_spans(text: str, expected: str) -> None:
    """Nothing gets out of one."""
    assert escape_code(text) == expected


def test_prose_is_text() -> None:
    """What Markdown would take for its own is a reference."""
    assert escape_prose("[a](b) <i> *x* @me #1\n") == (
        "&#91;a&#93;(b) &#60;i&#62; &#42;x&#42; &#64;me &#35;1&#92;n"
    )


def test_an_earlier_build_whose_files_are_gone(tmp_path: Path) -> None:
    """There is a report without a comparison."""
    rows = [{"cluster": "a", "status": "read", "registered": True, "captured_at": NOW}]
    publish(tmp_path, "b-1", {"cluster": rows}, NOW - DAY)
    for file in (tmp_path / "tables" / "silver" / "cluster").glob("*.parquet"):
        file.unlink()
    publish(tmp_path, "b-2", {"cluster": rows})
    made = documents.make_report(Gold(reader.read_current(str(tmp_path))))
    assert made.coverage.expected == 1
    assert made.previous is None
    assert "no earlier one to compare with" in render_html(made)


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_files(root: Path, tmp_path: Path, suffix: str) -> None:
    """The ending says what is written; CSV files stand beside it; nothing is left half."""
    out = tmp_path / f"weekly{suffix}"
    made = documents.write_report(str(root), out, redact=True, csv=suffix == ".html")
    assert made.paths[0] == out
    assert out.read_text()
    assert set(made.paths) == set(tmp_path.iterdir())
    assert len(made.paths) == (1 + len(GOLD) if suffix == ".html" else 1)


def test_another_ending_is_refused(root: Path, tmp_path: Path) -> None:
    """Before anything is read."""
    with pytest.raises(UsageError, match="not written as .pdf"):
        documents.write_report(str(root), tmp_path / "fleet.pdf")
    with pytest.raises(UsageError, match="without ending"):
        documents.write_report(str(root), tmp_path / "fleet")


def test_each_question_is_answered(root: Path) -> None:
    """The sample has rows for every one, so that each is really run and shown."""
    answers = ask_questions(Gold(reader.read_current(str(root))), {**NUMBERS, **DETAILS, **CAUSES})
    assert [name for name, rows in answers.items() if not rows] == []
