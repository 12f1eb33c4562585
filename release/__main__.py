"""`python -m release lock|build`."""

from __future__ import annotations

import sys

from .build import build
from .lock import write_lock

COMMANDS = {"lock": write_lock, "build": build}

if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
    sys.exit(f"usage: python -m release {'|'.join(COMMANDS)}")
sys.stdout.write(f"{COMMANDS[sys.argv[1]]()}\n")
