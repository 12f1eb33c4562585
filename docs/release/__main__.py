"""Run one command of this folder: `python -m docs.release` lists them."""

from __future__ import annotations

import sys

from .build import build
from .changelog import read_notes, release_changes
from .formula import write_formula
from .jars import write_class_paths, write_registry_list
from .lock import write_lock
from .trial import try_wheel
from .zipapp import build_zipapp

COMMANDS = {
    "lock": write_lock,
    "build": build,
    "try": try_wheel,
    "changelog": release_changes,
    "notes": read_notes,
    "zipapp": build_zipapp,
}

match sys.argv[1:]:
    case ["jars", version]:
        told = write_class_paths(version)
    case ["registry", version]:
        told = write_registry_list(version)
    case ["formula", address]:
        told = write_formula(address)
    case [name] if name in COMMANDS:
        told = COMMANDS[name]()
    case _:
        with_word = "formula ADDRESS|jars VERSION|registry VERSION"
        sys.exit(f"usage: python -m docs.release {'|'.join(COMMANDS)}|{with_word}")
sys.stdout.write(f"{told}\n")
