"""Features of the cluster: ApiVersions reads them (KIP-584), UpdateFeatures (57) changes levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.protocol.admin import UpdateFeaturesRequest
from kafka.protocol.metadata import ApiVersionsRequest
from msgspec import Struct

from .answers import ItemAnswer
from .client import Wire
from .topics import ANSWER_MARGIN


class FeatureRow(Struct, frozen=True):
    """The features as one broker knows them."""

    epoch: int
    """Of the finalized levels; each change makes it greater. -1: the broker does not know them."""
    finalized: Mapping[str, int]
    """Feature -> the level of the whole cluster. Level 0 is left out."""
    supported: Mapping[str, tuple[int, int]]
    """Feature -> lowest and highest level that this broker's software supports."""


class Update(Struct, frozen=True):
    """A wanted level of one feature."""

    name: str
    level: int
    upgrade_type: int
    """See `UpgradeType`."""


class UpdateAnswer(Struct, frozen=True):
    """The answer to UpdateFeatures."""

    code: int
    """Of the request as a whole."""
    message: str | None
    items: Mapping[str, ItemAnswer]
    """By feature. Since Kafka 4.0, all features of a request succeed or fail together, and this is
    empty (KIP-1022)."""


def read_features(wire: Wire, timeout: float, node: str | None = None) -> FeatureRow:
    """The features. node: the broker to ask, None for any."""
    # Version 4 alone reports features whose lowest level is 0 (KAFKA-17011).
    request = ApiVersionsRequest(
        client_software_name="kafkaform", client_software_version="1", min_version=3
    )
    response = wire.send(request, timeout, node)
    return FeatureRow(
        response.finalized_features_epoch,
        {row.name: row.max_version_level for row in response.finalized_features or ()},
        {row.name: (row.min_version, row.max_version) for row in response.supported_features or ()},
    )


def update_features(
    wire: Wire, updates: Sequence[Update], timeout: float, *, validate: bool
) -> UpdateAnswer:
    """Change levels, or only check whether the controller would. timeout: seconds."""
    # Version 0 cannot check without changing, and knows no unsafe downgrade (KIP-778).
    row = UpdateFeaturesRequest.FeatureUpdateKey
    request = UpdateFeaturesRequest(
        timeout_ms=int(timeout * 1000),
        feature_updates=[
            row(
                feature=update.name,
                max_version_level=update.level,
                upgrade_type=update.upgrade_type,
            )
            for update in updates
        ],
        validate_only=validate,
        min_version=1,
    )
    response = wire.send(request, timeout + ANSWER_MARGIN)
    return UpdateAnswer(
        response.error_code,
        response.error_message,
        {
            item.feature: ItemAnswer(item.error_code, item.error_message)
            for item in getattr(response, "results", None) or ()
        },
    )
