"""Writes docs/functions.md from the function table: `python docs/functions.py`.

A test compares the file with what this prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafkaform.language.expressions.calls import FORMS
from kafkaform.language.functions import group_functions
from kafkaform.language.functions.spec import render_usage

FILE = Path(__file__).parent / "functions.md"
INTRO = """\
# Functions

Names and meanings are OpenTofu's; [the conformance cases](../tests/conformance/left_out.toml) say
where a result differs. Every function is pure: the same configuration and files give the same
plan. So there is no clock, no random value, no environment, no network and no process.

```hcl
variable "teams" {
  type    = map(number)
  default = { billing = 6, shop = 12 }
}

provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_topic" "events" {
  for_each   = var.teams
  name       = format("%s.events", each.key)
  partitions = max(each.value, 6)
  config = {
    "retention.ms"  = retention("7d")
    "segment.bytes" = bytes("512MiB")
  }
}
```
"""
NOTES = """
## What stands behind them

- **Arguments are converted** where that is possible: `upper(true)` is `"TRUE"`. null is refused
  unless the function says what it means.
- **Sensitive arguments** make the result sensitive, and hide the reason of a fault. A secret whose
  value is read only after the approval can be passed on whole, but nothing computes from it.
- **Files** lie below the root (the nearest folder upwards with `.git`, or `--root`); relative paths
  start from the configuration. A path or link that leads out is refused, and so are `.git` and
  `.kafkaform`. `fileset` does not enter folders behind links. What is read, and which files a
  pattern matched, is part of the plan's configuration digest.
- **YAML**: `yes`, `no`, `on` and `off` are true and false unless they are quoted, and a date is a
  time; keys are the text that is written. Aliases count as if they were written out. A key that
  occurs twice in a mapping is a fault.
- **Regular expressions** may take two seconds in a run; what takes longer is stopped.
- **Numbers** are exact and decimal. A division by zero is a fault; no number is infinite.

Not offered is what differs from run to run (`timestamp`, `plantimestamp`, `uuid`, `bcrypt`,
`base64gzip`), what tells of the machine (`abspath`, `pathexpand`), and `rsadecrypt`, which needs a
private key in the configuration.
"""


def page() -> str:
    """The text of docs/functions.md."""
    return "\n".join((INTRO, *_tables())) + NOTES


def _tables() -> Iterator[str]:
    forms = [
        (render_usage(name, form.params, form.variadic), form.doc) for name, form in FORMS.items()
    ]
    groups = {
        title: [(each.usage(), each.doc) for each in functions]
        for title, functions in group_functions().items()
    }
    for title, rows in {**groups, "Expressions and templates": forms}.items():
        yield f"## {title}\n\n| call | yields |\n|---|---|"
        yield from (f"| `{call}` | {doc} |" for call, doc in sorted(rows))
        yield ""


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
