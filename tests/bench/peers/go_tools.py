"""The tools that are written in Go, and jikkou: where their commands are, and how to build them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from kafkaform.sandbox.record import get_cache_folder

PROVIDER = "terraform-provider-kafka"
PROVIDER_VERSION = "v0.13.1"


class Module(NamedTuple):
    """path, version: of the Go module; package: the command in it; set: a variable that a release
    sets when it is linked."""

    path: str
    version: str
    package: str
    set: str = ""


MODULES = {
    "topicctl": Module("github.com/segmentio/topicctl", "v1.23.1", "./cmd/topicctl"),
    PROVIDER: Module("github.com/Mongey/terraform-provider-kafka", PROVIDER_VERSION, "."),
    "tofu": Module(
        "github.com/opentofu/opentofu",
        "v1.12.6",
        "./cmd/tofu",
        "github.com/opentofu/opentofu/version.dev=no",
    ),
}
"""Program -> where it comes from; the quickest to build first."""


class Binaries(NamedTuple):
    """folder: where the programs are looked for before the PATH."""

    folder: Path

    def find(self, program: str) -> Path | None:
        own = self.folder / program
        found = str(own) if os.access(own, os.X_OK) else shutil.which(program)
        return Path(found).absolute() if found else None

    def get(self, program: str) -> Path:
        found = self.find(program)
        assert found is not None, f"{program} is not installed"
        return found

    def explain(self, *programs: str) -> str:
        """Why a tool is absent; empty if all of its programs are here."""
        missing = [program for program in programs if self.find(program) is None]
        return f"{' and '.join(missing)} not installed" if missing else ""

    def version(self, program: str) -> str:
        """That of the module, for a program that was built here; else what it says itself."""
        note = self.get(program).with_suffix(".version")
        if note.exists():
            return note.read_text("ascii")
        command = [str(self.get(program)), "--version"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return said.splitlines()[0] if said else "unknown"


def get_folder() -> Path:
    """Where `build` puts what it builds."""
    return get_cache_folder() / "peers"


def build(folder: Path) -> None:
    """Build what is not there yet, with low priority and one compiler at a time. A module whose
    go.mod replaces another cannot be installed by name, so its source is copied and built there."""
    if shutil.which("go") is None:
        raise SystemExit("There is no go on the PATH: install Go 1.26.6 or newer first.")
    folder.mkdir(parents=True, exist_ok=True)
    for program, module in MODULES.items():
        note = (folder / program).with_suffix(".version")
        if note.exists() and note.read_text("ascii") == module.version:
            print(f"{program} {module.version} is there")
            continue
        print(f"building {program} {module.version} ...", flush=True)
        _build_one(folder, program, module)
        note.write_text(module.version, "ascii")


def _build_one(folder: Path, program: str, module: Module) -> None:
    source = folder / "source" / program
    if source.exists():
        shutil.rmtree(source)
    shutil.copytree(_download(module), source)
    # The copy is as the original, which nobody can write to.
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    flags = "-s -w" + (f" -X {module.set}" if module.set else "")
    command = ["go", "build", "-p", "1", f"-ldflags={flags}", "-o", str(folder / program)]
    niced = ["nice", "-n", "15", *command, module.package]
    done = subprocess.run(niced, cwd=source, check=False)
    if done.returncode:
        raise SystemExit(f"{module.path} {module.version} could not be built, see above.")
    shutil.rmtree(source)


def _download(module: Module) -> Path:
    command = ["go", "mod", "download", "-json", f"{module.path}@{module.version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        why = answer.get("Error") or done.stderr.strip()
        raise SystemExit(f"{module.path} {module.version} could not be downloaded: {why}")
    return Path(answer["Dir"])
