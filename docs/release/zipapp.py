"""kafkaform and all that it needs in one file, which any Python of the same version can run.

pex makes it. Unlike the standard library's zipapp, it unpacks compiled packages (librdkafka,
orjson) when the file first runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .build import DIST, build_wheel
from .lock import ROOT

FILE = "kafkaform.pyz"


def build_zipapp(folder: Path = DIST, environment: Path | None = None) -> str:
    """Write the file, for the Python and the computer that it is built with.

    environment: an environment that has kafkaform, to take everything from there and nothing from
    a package index.
    """
    if environment is None:
        origin = (str(build_wheel(folder)), "--constraints", str(ROOT / "constraints.txt"))
    else:
        origin = ("kafkaform", "--venv-repository", str(environment))
    # "prepend" puts the folder of its programs first on the PATH. The file becomes an environment
    # at its first run, so that later ones start as fast as an installed command.
    flags = ("--console-script", "kafkaform", "--venv", "prepend")
    start = ("--python-shebang", "/usr/bin/env python3", "--output-file", str(folder / FILE))
    subprocess.run([sys.executable, "-m", "pex", *origin, *flags, *start], check=True)
    return f"{folder / FILE}"
