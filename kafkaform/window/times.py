"""Times on pages: UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime


def render_moment(time: str) -> str:
    """`2026-01-02 03:04:05` for RFC 3339 text; a text that is no time stays as it is."""
    try:
        return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return time
