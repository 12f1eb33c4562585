"""Every stage of a command on a terminal, interrupted by both signals, once and twice."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..kit.commands.process_folder import Folder
from ..kit.kafka.clusters import HELD, own_sandbox
from ..kit.proxy.proxy import proxying
from ..reliability.crash.interrupted import STAGES, Case, faults, matrix
from .figures import Figures

LANES = 3


def run(scale: float) -> Figures:
    """scale: of the matrix, at least one of each stage."""
    begun = time.monotonic()
    wanted = matrix()[:: max(1, min(4, round(1 / scale)))]
    with (
        own_sandbox(f"interrupts-{os.getpid()}", config=HELD) as box,
        tempfile.TemporaryDirectory() as home,
    ):

        def lane(number: int) -> list[str]:
            path = Path(home) / f"i{number}"
            path.mkdir()
            with proxying(box.brokers[0].ports.client) as proxy:
                case = Case(
                    Folder(path, proxy.bootstrap, box.admin_password, "3s"), proxy, f"i{number}-"
                )
                case.more()
                case.settle()
                return [
                    f"{name}, {signal_.name}, {times} times: {fault}"
                    for name, signal_, times in wanted[number::LANES]
                    for fault in faults(case, STAGES[name], signal_, times)
                ]

        with ThreadPoolExecutor(LANES) as pool:
            found = [fault for each in pool.map(lane, range(LANES)) for fault in each]
    counts = Counter(signal_.name for _, signal_, _ in wanted)
    told = {"stages": len(STAGES), "interrupted commands": len(wanted), **counts}
    return Figures("interrupts", told, tuple(found), time.monotonic() - begun)
