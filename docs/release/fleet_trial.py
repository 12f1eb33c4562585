"""The fleet's small extras, tried as a stranger gets them: `fleet-small` reads a cluster and makes
tables, `fleet-read` answers from these, each in an empty environment of its own."""

from __future__ import annotations

import re
import subprocess
import tempfile
import urllib.parse
import urllib.request
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .build import build_wheel
from .lock import ROOT

READ, SMALL = "fleet-read", "fleet-small"
LARGEST = {READ: 420, SMALL: 850}
"""Extra -> the MB that it may take on a disk, with everything that it needs and what Python
compiles of it; docs/fleet/running.md tells them."""
PLACE = "fleet"
"""The root, as docs/fleet/report.md names it."""
TOOLS = ("duckdb==2.0.1", "polars==2.1.0")
"""Other readers of the tables."""
REGISTER = """
cluster "eu" {
  env = "prod"
  connection {
    bootstrap_servers = ["%s"]
    security_protocol = "SASL_PLAINTEXT"
    sasl_mechanism    = "PLAIN"
    sasl_username     = "admin"
    sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")
  }
}
"""
USER = "user_scram_credential/ci|SCRAM-SHA-512"
"""An object that every sandbox has."""
MAKERS: Sequence[tuple[str, ...]] = (
    ("fleet", "doctor"),
    ("fleet", "snapshot"),
    ("fleet", "run", "--master", "embedded"),
    ("fleet", "status"),
)
READERS: Sequence[tuple[str, ...]] = (
    ("fleet", "status"),
    ("fleet", "query", "select cluster, kind, count(*) as objects from live group by all"),
    ("fleet", "who-can", "READ", "topic/orders"),
    ("fleet", "history", "--cluster", "eu", "--key", USER),
    ("fleet", "permissions"),
    ("fleet", "report", "--out", "fleet.html", "--csv"),
    ("fleet", "report", "--out", "fleet.md"),
)


def install_extra(extra: str, home: Path, wheel: Path) -> Path:
    """Install the wheel with an extra into a new environment, under `constraints.txt`; return the
    program. Raises subprocess.CalledProcessError: no package index can be reached."""
    venv.create(home, with_pip=True)
    pip = [str(home / "bin/python"), "-m", "pip", "install", "--quiet"]
    limits = ["--disable-pip-version-check", "--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *limits, f"{wheel}[{extra}]"], check=True)
    return home / "bin/kafkaform"


def measure_packages(home: Path) -> float:
    """The MB of all packages of an environment, without pip and setuptools, which come with it."""
    (folder,) = home.glob("lib/python3*/site-packages")
    own = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")
    files = (
        file
        for top in folder.iterdir()
        if not top.name.startswith(own)
        for file in (top.rglob("*") if top.is_dir() else (top,))
    )
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def try_fleet(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Make tables of the cluster that the environment names with one extra, and read them with the
    other; yield how large each is. Raises ValueError: one is too large, or answers wrongly;
    subprocess.CalledProcessError: a command fails."""
    wheel = build_wheel(folder / "dist")
    (folder / "fleet.hcl").write_text(REGISTER % environment["KAFKAFORM_SANDBOX_BOOTSTRAP"])
    for extra, commands in ((SMALL, MAKERS), (READ, READERS)):
        program = install_extra(extra, folder / extra, wheel)
        for words in commands:
            _run_command(program, folder, words, environment)
        if extra == READ:
            _read_window(program, folder)
        size = measure_packages(folder / extra)
        if size > LARGEST[extra]:
            raise ValueError(f"[{extra}] has {size:.0f} MB, more than {LARGEST[extra]}")
        yield f"[{extra}] has {size:.0f} MB and works in an empty environment"
    python = program.parent / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *TOOLS], check=True)
    subprocess.run([python, "-c", "\n".join(list_code_blocks())], cwd=folder, check=True)
    yield f"{', '.join(TOOLS)} read the tables, too"


def list_code_blocks() -> tuple[str, ...]:
    """The Python of docs/fleet/report.md, which reads the tables with other programs."""
    page = (ROOT / "docs/fleet/report.md").read_text("utf-8")
    return tuple(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


def _run_command(
    program: Path, folder: Path, words: Sequence[str], environment: Mapping[str, str]
) -> None:
    env = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "KAFKAFORM_FLEET_ROOT": PLACE}
    subprocess.run([program, *words], cwd=folder, env={**env, **environment}, check=True)


def _read_window(program: Path, folder: Path) -> None:
    """Read the page of the fleet that `serve` shows. Raises ValueError: it lacks the tables."""
    server = subprocess.Popen(
        [program, "serve", "--fleet-root", PLACE],
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        try:
            assert server.stdout is not None
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with opener.open(server.stdout.readline().strip(), timeout=60) as overview:
                address = urllib.parse.urljoin(overview.url, "fleet")
            with opener.open(address, timeout=60) as answer:
                page = answer.read().decode()
        finally:
            server.terminate()
    if "effective_permissions" not in page:
        raise ValueError(f"the page of the fleet does not show its tables: {page[:2000]}")


def try_extras(environment: Mapping[str, str]) -> str:
    """Try both extras in a temporary folder; what they are like."""
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join(try_fleet(Path(folder), environment))
