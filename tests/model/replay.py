"""`python -m tests.model.replay FILE`: play a saved schedule; 1 if it still fails."""

from __future__ import annotations

import sys
from pathlib import Path

from .schedule import load, play


def main(path: Path) -> int:
    steps = load(path)
    failure = play(steps)
    for number, (rule, arguments) in enumerate(steps if failure is None else failure.steps):
        print(f"{number:4} {rule} {arguments}")
    print(f"all {len(steps)} steps hold" if failure is None else failure.message)
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
