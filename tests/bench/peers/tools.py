"""The tools that are measured: what each one is given, and the command for each work.

A tool that has no command for a work, or cannot manage a kind of object, is absent from that row.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from . import hcl_files, yaml_files
from .checkout import list_import_folders
from .go_tools import PROVIDER, PROVIDER_VERSION, Binaries
from .hcl_files import Form
from .limits import PASSWORD, USER
from .works import LIMITS
from .world import Size, World

SOURCE = "bench.invalid/mongey/kafka"
"""The provider's address in the mirror. No host of this name can exist (RFC 2606)."""
PATIENCE = "300s"
AS_USERS = Path(__file__).with_name("as_users")
"""Modules in place of packages that only tests bring, which would slow down what is measured."""

ALL = ("topics", "acls", "quotas")


class Address(Struct, frozen=True):
    """The cluster, or a relay before it."""

    bootstrap: str
    password: str
    cluster_id: str


class Given(Struct, frozen=True):
    """imports: with import blocks for everything that the tool can import."""

    size: Size
    world: World
    form: Form
    address: Address
    imports: bool = False


class Command(Struct, frozen=True):
    """codes: with which it may end. Words can have {cluster_id}, {bootstrap} and {size} in them."""

    words: tuple[str, ...]
    codes: tuple[int, ...] = (0,)


class Tool(Struct, frozen=True):
    """write: the files of its folder, by path; works: the commands that are measured as one work;
    first: what is run once in a new folder, unmeasured; kinds: what it manages; stateless: it needs
    no import to know what is there."""

    name: str
    kinds: tuple[str, ...]
    write: Callable[[Given], Mapping[str, str]]
    works: Mapping[str, tuple[Command, ...]]
    variables: Mapping[str, str]
    first: tuple[Command, ...] = ()
    stateless: bool = False
    absent: str = ""
    """Why it cannot run here."""
    version: str = ""

    def explain(self, world: World) -> str:
        """Why there is nothing to measure; empty if there is."""
        lacks = [kind for kind in ALL if getattr(world, kind) and kind not in self.kinds]
        return self.absent or (f"does not manage {' and '.join(lacks)}" if lacks else "")


# ── kafkaform ───────────────────────────────────────────────────────────────────────────

_KAFKAFORM_HEAD = """provider "kafka" {{
  bootstrap_servers = {servers}
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "{user}"
  sasl_password     = secret_env("{variable}")
  operation_timeout = "{patience}"
}}
"""


_FLEET = ("fleet", "run", "--root", "root", "--json", "--master", "local[2]")


def make_kafkaform(name: str, root: Path, version: str) -> Tool:
    """The kafkaform of a checkout. Its packages win over the installed ones."""

    def run(*words: str, codes: tuple[int, ...] = (0,)) -> Command:
        return Command((sys.executable, "-m", "kafkaform", *words), codes)

    change = (run("plan", "--out", "p.kfplan"), run("apply", "p.kfplan"))
    destroy = run("destroy", "--confirm", "{cluster_id}", "--accept-open-access")
    drift = run("plan", "--refresh-only", "--detailed-exitcode", codes=(2,))
    return Tool(
        name,
        ALL,
        _write_kafkaform,
        {
            "empty": (run("plan", "--detailed-exitcode", codes=(2,)),),
            "apply": (run("apply", "--auto-approve"),),
            "apply-no-wait": (run("apply", "--auto-approve", "--no-wait"),),
            "destroy": (destroy,),
            "import": (run("apply", "--auto-approve"),),
            "no-op": (run("plan", "--detailed-exitcode"),),
            "drift": (drift,),
            "change": change,
            "version": (run("version"),),
            "validate": (run("validate"),),
            # 5: the tables are there, and something in them needs a look.
            "fleet": (run(*_FLEET, codes=(0, 5)),),
        },
        {"PYTHONPATH": _join_import_folders(root)},
        version=version,
    )


def _write_kafkaform(given: Given) -> dict[str, str]:
    files = hcl_files.write_world(given.world, given.form, _import_types(given, ALL))
    head = _KAFKAFORM_HEAD.format(
        servers=json.dumps(given.address.bootstrap.split(",")),
        user=USER,
        variable=PASSWORD,
        patience=PATIENCE,
    )
    return {"provider.kf.hcl": head} | {f"{path}.kf.hcl": text for path, text in files.items()}


# ── OpenTofu with Mongey's provider ─────────────────────────────────────────────────────

_NEEDS = """terraform {{
  required_providers {{
    kafka = {{
      source  = "{source}"
      version = "{version}"
    }}
  }}
}}
"""
_TOFU_HEAD = """
provider "kafka" {{
  bootstrap_servers = {servers}
  tls_enabled       = false
  sasl_mechanism    = "plain"
  sasl_username     = "{user}"
  sasl_password     = var.password
}}

variable "password" {{
  type      = string
  sensitive = true
}}
"""


def make_tofu(binaries: Binaries, mirror: Path, home: Path, password: str) -> Tool:
    """mirror: a folder that becomes a filesystem mirror with the provider; home: one for the
    configuration of the command line and the plugin cache."""
    tofu = str(binaries.find("tofu") or "tofu")

    def run(command: str, *words: str, codes: tuple[int, ...] = (0,)) -> Command:
        return Command((tofu, command, "-input=false", "-no-color", *words), codes)

    apply = run("apply", "-auto-approve")
    absent = binaries.explain("tofu", PROVIDER)
    configuration = home / "tofurc"
    if not absent:
        _make_mirror(binaries, mirror)
        (home / "plugins").mkdir(parents=True, exist_ok=True)
        configuration.write_text(_write_tofu_configuration(mirror, home / "plugins"), "utf-8")
    return Tool(
        "OpenTofu",
        ALL,
        _write_tofu,
        {
            "empty": (run("plan", "-detailed-exitcode", codes=(2,)),),
            "apply": (apply,),
            "destroy": (run("destroy", "-auto-approve"),),
            "import": (apply,),
            "no-op": (run("plan", "-detailed-exitcode"),),
            "drift": (run("plan", "-refresh-only", "-detailed-exitcode", codes=(2,)),),
            "change": (run("plan", "-out=p"), run("apply", "p")),
        },
        {
            "TF_CLI_CONFIG_FILE": str(configuration),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "TF_VAR_password": password,
        },
        first=(run("init"),),
        absent=absent,
        version="" if absent else f"{binaries.version('tofu')}, {PROVIDER} {PROVIDER_VERSION}",
    )


def _make_mirror(binaries: Binaries, mirror: Path) -> None:
    """The layout that `tofu providers mirror` makes, unpacked."""
    place = mirror / SOURCE / PROVIDER_VERSION.removeprefix("v") / _platform()
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy2(binaries.get(PROVIDER), place / f"{PROVIDER}_{PROVIDER_VERSION}")


def _platform() -> str:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}_{machine}"


def _write_tofu_configuration(mirror: Path, plugins: Path) -> str:
    return f"""plugin_cache_dir = "{plugins}"
disable_checkpoint = true
provider_installation {{
  filesystem_mirror {{
    path    = "{mirror}"
    include = ["{SOURCE}"]
  }}
}}
"""


def _write_tofu(given: Given) -> dict[str, str]:
    # The provider documents the import of quotas but has none (resource_kafka_quota.go). Its create
    # of a quota that exists succeeds, which is how it takes them over.
    imports = _import_types(given, ("topics", "acls"))
    files = hcl_files.write_world(given.world, given.form, imports)
    needs = _NEEDS.format(source=SOURCE, version=PROVIDER_VERSION.removeprefix("v"))
    servers = json.dumps(given.address.bootstrap.split(","))
    more = {"provider": needs + _TOFU_HEAD.format(servers=servers, user=USER)}
    if given.form is Form.MODULES:
        more[f"{hcl_files.MODULE}/needs"] = needs
    return {f"{path}.tf": text for path, text in (more | files).items()}


def _import_types(given: Given, kinds: tuple[str, ...]) -> tuple[str, ...]:
    wanted = (kind.type for kind in hcl_files.KINDS if kind.plural in kinds)
    return tuple(wanted) if given.imports else ()


# ── topicctl and jikkou ─────────────────────────────────────────────────────────────────

_BOOTSTRAPPED = "bootstrapped"
_FAST = "--sleep-loop-duration=100ms"
"""topicctl sleeps a fifth of this after each new topic: 2 s with its own default."""


def make_topicctl(binaries: Binaries, password: str) -> Tool:
    program = str(binaries.find("topicctl") or "topicctl")

    def run(command: str, *words: str, codes: tuple[int, ...] = (0,)) -> Command:
        return Command((program, command, "--no-spinner", "--cluster-config=c.yaml", *words), codes)

    def apply(*words: str) -> Command:
        return run("apply", "--skip-confirm", _FAST, *words, "topics/*.yaml")

    plan = apply("--dry-run")
    absent = binaries.explain("topicctl")
    return Tool(
        "topicctl",
        ("topics",),
        lambda given: {
            f"{_BOOTSTRAPPED}/.keep": "",
            "c.yaml": yaml_files.write_topicctl_cluster(given.address.bootstrap, USER, password),
            **yaml_files.write_topicctl_files(given.world),
        },
        {
            "empty": (plan,),
            "apply": (apply(),),
            "import": (run("bootstrap", f"--output={_BOOTSTRAPPED}", "--match=^peers"),),
            "no-op": (plan,),
            "drift": (run("check", "topics/*.yaml", codes=(1,)),),
            "change": (plan, apply()),
        },
        {},
        stateless=True,
        absent=absent,
        version="" if absent else binaries.version("topicctl"),
    )


def make_jikkou(binaries: Binaries, password: str) -> Tool:
    """jikkou 1.1.0; see `yaml_files` for the sources."""
    program = str(binaries.find("jikkou") or "jikkou")

    def run(command: str, *words: str, codes: tuple[int, ...] = (0,)) -> Command:
        return Command((program, command, *words), codes)

    diff = ("diff", "--files", "world.yaml", "--fail-on-changes")
    apply = run("apply", "--files", "world.yaml")
    absent = binaries.explain("jikkou")
    return Tool(
        "jikkou",
        ALL,
        lambda given: {
            "jikkou.conf": yaml_files.write_jikkou_configuration(
                given.address.bootstrap, USER, password
            ),
            "world.yaml": yaml_files.write_jikkou_file(given.world),
            "deleted.yaml": yaml_files.write_jikkou_file(given.world, deleted=True),
        },
        {
            "empty": (run(*diff, codes=(3,)),),
            "apply": (apply,),
            "destroy": (run("apply", "--files", "deleted.yaml"),),
            "no-op": (run(*diff),),
            "drift": (run(*diff, codes=(3,)),),
            "change": (run(*diff, codes=(3,)), apply),
        },
        # A context is a file with the place of the configuration; it is written into the folder.
        {"JIKKOUCONFIG": "context.json"},
        first=(
            run("config", "set-context", "bench", "--config-file=jikkou.conf"),
            run("config", "use-context", "bench"),
        ),
        stateless=True,
        absent=absent,
        version="" if absent else binaries.version("jikkou"),
    )


def _join_import_folders(root: Path) -> str:
    """The value of PYTHONPATH for the packages of a checkout."""
    return os.pathsep.join(map(str, (AS_USERS, *list_import_folders(root))))


# ── the limits ──────────────────────────────────────────────────────────────────────────


def make_limit(root: Path) -> Tool:
    """Bare clients, and Python alone."""

    def run(work: str) -> tuple[Command, ...]:
        words = (sys.executable, "-m", "tests.bench.peers.limits", work, "{size}", "{bootstrap}")
        return (Command(words),)

    return Tool(
        "limit",
        ALL,
        lambda given: {},
        {
            **{work: run(work) for work in LIMITS},
            "pass": (Command((sys.executable, "-c", "pass")),),
        },
        {"PYTHONPATH": _join_import_folders(root)},
        stateless=True,
    )
