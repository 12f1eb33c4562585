"""A room: what a container is without a runtime, made of Linux namespaces.

It has a root file system of its own with this computer's system folders (read-only) and Python,
folders that are mounted into it, and an empty /tmp. Needs root, `unshare`, `mount` and `chroot`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

TOOLS = ("unshare", "mount", "chroot")
SYSTEM = ("usr", "etc", "bin", "sbin", "lib", "lib64")
SECONDS = 500


class Room(NamedTuple):
    """mounts: path inside -> folder outside. user: UID:GID."""

    mounts: Mapping[str, Path]
    environment: Mapping[str, str]
    folder: str = "/"
    user: str = "0:0"
    read_only: bool = False

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command inside."""
        with tempfile.TemporaryDirectory() as root:
            script = "\n".join(self._render_script(Path(root), command))
            return subprocess.run(
                ["unshare", "--mount", "sh", "-ec", script],
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )

    def _render_script(self, root: Path, command: Sequence[str]) -> list[str]:
        lines = ["mount --make-rprivate /", f"mount -t tmpfs -o mode=755 room {root}"]
        lines += [f"mkdir -p {root}/tmp {root}/proc {root}/dev"]
        inside: dict[str, Path] = {}
        for name in SYSTEM:
            path = Path("/", name)
            if path.is_symlink():
                lines.append(f"ln -s {path.readlink()} {root}/{name}")
            elif path.is_dir():
                inside[str(path)] = path
        prefix = Path(sys.base_prefix)
        if not prefix.is_relative_to("/usr"):
            inside[str(prefix)] = prefix
        for place, source in (*inside.items(), *self.mounts.items()):
            target = shlex.quote(f"{root}{place}")
            lines += [f"mkdir -p {target}", f"mount --bind {shlex.quote(str(source))} {target}"]
        lines += [f"mount --rbind /dev {root}/dev", f"mount --rbind /proc {root}/proc"]
        lines += [f"mount -t tmpfs -o mode=1777 tmp {root}/tmp"]
        closed = (*inside, "") if self.read_only else tuple(inside)
        lines += [f"mount -o remount,ro,bind {shlex.quote(f'{root}{place}')}" for place in closed]
        words = [f"{name}={value}" for name, value in self.environment.items()]
        step = f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"
        chroot = ["chroot", f"--userspec={self.user}", str(root), "env", "-i", *words]
        return [*lines, f"exec {shlex.join([*chroot, 'sh', '-ec', step])}"]


@cache
def find_obstacle() -> str:
    """Why no room can be made here, or an empty text."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} is not on the path"
    if os.geteuid() != 0:
        return "only root can mount folders"
    done = Room({}, {"PATH": os.defpath}).run("true")
    return f"no mounts can be made here: {done.stderr.strip()}" if done.returncode else ""
