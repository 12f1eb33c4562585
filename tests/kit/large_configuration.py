"""A configuration of many files, for what an editor asks about it."""

from __future__ import annotations

from pathlib import Path

MAIN = """\
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
}

variable "prefix" {
  default = "shop"
}

locals {
  day = 86400000
}
"""

TOPIC = """\
resource "kafka_topic" "t{0}" {{
  name = "${{var.prefix}}.t{0}"

  config = {{
    "retention.ms"   = local.day * 7
    "cleanup.policy" = "delete"
  }}
}}
"""

REST = """\
variable "v{0}" {{
  default = 1
}}

locals {{
  l{0} = var.v{0}
}}

module "m{0}" {{
  source = "./m"
  x      = local.l{0}
}}

moved {{
  from = kafka_topic.old{0}
  to   = kafka_topic.t{0}
}}

output "o{0}" {{
  value = [module.m{0}.y, kafka_topic.t{0}.name]
}}
"""

MODULE = """\
variable "x" {}

output "y" {
  value = var.x
}
"""


def write_topics(folder: Path, files: int, topics: int, rest: str = "") -> list[str]:
    """Write a number of files with a number of topics in each. rest: what else stands beside each
    topic. Returns the names of the files."""
    for path, text in (("main.kf.hcl", MAIN), ("m/m.kf.hcl", MODULE)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    names = []
    for file in range(files):
        numbers = range(file * topics, (file + 1) * topics)
        blocks = [block.format(number) for number in numbers for block in (TOPIC, rest) if block]
        names.append(f"f{file:04}.kf.hcl")
        (folder / names[-1]).write_text("\n".join(blocks), "utf-8")
    return names
