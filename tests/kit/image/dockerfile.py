"""The instructions of a Dockerfile, by stage. Only what ours uses is understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple


class Instruction(NamedTuple):
    word: str
    rest: str


class Stage(NamedTuple):
    base: str
    """The image that it starts from."""
    name: str
    instructions: tuple[Instruction, ...]

    def list_all(self, word: str) -> list[str]:
        """The rest of every instruction with this word."""
        return [each.rest for each in self.instructions if each.word == word]

    def read_pairs(self, word: str) -> dict[str, str]:
        """Name -> value of LABEL or ENV."""
        parts = [part for rest in self.list_all(word) for part in shlex.split(rest)]
        return dict(part.split("=", 1) for part in parts)


def read_stages(path: Path) -> list[Stage]:
    text = path.read_text("utf-8")
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    lines = re.sub(r"\\\n", "", bare).splitlines()
    stages: list[tuple[str, str, list[Instruction]]] = []
    for line in filter(None, map(str.strip, lines)):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append((base, name, []))
        else:
            stages[-1][2].append(Instruction(word, rest.strip()))
    return [Stage(base, name, tuple(found)) for base, name, found in stages]
