"""What a release consists of beside the package: a lock file with hashes, and a bill of materials.

    python -m release lock      examples/pipelines/ci/requirements.lock, from constraints.txt
    python -m release build     dist/: the wheel, a lock file with its hash too, sbom.cdx.json

In: pyproject.toml, constraints.txt, the lists of pinned jars. Needs pip-tools for `lock`.
"""
