"""Download single jars from the Maven repository."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import ConnectError, KafkaformError
from ..core.installation import render_extra_command
from .jars import OTHERWISE, Fetch, Jar

_ATTEMPTS = 3
_TIMEOUT = 60  # seconds without an answer


@contextmanager
def open_repository() -> Iterator[Fetch]:
    """Inside the block, jars can be downloaded. Raises KafkaformError without the sandbox extra."""
    # Certificates are checked against the operating system's list, too. Behind a company's proxy
    # only that list has the proxy's authority; `requests` brings one of its own.
    try:
        import truststore  # noqa: PLC0415  # the sandbox extra has it
    except ImportError:
        raise make_missing_extra_error("truststore") from None
    truststore.inject_into_ssl()
    try:
        yield _fetch_jar
    finally:
        truststore.extract_from_ssl()


def _fetch_jar(jar: Jar, folder: Path) -> Path:
    """Download this jar into a folder below `folder`. Raises ConnectError."""
    # One jar by its coordinate. If jgo resolved dependencies, it would mix kafka-clients 3.9.1 into
    # Kafka 4.3.1.
    fault: Exception | None = None
    for attempt in range(_ATTEMPTS):
        try:
            return _resolve_jar(jar, folder / f"{jar.file_name}.{attempt}")
        except (OSError, RuntimeError) as error:  # every error of requests is an OSError
            fault = error
            time.sleep(attempt)
    raise ConnectError(
        f"{jar.coordinate} could not be downloaded: {fault}",
        "check the network and HTTPS_PROXY; behind a proxy with its own certificate set "
        "REQUESTS_CA_BUNDLE to its file; without a network use jars that you already have: "
        f"{OTHERWISE}",
    )


def make_missing_extra_error(package: str) -> KafkaformError:
    """The error for an installation without the sandbox's packages."""
    return KafkaformError(
        f"the sandbox needs the package {package}, which is not installed",
        f"Run `{render_extra_command('sandbox')}`.",
    )


def _resolve_jar(jar: Jar, folder: Path) -> Path:
    try:
        from jgo.maven import MavenContext  # noqa: PLC0415  # the sandbox extra has it
    except ImportError:
        raise make_missing_extra_error("jgo") from None
    context = MavenContext(repo_cache=folder, local_repos=[], timeout=_TIMEOUT)
    component = context.project(jar.group, jar.artifact).at_version(jar.version)
    return component.artifact(classifier=jar.classifier, packaging=jar.packaging).resolve()
