#!/bin/sh
# Installs kafkaform into a new virtual environment: sh ci/install.sh FOLDER
# The packages that it needs come from the lock file, with hashes. kafkaform itself is the code of
# this checkout, so a pipeline that pins its commit has pinned the code.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$1

python3 -I -c 'import sys; sys.exit("kafkaform needs Python 3.11" if sys.version_info < (3, 11) else 0)'
python3 -I -m venv "$venv"
"$venv/bin/python" -I -m pip install --quiet --disable-pip-version-check \
  --require-hashes --only-binary=:all: -r "$root/examples/pipelines/ci/requirements.lock"
"$venv/bin/python" -I -c '
import pathlib, sys, sysconfig
root, place = sys.argv[1], pathlib.Path(sysconfig.get_path("purelib"), "kafkaform.pth")
place.write_text(f"{root}\n{root}/providers\n", encoding="utf-8")
' "$root"
"$venv/bin/python" -I -m kafkaform version
