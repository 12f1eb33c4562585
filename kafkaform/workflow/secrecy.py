"""Keep secrets out of everything that workflow functions raise and return."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from ..apply.report import Report, Result
from ..core.errors import KafkaformError
from ..core.secret import KnownSecrets, mask_secrets, watch_secrets


@contextmanager
def keep_secrets(secrets: KnownSecrets) -> Iterator[None]:
    """Note every secret that is read inside the block, and mask them in errors that leave it."""
    with watch_secrets(secrets):
        try:
            yield
        except KafkaformError as error:
            error.rewrite(mask_secrets)
            # The errors of clients in its chain are not ours to rewrite, so they are cut off.
            raise error from None


def clean_report(report: Report) -> Report:
    """The report without secrets."""
    # Systems repeat in their error messages what was sent, such as an invalid config value.
    if report.stopped is not None:
        report.stopped.rewrite(mask_secrets)
    return replace(
        report,
        results=tuple(map(_clean_result, report.results)),
        invisible=tuple(replace(item, why=mask_secrets(item.why)) for item in report.invisible),
    )


def _clean_result(result: Result) -> Result:
    fault = result.outcome.fault
    if fault is None:
        return result
    fault = replace(fault, message=mask_secrets(fault.message), advice=mask_secrets(fault.advice))
    return replace(result, outcome=replace(result.outcome, fault=fault))
