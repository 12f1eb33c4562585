"""The page of the vendors is what the tables say."""

from __future__ import annotations

import runpy
from pathlib import Path

from kafkaform_kafka.vendors.profiles import PROFILES

DOCS = Path(__file__).parents[4] / "docs"


def test_the_page_is_what_the_tables_say() -> None:
    """docs/vendors.md holds exactly what docs/vendors.py makes today."""
    text = (DOCS / "vendors.md").read_text(encoding="utf-8")
    assert text == runpy.run_path(str(DOCS / "vendors.py"))["page"](), "run docs/vendors.py"


def test_the_page_says_what_was_not_tried() -> None:
    """Nobody can take a table for an experience with the service."""
    text = (DOCS / "vendors.md").read_text(encoding="utf-8")
    assert "**None of these profiles was tried on the real service.**" in text
    for profile in PROFILES.values():
        assert f"## {profile.title}\n" in text
        for rule in profile.rules:
            assert rule.source.url in text
