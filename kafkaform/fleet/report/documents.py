"""The report as documents: one HTML file that loads nothing (no address, no image, no font), a
short Markdown text for a chat or a review, JSON, and its tables as CSV.

The tables are written a batch of Arrow at a time. The cells are those of `rows.render_cell`,
rendered by column: Arrow finds the few texts that may need a change, and only those are handled in
Python.
"""

from __future__ import annotations

import csv
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup
from msgspec import Struct

from ...core.canonical import dumps
from ...core.errors import StorageError, UsageError
from ...core.landing import LOGIN
from ...core.secret import PartialRepr
from ...core.text import inline
from ...html.document import make_environment, render_document
from ..access.permission_rows import MASKS
from ..tables.definitions import GOLD, TABLES, quote_text
from ..tables.reader import Build, Gold, find_before, read_current, to_rows
from .cause_model import describe_cause
from .cause_questions import CAUSES
from .causes import SHOWN_CAUSES
from .figures import (
    CLIP,
    HEIGHT,
    ROW,
    ColumnKind,
    GridColumn,
    ReportGrid,
    clip_text,
    render_count,
    render_moment,
    render_tip,
    render_value,
    sort_key,
)
from .model import STATUSES, FleetReport, Number, build_report
from .questions import (
    DETAILS,
    LIMIT,
    NUMBERS,
    Answers,
    ask_questions,
    is_known,
    select_known,
)
from .rows import (
    INTERNAL,
    SECOND,
    Mask,
    expand_mask,
    render_cell,
    render_utc,
    to_jsonable,
    write_whole,
)

_SUSPECT = r"""^[ "']*[=+\-@|%]|[^\x20-\x7e]|##"""
"""A text without a match stays as it is in a cell (RE2 syntax)."""
_QUOTED = r"""[^\x20-\x7e]|["\\]|##"""
"""A text without a match stays as it is inside of JSON in a cell."""


def render_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Return the batch as rows for a CSV writer: text, numbers that it writes as `render_cell`
    would, or None."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return zip(*(_render_column(name, column) for name, column in columns), strict=True)


def _render_column(name: str, column: pa.Array) -> list[Any]:
    kind, types = column.type, pa.types
    if name in MASKS:
        # Millions of rows share few distinct masks.
        texts = {value: expand_mask(name, value) for value in pc.unique(column).to_pylist()}
        return [texts[value] for value in column.to_pylist()]
    if types.is_string(kind) or types.is_string_view(kind):
        return _render_texts(column.cast(pa.string()))
    if types.is_list(kind) and types.is_string_view(kind.value_type):
        return _render_lists(column.cast(pa.list_(pa.string())))
    if types.is_timestamp(kind):
        # In whole seconds: Arrow's %S prints the decimals of finer units.
        column = pc.strftime(column.cast(pa.timestamp("s", "UTC"), safe=False), SECOND)
    elif types.is_boolean(kind) or types.is_date32(kind):
        column = column.cast(pa.string())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        return [render_cell(value) for value in column.to_pylist(maps_as_pydicts="lossy")]
    values: list[Any] = column.to_pylist()
    return values


def _render_texts(column: pa.StringArray) -> list[str | None]:
    values: list[str | None] = column.to_pylist()
    suspect = pc.fill_null(pc.match_substring_regex(column, _SUSPECT), False)
    for index in pc.indices_nonzero(suspect).to_pylist():
        values[index] = render_cell(values[index])
    return values


def _render_lists(column: pa.ListArray) -> list[str | None]:
    """Render lists of texts as JSON."""
    texts = column.flatten()
    bad = pc.or_kleene(pc.match_substring_regex(texts, _QUOTED), pc.is_null(texts))
    if pc.any(bad).as_py():
        return [render_cell(value) for value in column.to_pylist()]
    inside = pc.binary_join(column, pa.scalar('","'))
    joined = pc.binary_join_element_wise('["', inside, '"]', "")
    empty = pc.equal(pc.list_value_length(column), 0)
    values: list[str | None] = pc.if_else(empty, "[]", joined).to_pylist()
    return values


def csv_name(stem: str, table: str) -> str:
    """Return the name of a table's file."""
    return f"{stem}-{table}.csv"


def write_csv(gold: Gold, folder: Path, stem: str, mask: Mask | None = None) -> tuple[Path, ...]:
    """Write every gold table of the build to `<stem>-<table>.csv`, ordered by its key, without
    clusters of which nobody knows how they are now. A file is there completely or not at all.
    mask: applied to each row.

    Raises StorageError.
    """
    tables = [name for name in GOLD if is_known(gold, name)]
    paths = tuple(folder / csv_name(stem, name) for name in tables)
    for name, path in zip(tables, paths, strict=True):
        with write_whole(path, "cannot write the report's tables") as half:
            table = TABLES[name]
            names = [column for column in table.names if column not in INTERNAL.get(name, ())]
            columns = ", ".join(f'"{column}"' for column in names)
            order = ", ".join(f'"{column}"' for column in table.key)
            with half.open("x", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\r\n")
                writer.writerow([MASKS.get(column, column) for column in names])
                sql = select_known((name,), f"select {columns} from {name} order by {order}")
                for batch in gold.read_batches(sql):
                    if mask:
                        masked = (mask(name, row) for row in to_rows(batch))
                        writer.writerows(
                            [render_cell(expand_mask(c, row[c])) for c in names] for row in masked
                        )
                    else:
                        writer.writerows(render_rows(batch))
    return paths


PATTERNS: Mapping[str, str] = {
    "outside": "M-2 2L2 -2M0 8L8 0M6 10L10 6",
    "pending": "M4 0V8",
    "behind": "M0 4H8",
    "unmanaged": "M4 2V6M2 4H6",
    "unknown": "M-2 6L2 10M0 0L8 8M6 -2L10 2M-2 2L2 -2M0 8L8 0M6 10L10 6",
    "applied": "",
    "unclear": "M3 3H5V5H3Z",
    "failed": "M-2 6L2 10M0 0L8 8M6 -2L10 2",
}
"""Series -> lines over its colour, in a square of eight by eight."""
SERIES_ALIASES: Mapping[str, str] = {
    "read": "applied",
    "partial": "unclear",
    "stale": "behind",
    "never": "unknown",
    "high": "outside",
    "medium": "unmanaged",
    "low": "pending",
    "candidate": "outside",
    "kept": "unmanaged",
    "in_use": "applied",
    "too_new": "pending",
}
"""Series that look like another one, with which they are never in the same chart."""
_CHIPS: Mapping[str, Mapping[str, str]] = {
    "severity": {"critical": "bad", "high": "bad", "medium": "warn", "low": "note"},
    "status": {"failed": "bad", "never": "bad", "stale": "warn", "partial": "warn"},
    "verdict": {"out_of_band": "bad", "not_effective": "warn", "unclear": "note"},
    "chain": {"broken": "bad", "gap": "warn"},
}
"""Column -> words that get a coloured background. The word says it; the colour repeats it."""
_STATUS_TITLES: Mapping[str, str] = {
    "read": "Read",
    "partial": "In part",
    "stale": "Stale",
    "failed": "Failed",
    "never": "Never read",
}
TABLE_ROWS = 5
"""Rows per table."""
UNREAD_ROWS = 20
"""Clusters that were not fully read, which come first of all."""
TABLE_COLUMNS = 7
"""Columns per table; the page has the rest."""
CELL_CHARACTERS = 80
"""Characters per cell."""
COMMAND_CHARACTERS = 1000
"""Characters of a command, which is of no use if it is cut."""
_FOREIGN_KINDS = (
    ColumnKind.CODE,
    ColumnKind.KEY,
    ColumnKind.VALUE,
    ColumnKind.TEXT,
    ColumnKind.LONG,
)
_MARKDOWN_CHARACTERS = re.compile(r"[\\`*\[\]<>#|~&@!$_]|:(?=//)|(?<=www)\.")
_PRINCIPALS = frozenset({"principal", "user", "actor", "actors"})
_TEXTS = frozenset(
    {"subject", "detail", "message", "error", "before", "after", "desired", "state", "live"}
    | {"waits", "via", "evidence", "entity", "shared_scope", "address", "path", "text", "waiver"}
    | {"kept"}
)
_PRINCIPAL_FIELDS: Mapping[str, int] = {
    "kafka_acl": 0,
    "kafka_user_scram_credential": 0,
    "kafka_quota": -1,
}
"""Kinds whose keys name somebody, and in which field; -1: in the field that begins with `user=`."""
_UNMASKED_NAMES = frozenset({"*", "", "ANONYMOUS"})
"""Names that are not those of one principal."""
_SPLIT = re.compile(r"([A-Z][A-Za-z]*:)?(.*)", re.DOTALL)
_FIELD = re.compile(r"(?:[^\\|]|\\.)+")
_TYPED = re.compile(r"\b(User:)([^|\s\"',;)\]]+)")
_TOKEN = re.compile(r"[^\s|\"',;=()\[\]{}:]+")
_MASKED = re.compile(r"p-[0-9a-f]{8}")
_PLAIN = re.compile(_TOKEN.pattern + r"\Z")
NAMES: Mapping[str, str] = {
    "grant_findings": "select distinct principal as name from grant_findings",
    "effective_permissions": "select distinct principal as name from effective_permissions",
    "effective_quotas": 'select distinct "user" as name from effective_quotas',
    "credentials": "select distinct principal as name from credentials"
    f" union select subject from credentials where key = {quote_text(LOGIN)}",
    "change_attribution": "select distinct actor as name from change_attribution",
    "live": "select distinct attrs['username'] as name from live"
    " where kind = 'kafka_user_scram_credential'",
}
"""Table -> a query for the names that it contains."""
KEY_BYTES = 32
"""Length of the key for redacted names."""


def render_html(report: FleetReport) -> str:
    """Render the page. The same report gives the same bytes."""
    assert __package__ is not None
    pages = make_environment(
        __package__,
        {
            "cell": _render_cell,
            "clip": lambda text: clip_text(inline(text), CLIP),
            "change": _render_change,
            "about": describe_cause,
            # A length with at most three decimals.
            "figure": lambda value: f"{value:.3f}".rstrip("0").rstrip("."),
            "moment": render_moment,
            "number": lambda value: f"{value:,}",
            "order": sort_key,
            "tip": render_tip,
            "utc": render_utc,
        },
    )
    patterns = {**PATTERNS, **{key: PATTERNS[like] for key, like in SERIES_ALIASES.items()}}
    pages.globals |= {
        "series": patterns,
        "colours": {key: SERIES_ALIASES.get(key, key) for key in patterns},
        "statuses": _STATUS_TITLES,
        "limit": LIMIT,
        "shown": SHOWN_CAUSES,
        "chips": _CHIPS["severity"],
        "row": ROW,
        "field": HEIGHT,
    }
    return render_document(pages, "report.html.j2", "style.css.j2", "sort.js.j2", report=report)


def _render_cell(value: Any, column: GridColumn) -> str:
    chip = _CHIPS.get(column.name, {}).get(value) if isinstance(value, str) else None
    text = render_value(value, column)
    return Markup('<span class="chip {}">{}</span>').format(chip, text) if chip else text


def _render_change(number: Number, previous: datetime | None) -> str:
    if previous is None:
        return "no earlier build"
    if number.change is None:
        return "no figure to compare with"
    if not number.change:
        return "as in the build before"
    return f"{'▲ +' if number.change > 0 else '▼ −'}{abs(number.change):,} since the build before"


def render_markdown(report: FleetReport) -> str:
    """Render at most a few rows per table. The same report gives the same bytes."""
    return "\n".join(_render_lines(report)) + "\n"


def _render_lines(report: FleetReport) -> Iterator[str]:
    yield f"# Fleet report, {render_moment(report.as_of)} UTC"
    yield ""
    yield _render_coverage(report)
    yield from _render_unread(report)
    yield from _render_causes(report)
    yield ""
    yield "## At a glance"
    yield ""
    yield "| | Now | Change |"
    yield "|---|---:|---:|"
    for number in report.numbers:
        least = "at least " if number.least else ""
        value = "unknown" if number.value is None else f"{least}{number.value:,}"
        change = "–" if number.change is None else f"{number.change:+,}" if number.change else "="
        yield f"| {number.title} | {value} | {change} |"
    for section in report.sections:
        yield ""
        yield f"## {section.title}"
        yield ""
        yield " ".join(map(escape_prose, section.leads))
        if section.missing:
            yield f"Unknown: this build has no {', '.join(section.missing)}."
        for table in section.grids:
            if table.rows and table.csv:
                columns = table.columns[:TABLE_COLUMNS]
                yield ""
                yield f"{table.caption} ({table.total:,}):"
                yield ""
                yield f"| {' | '.join(column.title for column in columns)} |"
                yield f"|{'|'.join('---:' if column.right else '---' for column in columns)}|"
                for row in table.rows[:TABLE_ROWS]:
                    yield f"| {' | '.join(_render_cells(row, columns))} |"
    yield ""
    yield (
        f"Build {escape_code(report.build)}. Unknown is not zero: what could not be read is "
        "not counted."
    )


def _render_unread(report: FleetReport) -> Iterator[str]:
    """The clusters that are in no figure, or not whole, and how to read them."""
    clusters = report.coverage.clusters
    names = [column.name for column in clusters.columns]
    if clusters.rows:
        yield ""
    for cells in clusters.rows[:UNREAD_ROWS]:
        row = dict(zip(names, cells, strict=True))
        about = row["error"] or row["missing"] or "" if row["registered"] else "not in fleet.hcl"
        command = f": {escape_code(row['command'], COMMAND_CHARACTERS)}" if row["command"] else ""
        text = clip_text(inline(about), CELL_CHARACTERS)
        words = ", ".join(filter(None, (row["status"], text)))
        yield f"- {escape_code(row['cluster'])} ({escape_prose(words)}){command}"
    if clusters.total > UNREAD_ROWS:
        yield f"- {clusters.total - UNREAD_ROWS:,} more"


def _render_causes(report: FleetReport) -> Iterator[str]:
    yield ""
    yield "## Do this first"
    yield ""
    if report.unjudged:
        yield f"Unknown: this build has no tables for {', '.join(report.unjudged)}."
        yield ""
    for number, cause in enumerate(report.causes[:SHOWN_CAUSES], 1):
        rule = f" [{cause.rule}]" if cause.rule else ""
        about = describe_cause(cause, report.as_of)
        yield f"{number}. **{escape_prose(cause.title)}**{escape_prose(rule)} ({cause.severity})"
        for text in filter(None, (about, cause.mend, cause.waiting)):
            yield f"   {escape_prose(text)}  "
        yield f"   {escape_code(cause.command, COMMAND_CHARACTERS)}"
        yield from (f"   - {escape_code(name)}" for name in cause.waits[:TABLE_ROWS])
    if not report.causes:
        yield "Nothing that the clusters that were read show needs to be done."
    excess = len(report.causes) - SHOWN_CAUSES
    if excess > 0:
        yield ""
        yield f"{excess:,} more are on the page."


def _render_coverage(report: FleetReport) -> str:
    coverage = report.coverage
    if coverage.expected is None:
        return "**Coverage: unknown.**"
    counts = ", ".join(f"{coverage.counts[status]:,} {status}" for status in STATUSES)
    words = f"Coverage: {coverage.expected:,} clusters expected; {counts}"
    extra = f", {coverage.unregistered:,} not in fleet.hcl" if coverage.unregistered else ""
    unknown = render_count(coverage.states.total, "configuration")
    states = f"; {unknown} unknown" if coverage.states.total else ""
    return f"{words}{extra}{states}." if coverage.whole else f"**{words}{extra}{states}.**"


def _render_cells(row: Sequence[Any], columns: Sequence[GridColumn]) -> Iterator[str]:
    for value, column in zip(row, columns, strict=False):
        written = render_value(value, column)
        foreign = value is not None and column.kind in _FOREIGN_KINDS and value != ""
        yield escape_code(written).replace("|", r"\|") if foreign else written


def escape_prose(text: str) -> str:
    """Escape a sentence with foreign parts: Markdown's special characters become references."""
    return _MARKDOWN_CHARACTERS.sub(lambda match: f"&#{ord(match[0])};", inline(text))


def escape_code(text: str, length: int = CELL_CHARACTERS) -> str:
    r"""Make a code span. Tables read a pipe after a backslash in two ways, so it is written
    `\x7c`."""
    printable = inline(text)
    clipped = clip_text(printable, length)
    clear = re.sub(r"(?<=\\)\|", "x7c", clipped)
    ticks = "`" * (max(map(len, re.findall(r"`+", clear)), default=0) + 1)
    gap = " " if not clear.strip() or clear[0] in "` " or clear[-1] in "` " else ""
    return f"{ticks}{gap}{clear}{gap}{ticks}"


def render_data(report: FleetReport) -> str:
    """One line of canonical JSON: what the page says, with every row that it shows."""
    return dumps(to_jsonable(_to_plain(report))) + "\n"


def _to_plain(value: Any) -> Any:
    """Turn structs into maps and lists, and tables into one map per row."""
    if isinstance(value, ReportGrid):
        names = [column.name for column in value.columns]
        rows = [dict(zip(names, row, strict=True)) for row in value.rows]
        return {"caption": value.caption, "total": value.total, "rows": rows, "table": value.csv}
    if isinstance(value, Mapping):
        return {name: _to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    members = getattr(type(value), "__struct_fields__", ())
    return {name: _to_plain(getattr(value, name)) for name in members} if members else value


class Redactor(PartialRepr, frozen=True):
    """Masks rows."""

    _unshown = frozenset({"key"})

    key: bytes
    """Of this report."""
    names: frozenset[str]
    """Bare names (`ci`, not `User:ci`) that are masked in texts."""
    _odd: re.Pattern[str] | None

    def __call__(self, table: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the row with every principal masked."""
        kind = str(row.get("kind") or "")
        own = str(row.get("principal") or row.get("actor") or "")
        return {name: self._mask_cell(name, value, kind, own) for name, value in row.items()}

    def mask_name(self, principal: str) -> str:
        """`User:ci` -> `User:p-1a2b3c4d`; `User:*` stays."""
        kind, bare = _SPLIT.fullmatch(principal).groups("")  # type: ignore[union-attr]  # any text fits
        if bare in _UNMASKED_NAMES:
            return principal
        # A plain hash could be reversed by hashing likely names.
        digest = hmac.digest(self.key, bare.encode("utf-8", "surrogatepass"), "sha256").hex()
        return f"{kind}p-{digest[:8]}"

    def _mask_cell(self, column: str, value: Any, kind: str, own: str) -> Any:
        if isinstance(value, list):
            return [self._mask_cell(column, item, kind, own) for item in value]
        if not isinstance(value, str):
            return value
        if column in _PRINCIPALS:
            return self.mask_name(value)
        if column == "key" and kind in _PRINCIPAL_FIELDS:
            return self._mask_key(value, _PRINCIPAL_FIELDS[kind])
        if column in ("address", "addresses") and kind in _PRINCIPAL_FIELDS:
            return f"{kind}.{self.mask_name(value)}"
        return self._mask_text(value, own) if column in _TEXTS else value

    def _mask_key(self, key: str, field: int) -> str:
        fields = _FIELD.findall(key)
        for number, text in enumerate(fields):
            lead, bare = ("user=", text[5:]) if field < 0 else ("", text)
            if number == field or (field < 0 and text.startswith("user=")):
                fields[number] = lead + self.mask_name(re.sub(r"\\(.)", r"\1", bare))
        return "|".join(fields)

    def _mask_text(self, text: str, own: str) -> str:
        if own.removeprefix("User:") not in _UNMASKED_NAMES:
            text = text.replace(own, self.mask_name(own))
        if self._odd:
            text = self._odd.sub(lambda match: self.mask_name(match[0]), text)
        # A name that is masked already must not be masked again, or it would differ between
        # columns.
        text = _TYPED.sub(
            lambda m: m[0] if _MASKED.fullmatch(m[2]) else self.mask_name(m[0]),
            text,
        )
        return _TOKEN.sub(lambda m: self.mask_name(m[0]) if m[0] in self.names else m[0], text)


def make_redactor(key: bytes, names: Iterable[str]) -> Redactor:
    """Make a redactor. names: principals and users, with or without `User:`."""
    bare = {name.removeprefix("User:") for name in names} - _UNMASKED_NAMES
    # The longest first: a name that contains another one must be masked as a whole.
    odd = sorted((name for name in bare if not _PLAIN.match(name)), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, odd))) if odd else None
    return Redactor(key, frozenset(bare), pattern)


def make_build_redactor(gold: Gold, key: bytes) -> Redactor:
    """Make a redactor that knows all names in the build. Raises StorageError."""
    queries = [sql for table, sql in NAMES.items() if gold.has(table)]
    return make_redactor(
        key, (row["name"] for sql in queries for row in gold.read_rows(sql) if row["name"])
    )


FORMS: Mapping[str, Callable[[FleetReport], str]] = {
    ".html": render_html,
    ".md": render_markdown,
    ".json": render_data,
}
"""Ending of a file -> how it is rendered."""


class WrittenReport(Struct, frozen=True):
    """What was written."""

    report: FleetReport
    paths: tuple[Path, ...]
    """The files, the report first."""


def write_report(root: str, out: Path, *, redact: bool = False, csv: bool = False) -> WrittenReport:
    """Write the report of the newest build to `out`: .html, .md or .json.

    redact: mask principals, under a new key; csv: write every gold table to a file next to it.
    Raises UsageError: there is no build, or the file has another ending; StorageError.
    """
    render = FORMS.get(out.suffix)
    if render is None:
        raise UsageError(
            f"{out}: a report is not written as {out.suffix or 'a file without ending'}",
            f"Name a file that ends in {', '.join(FORMS)}.",
        )
    gold = Gold(read_current(root))
    mask = make_build_redactor(gold, secrets.token_bytes(KEY_BYTES)) if redact else None
    report = make_report(gold, mask=mask, csv=out.stem if csv else None)
    with write_whole(out, "cannot write the report") as half:
        half.write_text(render(report), "utf-8")
    tables = write_csv(gold, out.parent, out.stem, mask) if csv else ()
    return WrittenReport(report, (out, *tables))


def make_report(gold: Gold, *, mask: Mask | None = None, csv: str | None = None) -> FleetReport:
    """Return the report of a build, compared with the one before. csv: as in `FleetReport`."""
    answers = ask_questions(gold, {**NUMBERS, **CAUSES, **DETAILS}, mask)
    previous, numbers = _read_earlier(gold.build)
    return build_report(gold.build, answers, numbers, previous, redacted=mask is not None, csv=csv)


def _read_earlier(build: Build) -> tuple[Build | None, Answers | None]:
    """Return the build before and its numbers. If its files are gone, return nothing: today's
    report does not depend on them."""
    try:
        previous = find_before(build)
        return previous, ask_questions(Gold(previous), NUMBERS) if previous else None
    except StorageError:
        return None, None
