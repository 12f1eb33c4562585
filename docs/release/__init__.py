"""What a release consists of beside the package: a lock file with hashes, and a bill of materials.

    python -m docs.release lock       examples/pipelines/ci/requirements.lock, from constraints.txt
    python -m docs.release build      dist/: the wheel, the source archive, a lock file with the
                                      wheel's hash too, sbom.cdx.json
    python -m docs.release try        install that wheel into an empty environment and make a plan
    python -m docs.release changelog  CHANGELOG.md, from the fragments of docs/changes
    python -m docs.release notes      print what CHANGELOG.md says of this version
    python -m docs.release zipapp    dist/kafkaform.pyz: everything in one file, for this Python
    python -m docs.release formula ADDRESS  dist/kafkaform.rb for Homebrew; ADDRESS: the repository
    python -m docs.release jars 4.3.1  the lists of pinned jars of this Kafka, for the sandbox
    python -m docs.release registry 2.6.13.Final  the list of this Apicurio Registry's files

In: pyproject.toml, constraints.txt, the lists of pinned jars. Needs pip-tools for `lock`, Maven for
`jars`, uv and pex (the extra `release`) for `formula` and `zipapp`.
"""
