"""Golden texts: what people and machines see of a handful of plans.

KAFKAFORM_UPDATE_GOLDEN=1 rewrites the files; the difference is then read, not trusted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkaform.core.canonical import dumps
from kafkaform.plan.model import Plan
from kafkaform.render import stream
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import render_markdown
from kafkaform.render.terraform import to_json

from .plans import GOLDEN, WORDS

FOLDER = Path(__file__).parent / "golden"


def _indented(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True, indent=2) + "\n"


RENDERERS: dict[str, Callable[[Plan], str]] = {
    "txt": lambda plan: render_plan_text(plan, words=WORDS),
    "short.txt": lambda plan: render_plan_text(plan, words=WORDS, detail="concise"),
    "md": lambda plan: render_markdown(plan, words=WORDS),
    "json": lambda plan: _indented(dumps(to_json(plan))),
    "jsonl": lambda plan: "".join(
        dumps(event) + "\n" for event in stream.list_plan_events(plan, WORDS)
    ),
}


@pytest.mark.parametrize("suffix", RENDERERS)
@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str, suffix: str) -> None:
    """The plan renders exactly as the recorded text."""
    text = RENDERERS[suffix](GOLDEN[name]())
    file = FOLDER / f"{name}.{suffix}"
    if os.environ.get("KAFKAFORM_UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
