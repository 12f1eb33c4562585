"""The cases: `hcl_cases.json`, each with an id, its kind and position in the file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILES = HERE / "files"
"""What the cases about files read."""


@dataclass(frozen=True)
class Case:
    """data: as in the file; unknown: it involves a value that is known only after an apply."""

    id: str
    kind: str
    source: str
    data: Mapping[str, Any]
    unknown: bool


@cache
def cases() -> tuple[Case, ...]:
    found = json.loads((HERE / "hcl_cases.json").read_text(encoding="utf-8"))["cases"]
    return tuple(
        Case(f"{each['kind']}-{number}", each["kind"], each["source"], each, _is_unknown(each))
        for number, each in enumerate(found)
    )


def _is_unknown(data: Any) -> bool:
    if isinstance(data, dict):
        return "$unknown" in data or any(map(_is_unknown, data.values()))
    return isinstance(data, list) and any(map(_is_unknown, data))


@cache
def left_out() -> Mapping[str, str]:
    """Why a case is left out, by its id."""
    reasons = tomllib.loads((HERE / "left_out.toml").read_text(encoding="utf-8"))
    return {id_: group["reason"] for group in reasons.values() for id_ in group["cases"]}
