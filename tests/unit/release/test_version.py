"""The version stands in one place, `kafkaform/version.py`; everything else takes it from there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from docs.release.lock import project
from kafkaform import __version__
from kafkaform.version import VERSION

ROOT = Path(__file__).resolve().parents[3]


def test_the_version_is_written_once() -> None:
    """pyproject.toml has no version of its own: the build reads that of the code, and so do the
    package and the files of a release."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in table["project"] and table["project"]["dynamic"] == ["version"]
    assert table["tool"]["setuptools"]["dynamic"] == {
        "version": {"attr": "kafkaform.version.VERSION"}
    }
    assert __version__ == VERSION == project()["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", VERSION)


def test_the_release_pipeline_compares_the_tag_with_it() -> None:
    """A tag of another version makes no release."""
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    assert "from kafkaform.version import VERSION" in text
