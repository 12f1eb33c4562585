"""What commands show of hostile folders: no character that acts, and no secret."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from .arena import Arena, Command
from .attacks import PROVIDER, Files
from .test_configurations import survived, written

ACTS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
    "|^::|##vso",
    re.MULTILINE,
)
"""Controls, what reorders or hides text, and log commands. U+200D is how Markdown is kept from
calling people."""
NASTY = r"a\u001b[31m\u202eb\u200b\u0085\u2028\u0000\r\n::error::x ##vso[task.x] `|<b>@team"
RAW = "# \u202e comment \u200b \x1b[31m\n"
FILE = "na\x1b[31mme\u202e.kf.hcl"


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    arena = Arena()
    yield arena
    arena.close()


def commands(*expressions: str) -> dict[str, Command]:
    """Everything that shows something of a configuration without a cluster."""
    return {
        "validate": (("validate",), ""),
        "validate --json": (("validate", "--json"), ""),
        "graph": (("graph",), ""),
        "console": (("console",), "\n".join(expressions) + "\n"),
        "fmt": (("fmt", "--check"), ""),
        "pictures": (("pictures",), ""),
    }


# ── characters that act ─────────────────────────────────────────────────────────────────

LEGAL = f'''
locals {{
  n = "{NASTY}"
}}
variable "v" {{
  description = "{NASTY}"
  default     = "{NASTY}"
}}
resource "kafka_topic" "t" {{
  for_each   = {{ "{NASTY}" = 1 }}
  name       = "t"
  partitions = 1
  config     = {{ "retention.ms" = "{NASTY}", "{NASTY}" = "1" }}
  owner      = "{NASTY}"
  labels     = {{ "{NASTY}" = "{NASTY}" }}
}}
output "o" {{
  value = {{ "{NASTY}" = local.n }}
}}
check "c" {{
  assert {{
    condition     = false
    error_message = "{NASTY}"
  }}
}}
'''
FAULTY = f'''
locals {{
  a = file("{NASTY}")
  b = {{ "{NASTY}" = 1 }}.x
  c = {{ x = 1 }}["{NASTY}"]
  d = tonumber("{NASTY}")
  e = regex("{NASTY}(", "x")
  f = templatestring("{NASTY}$${{y}}", {{}})
  g = yamldecode("{NASTY}: [")
  h = format("%{NASTY}", 1)
  i = formatdate("{NASTY}", "2026-01-01T00:00:00Z")
}}
variable "v" {{
  default = "{NASTY}"
  validation {{
    condition     = var.v == 1
    error_message = "{NASTY}"
  }}
}}
resource "kafka_topic" "t" {{
  for_each    = {{ "{NASTY}" = 1 }}
  name        = "t"
  config_mode = "{NASTY}"
  lifecycle {{
    ignore_changes = ["{NASTY}"]
    precondition {{
      condition     = false
      error_message = "{NASTY}"
    }}
  }}
}}
resource "kafka_topic" "u" {{
  for_each   = {{ "{NASTY}" = 1 }}
  name       = "t"
  partitions = "x"
}}
resource "kafka_topic" "{NASTY}" {{}}
resource "kafka_topic\u202e" "x" {{}}
module "m" {{
  source = "./{NASTY}"
}}
module "n" {{
  source = "{NASTY}"
}}
removed {{
  from = kafka_topic.u["{NASTY}"]
}}
moved {{
  from = kafka_topic.u["{NASTY}"]
  to   = kafka_topic.u["{NASTY}"]
}}
'''
NASTY_EXPRESSIONS = (
    "local.n",
    "{ (local.n) = [local.n] }",
    "kafka_topic.t",
    "var.v",
    "local.\u202e",
)


@pytest.mark.parametrize("text", [LEGAL, FAULTY], ids=["legal", "faulty"])
def test_nothing_that_is_shown_acts(text: str, arena: Arena, tmp_path: Path) -> None:
    """Controls, bidirectional marks and log commands of names, keys, texts and comments are shown
    as what they are, by every command and in every form."""
    files: Files = {
        "main.kf.hcl": PROVIDER + RAW + text,
        FILE: "locals {\nq =   1\n}\n",
        "live.json": "{}",
    }
    folder = written(tmp_path / "in", files)
    for name, command in commands(*NASTY_EXPRESSIONS).items():
        shown = survived(arena.run(folder, command)).text
        if name == "validate --json":  # letters of ASCII, whatever they spell
            json.loads(shown)
            shown = shown.replace("##vso", "")
        lines = [line for line in shown.split("\n") if "kafkaform_version" not in line]
        assert ACTS.findall("\n".join(lines)) == [], name
        assert name == "graph" or "\\u202e" in shown, name


# ── secrets ─────────────────────────────────────────────────────────────────────────────

CANARY = "C4n4ry/S3cr3t+V4lue"
SPELLINGS = {
    CANARY.lower(),
    base64.b64encode(CANARY.encode()).decode().lower(),
    CANARY.encode().hex(),
    quote(CANARY, safe="").lower(),
    CANARY[::-1].lower(),
    CANARY[4:16].lower(),
}
DECLARED = f'''
variable "s" {{
  sensitive = true
}}
variable "e" {{
  ephemeral = true
}}
variable "given" {{
  type      = number
  sensitive = true
}}
variable "choice" {{
  sensitive = true
  validation {{
    condition     = var.choice == "x"
    error_message = "Not ${{var.choice}}!"
  }}
}}
variable "map" {{
  sensitive = true
  default = {{ "{CANARY}" = "{CANARY}" }}
}}
variable "typed" {{
  sensitive = true
  type      = map(number)
  default   = {{ "{CANARY}" = "{CANARY}" }}
}}
variable "broken" {{
  sensitive = true
  default   = tonumber("{CANARY}")
}}
'''
VALUES = "".join(f'{name} = "{CANARY}"\n' for name in ("s", "e", "given", "choice"))
WRONG = """
"${@}" + 1
-@
!@
@ ? 1 : 2
true ? @ : [1]
@[0]
@.x
@["x"]
@[*].x.y
[for x in @ : x]
{ for x in [@] : x => 1 }.y
{ for x in [@, @] : x => 1 }
{ (@) = 1 }.y
{ a = 1 }[@]
[1][@]
"%{ if @ }a%{ endif }"
"%{ for x in @ }a%{ endfor }"
tonumber(@)
tobool(@)
tolist(@)
tomap({ a = [@], b = @ })
regex(@, "x")
regex("^${@}x", @)
regex("(", @)
replace("a", "/(${@}/", "b")
jsondecode(@)
jsondecode("[${@}]")
yamldecode("a: [${@}")
yamldecode("!${@} x")
csvdecode("a,b\\n${@}")
base64decode(@)
base64gunzip(@)
textencodebase64("a", @)
urldecode("${@}%")
file(@)
fileset(@, "*")
fileset(".", "[${@}")
templatefile(@, {})
templatestring(@, { x = 1 }).y
templatestring("$${${@}", {})
templatestring("$${x.y}", { x = @ })
parseint(@, 10)
lookup({ a = 1 }, @)
element([1], @)
index([@], "x")
one([@, @])
range(@)
slice([1], 0, @)
chunklist([1], @)
formatdate(@, "2026-01-01T00:00:00Z")
formatdate("YYYY", @)
timeadd(@, "1h")
timeadd("2026-01-01T00:00:00Z", @)
cidrhost(@, 1)
cidrsubnets(@, 1)
retention(@)
bytes(@)
merge(@, {})
zipmap([@, @], [1])
transpose({ a = @ })
setproduct(@, [1])
assumeequal(@, "x")
assumestringprefix(@, "x")
uuidv5(@, "a")
format(@, 1)
format("%d", @)
format("%z${@}", 1)
join(@, 1)
split(1, [@])
secret_env(@)
secret_file([@])
coalesce(@, [1], {})
concat([@], @)
keys(@)
sum([@])
pow(@, 2)
max(1, @)
substr(@, 1, @)
try(@.x, @[0])
nothing(@)
"""
BLOCKS = f'''
resource "kafka_topic" "a" {{
  name       = var.s
  partitions = var.s
  config     = {{ "retention.ms" = var.s, (var.s) = "x" }}
  owner      = var.s
  labels     = {{ (var.s) = var.s }}
}}
resource "kafka_topic" "b" {{
  for_each = toset([var.s])
  name     = "b"
}}
resource "kafka_topic" "c" {{
  for_each = {{ (var.s) = 1 }}
  name     = "c"
}}
resource "kafka_topic" "d" {{
  count = var.s
  name  = "d"
}}
resource "kafka_topic" "e" {{
  name        = "e"
  config_mode = var.s
  lifecycle {{
    precondition {{
      condition     = var.s == "x"
      error_message = "Not ${{var.s}}!"
    }}
  }}
}}
resource "kafka_topic" "f" {{
  name = "f"
  lifecycle {{
    prevent_destroy = var.s
  }}
}}
import {{
  to = kafka_topic.f[var.s]
  id = var.s
}}
output "plain" {{
  value = var.s
}}
output "part" {{
  value = {{ a = [upper(var.s)] }}
}}
output "hidden" {{
  value     = var.s
  sensitive = true
}}
output "nonsense" {{
  value = var.s.x
}}
check "c" {{
  assert {{
    condition     = var.s == "x"
    error_message = "Not ${{var.s}}!"
  }}
}}
module "m" {{
  source = "./m"
  number = var.s
  text   = var.s
}}
locals {{
  literal = "{CANARY}
}}
'''
MODULE = """
variable "number" {
  type = number
}
variable "text" {
  validation {
    condition     = var.text == "x"
    error_message = "Not ${var.text}!"
  }
}
locals {
  bad = var.text.x
}
resource "kafka_topic" "m" {
  name = var.text
}
output "text" {
  value = var.text
}
"""
SECRET_PROVIDER = """
provider "kafka" {
  bootstrap_servers = ["a:9092", var.s]
  sasl_username     = var.s
  sasl_password     = "x${var.s}"
  operation_timeout = var.s
}
"""


def leaks(text: str) -> list[str]:
    """The spellings of the canary in a text; lines that a screen has broken are put together."""
    flat = re.sub(r"\s|│", "", text.lower())
    return [spelling for spelling in SPELLINGS if spelling in flat]


def _folder(blocks: str, provider: str) -> Files:
    lines = [line for line in WRONG.splitlines() if line]
    wrong = "".join(
        f"  {word}{number} = {line.replace('@', f'var.{word}')}\n"
        for word in ("s", "e", "map")
        for number, line in enumerate(lines)
    )
    return {
        "main.kf.hcl": DECLARED + f"locals {{\n{wrong}}}\n" + blocks,
        "provider.kf.hcl": provider,
        "x.auto.kfvars.hcl": VALUES,
        "m/main.kf.hcl": MODULE,
        "live.json": "{}",
    }


@pytest.mark.parametrize("provider", [PROVIDER, SECRET_PROVIDER], ids=["sound", "wrong"])
def test_secrets_that_are_used_wrongly_are_not_told(
    provider: str, arena: Arena, tmp_path: Path
) -> None:
    """The value of a sensitive variable is in no message, answer, plan or graph, however it is
    misused, and in no encoding."""
    blocks = BLOCKS.partition("locals {")[0]
    folder = written(tmp_path / "in", _folder(blocks, provider))
    expressions = [line.replace("@", "var.s") for line in WRONG.splitlines() if line]
    asked = [*expressions, "var.s", "var.e", "[var.s]", "{ a = var.map }", "module.m", "output.x",
             "kafka_topic.e", "local.s0", "nonsense(var.s)"]  # fmt: skip
    for name, command in commands(*asked).items():
        outcome = survived(arena.run(folder, command))
        assert leaks(outcome.text) == [], name
        if name == "validate --json":
            told = json.loads(outcome.out)["diagnostics"]
            assert sum(item["severity"] == "error" for item in told) > 150


def test_secrets_beside_a_syntax_error_are_not_told(arena: Arena, tmp_path: Path) -> None:
    """A value file with a fault in it is not quoted, nor is a line that names a secret."""
    folder = written(tmp_path / "in", {
        "main.kf.hcl": 'variable "s" {\n  sensitive = true\n}\n',
        "x.auto.kfvars.hcl": f'password = "{CANARY}" oops\ns = "{CANARY}\nt = {CANARY}%\n',
        "y.auto.kfvars.json": f'{{"s": "{CANARY}" "t": 1}}',
        "z.kf.hcl": f'provider "kafka" {{\n  sasl_password = "{CANARY}" oops\n}}\n',
    })  # fmt: skip
    for name, command in commands("var.s").items():
        assert leaks(survived(arena.run(folder, command)).text) == [], name
