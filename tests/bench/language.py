"""From files to declared objects: time and memory for 10,000 topics, as ratios to `hcl2.loads`.

hcl2 only reads the text and runs without Python's garbage collector; ours reads, checks and
evaluates, in a process of its own, as a command does.
"""

from __future__ import annotations

import gc
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import hcl2  # type: ignore[import-untyped]

from kafkaform.cli import GARBAGE
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration

TOPICS, FILES, ROUNDS = 10_000, 40, 3

HEAD = """\
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:9092"]
}

variable "prefix" {
  type    = string
  default = "shop"
}

variable "large" {
  type    = bool
  default = true
}

locals {
  day      = 86400000
  defaults = { "min.insync.replicas" = "2", "segment.ms" = "3600000" }
}
"""


def repeated(number: int) -> str:
    """A topic as a generator writes them: with other words and numbers each time."""
    return f"""
resource "kafka_topic" "orders_{number}" {{
  name               = "${{var.prefix}}.orders-{number:05}"
  partitions         = var.large ? {number % 40 + 8} : {number % 5 + 1}
  replication_factor = 3
  owner              = "team-{number % 10}"

  config = merge(local.defaults, {{
    "retention.ms"   = "{(number % 30 + 1) * 86_400_000}"
    "cleanup.policy" = "compact"
  }})
}}
"""


_KEYS = (
    "retention.ms",
    "segment.bytes",
    "max.message.bytes",
    "retention.bytes",
    "flush.messages",
    "file.delete.delay.ms",
    "segment.index.bytes",
)
_FORMS = ('"{0}"', "local.day * {0}", "var.large ? {0} : 2", '"${{local.day}}"')


def distinct(number: int) -> str:
    """A topic whose words and marks follow each other as in no other one: what each of seven
    configs is, a digit of the number to the base of four says."""
    lines = [
        f'    "{key}" = {_FORMS[number >> 2 * place & 3].format(number + 1)}\n'
        for place, key in enumerate(_KEYS)
    ]
    return f"""
resource "kafka_topic" "orders_{number}" {{
  name       = "orders-{number:05}"
  partitions = 12

  config = {{
{"".join(lines)}  }}
}}
"""


def looped(numbers: Iterable[int]) -> str:
    """One block for all topics, and the map that it goes through."""
    items = "".join(
        f'    "orders-{n:05}" = {{ partitions = {n % 40 + 8}, retention = "{n + 1}" }}\n'
        for n in numbers
    )
    return f"""
locals {{
  topics = {{
{items}  }}
}}

resource "kafka_topic" "orders" {{
  for_each   = local.topics
  name       = "${{var.prefix}}.${{each.key}}"
  partitions = each.value.partitions
  config     = merge(local.defaults, {{ "retention.ms" = each.value.retention }})
}}
"""


def parts(write: Callable[[int], str]) -> list[str]:
    """The texts of FILES files, with as many topics in each."""
    size = TOPICS // FILES
    return ["".join(map(write, range(first, first + size))) for first in range(0, TOPICS, size)]


REPEATED, LOOPED = "one shape repeated", "for_each over a map"
SHAPES: Mapping[str, Callable[[], list[str]]] = {
    "all shapes distinct": lambda: parts(distinct),
    REPEATED: lambda: parts(repeated),
    LOOPED: lambda: [looped(range(TOPICS))],
}


class Cost(NamedTuple):
    seconds: float
    megabytes: float


def ours(folder: Path) -> None:
    """From files to declared objects, with the garbage collector as every command sets it."""
    gc.set_threshold(GARBAGE)
    desired = read_configuration(folder, Inputs()).evaluate().desired
    assert len(desired.declared) == TOPICS, desired.diagnostics[:3]


def theirs(folder: Path) -> None:
    """From files to dictionaries of texts."""
    gc.disable()
    for path in sorted(folder.iterdir()):
        hcl2.loads(path.read_text("utf-8"))


READERS: Mapping[str, Callable[[Path], None]] = {"ours": ours, "theirs": theirs}


def cost(reader: str, folder: Path, rounds: int = 1) -> Cost:
    """What reading a folder takes, each time in a process of its own: the median of the seconds
    on a processor, and the most memory."""
    command = [sys.executable, "-m", __name__, reader, str(folder)]
    answers = [subprocess.run(command, check=True, capture_output=True) for _ in range(rounds)]
    costs = [Cost(*map(float, answer.stdout.split())) for answer in answers]
    seconds = statistics.median(found.seconds for found in costs)
    return Cost(seconds, max(found.megabytes for found in costs))


def measure(reader: str, folder: str) -> None:
    """Print what `cost` reads."""
    if reader == "theirs":
        hcl2.loads(HEAD)  # it builds its grammar at first
    begun = time.process_time()
    READERS[reader](Path(folder))
    taken = time.process_time() - begun
    print(taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def write(folder: Path, texts: list[str]) -> Path:
    folder.mkdir()
    for number, text in enumerate([HEAD, *texts]):
        (folder / f"part{number:02}.kf.hcl").write_text(text, "utf-8")
    return folder


def main() -> None:
    print(f"{TOPICS:,} topics in {FILES} files, from text to objects; medians of {ROUNDS} runs")
    bases = {}
    with tempfile.TemporaryDirectory() as root:
        for name, texts in SHAPES.items():
            folder = write(Path(root, name.replace(" ", "-")), texts())
            taken, memory = cost("ours", folder, ROUNDS)
            bases[name] = base = cost("theirs", folder).seconds
            ratio = f"{taken / base:5.3f} x hcl2.loads ({base:.1f} s)"
            print(f"{name:<20} {taken:6.2f} s = {ratio}   peak {memory:4.0f} MB")
    print(f"{'':<29} = {taken / bases[REPEATED]:5.3f} x that of {REPEATED}")


if __name__ == "__main__":
    measure(*sys.argv[1:])
