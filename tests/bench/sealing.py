"""A log of many objects in a store that takes its time: how long readers need for it, how long it
takes to seal it and to remove what was sealed, and what readers need after that.

`python -m tests.bench.sealing [OBJECTS] [MILLISECONDS]`. The store is in a process of its own.
"""

from __future__ import annotations

import sys
import time
from multiprocessing.connection import Connection

from kafkaform.audit.sink import LIMITS, SealLimits
from kafkaform.workflow.stores import Store

from ..kit.sealing import read_lines, run_seal
from ..kit.stores import s3
from ..kit.stores.runner import CONTEXT
from ..reliability.crash.killed_seals import fill, open_place

OBJECTS, LATENCY = 20_000, 20


def serve(line: Connection, objects: int, milliseconds: int) -> None:
    """Serve a filled bucket until the line ends; each answer waits for so long."""
    bucket = s3.Bucket()
    fill(bucket, objects)

    def wait(bucket: s3.Bucket, request: s3.Request) -> None:
        time.sleep(milliseconds / 1000)

    bucket.always.append(wait)
    with s3.serving(bucket) as address:
        line.send(address)
        line.recv()


def measure(store: Store, label: str, limits: SealLimits | None = None) -> None:
    """Print how long a read of all lines takes, or a seal with these limits."""
    begun = time.perf_counter()
    if limits is None:
        print(f"  {label}: {len(read_lines(store)):,} lines in ", end="")
    else:
        notes = run_seal(store, limits)
        assert not notes, notes
        print(f"  {label}: ", end="")
    print(f"{time.perf_counter() - begun:.1f} s", flush=True)


def main(objects: int = OBJECTS, milliseconds: int = LATENCY) -> None:
    near, far = CONTEXT.Pipe()
    process = CONTEXT.Process(target=serve, args=(far, objects, milliseconds))
    process.start()
    store = open_place(near.recv())
    print(f"{objects:,} objects, {milliseconds} ms for each request")
    measure(store, "read before")
    measure(store, "seal", LIMITS)
    measure(store, "read while the objects wait for their removal")
    measure(store, "remove", SealLimits(grace=0.0))
    measure(store, "read after")
    near.send("end")
    process.join()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
