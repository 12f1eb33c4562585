"""Write the report of a root in the format that the file's name asks for, and its tables as CSV.

Names can be masked, the same way throughout a report. A masked name is an HMAC with the report's
key. Without the key, no name can be tried, and with another key the same principal has another
name. Masked are columns that contain a principal, keys of ACLs, quotas and logins, and principals
inside of texts. Hosts, client ids and owners stay.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.canonical import dumps
from ...core.errors import StorageError, UsageError
from ...core.secret import PartialRepr
from ..tables.reader import Build, Gold, find_before, read_current
from .batches import write_csv
from .figures import Grid
from .html import render_html
from .markdown import render_markdown
from .model import FleetReport, build_report
from .questions import DETAILS, NUMBERS, Answers, ask_questions
from .rows import Mask, to_jsonable, write_whole

_PRINCIPALS = frozenset({"principal", "user", "actor"})
_TEXTS = frozenset(
    {"subject", "detail", "message", "error", "before", "after", "desired", "state", "live"}
    | {"via", "evidence", "entity", "shared_scope", "address", "path", "text", "waiver"}
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
    "change_attribution": "select distinct actor as name from change_attribution",
    "live": "select distinct attrs['username'] as name from live"
    " where kind = 'kafka_user_scram_credential'",
}
"""Table -> a query for the names that it contains."""
KEY_BYTES = 32
"""Length of the key for redacted names."""


def render_data(report: FleetReport) -> str:
    """One line of canonical JSON: what the page says, with every row that it shows."""
    return dumps(to_jsonable(_to_plain(report))) + "\n"


def _to_plain(value: Any) -> Any:
    """Turn structs into maps and lists, and tables into one map per row."""
    if isinstance(value, Grid):
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
        if column == "address" and kind in _PRINCIPAL_FIELDS:
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
    answers = ask_questions(gold, {**NUMBERS, **DETAILS}, mask)
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
