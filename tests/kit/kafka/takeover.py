"""Files of other tools, and what is live after these tools have applied them.

Each example is a folder with `source/`, in the documented format of one tool; `live.kf.hcl`, which
declares by hand what the tool makes of it, from the tool's own code; and `omissions.txt`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "unit/kafka/takeover"
EXAMPLES = FOLDER / "examples"
NAME = "acme"
"""Begins every name in the examples, so that a test on a shared broker can replace it."""
CANARY = "canary"
"""Is in every secret of the examples, and may be in nothing that is written or said."""


def list_examples() -> list[str]:
    return sorted(path.name for path in EXAMPLES.iterdir())


def get_tool(example: str) -> str:
    """What `--from` calls the tool of an example. There is a state for each provider."""
    return "tfstate" if example.startswith("tfstate") else example


def list_tools() -> list[str]:
    return sorted({get_tool(example) for example in list_examples()})


def copy_source(example: str, to: Path, name: str = NAME) -> Path:
    """Copy the files of an example, with another name; the path to import from."""
    made = to / get_tool(example)
    shutil.copytree(EXAMPLES / example / "source", made)
    for path in made.rglob("*"):
        if path.is_file():
            path.write_text(path.read_text().replace(NAME, name))
    files = list(made.iterdir())
    return files[0] if files[0].suffix == ".tfstate" else made


def read_live(example: str, name: str = NAME) -> str:
    """The configuration of everything that the tool has made."""
    text = (EXAMPLES / example / "live.kf.hcl").read_text()
    return (text + (FOLDER / "acls.kf.hcl").read_text()).replace(NAME, name)
