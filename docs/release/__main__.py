"""`python -m docs.release lock|build|try|changelog|notes`."""

from __future__ import annotations

import sys

from .build import build
from .changelog import read_notes, release_changes
from .lock import write_lock
from .trial import try_wheel

COMMANDS = {
    "lock": write_lock,
    "build": build,
    "try": try_wheel,
    "changelog": release_changes,
    "notes": read_notes,
}

if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
    sys.exit(f"usage: python -m docs.release {'|'.join(COMMANDS)}")
sys.stdout.write(f"{COMMANDS[sys.argv[1]]()}\n")
