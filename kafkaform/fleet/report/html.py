"""Render the report as one HTML file that loads nothing: no address, no image, no font.

Names in it are foreign text, which `html/document.py` makes harmless. The script sorts tables;
everything else works without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from markupsafe import Markup

from ...html.document import make_environment, render_document
from .figures import HEIGHT, ROW, GridColumn, render_moment, render_tip, render_value, sort_key
from .model import FleetReport, Number
from .questions import LIMIT
from .rows import render_utc

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
    "in_use": "applied",
    "too_new": "pending",
}
"""Series that look like another one, with which they are never in the same chart."""
_CHIPS: Mapping[str, Mapping[str, str]] = {
    "severity": {"high": "bad", "medium": "warn", "low": "note"},
    "status": {"failed": "bad", "never": "bad", "stale": "warn", "partial": "warn"},
    "verdict": {"out_of_band": "bad", "not_effective": "warn", "unclear": "note"},
    "chain": {"broken": "bad", "gap": "warn"},
}
"""Column -> words that get a coloured background. The word says it; the colour repeats it."""
STATUSES: Mapping[str, str] = {
    "read": "Read",
    "partial": "In part",
    "stale": "Stale",
    "failed": "Failed",
    "never": "Never read",
}


def render_html(report: FleetReport) -> str:
    """Render the page. The same report gives the same bytes."""
    assert __package__ is not None
    pages = make_environment(
        __package__,
        {
            "cell": _render_cell,
            "change": _render_change,
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
        "statuses": STATUSES,
        "limit": LIMIT,
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
