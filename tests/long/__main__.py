"""`python -m tests.long [NAME ...] [--scale N]`: run the long tests one after the other, print
what each did and found, and end with 1 if a promise was broken."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence

from .figures import Figures

OWN = frozenset({"__main__", "figures"})


def names() -> list[str]:
    """All long tests: the other modules of this package."""
    found = (
        module.name
        for module in pkgutil.iter_modules(__import__(__package__, fromlist=["x"]).__path__)
    )
    return sorted(set(found) - OWN)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"which of {', '.join(names())}; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the whole; 0.1 a tenth")
    asked = parser.parse_args(words)
    broken = 0
    for name in asked.name or names():
        run: Callable[[float], Figures] = importlib.import_module(f"{__package__}.{name}").run
        broken += shown(run(asked.scale))
    return 1 if broken else 0


def shown(found: Figures) -> int:
    """Print one test's figures; how many promises it saw broken."""
    counts = ", ".join(f"{count:,} {what}" for what, count in found.counts.items())
    print(f"{found.name}: {counts}; {len(found.violations)} violations; {found.seconds:.0f} s")
    for violation in found.violations:
        print(f"  {violation}")
    return len(found.violations)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
