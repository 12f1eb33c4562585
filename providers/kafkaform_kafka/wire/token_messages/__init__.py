"""Requests and answers about delegation tokens, which kafka-python has no schemas for.

Source of the fields: KIP-48, KIP-373 (version 3 of creating and describing).
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

_HERE = __name__


class CreateDelegationTokenRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]  # kafka-python has no types
    """Key 38."""


class CreateDelegationTokenResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]  # kafka-python has no types
    """Error and token."""


class RenewDelegationTokenRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]  # kafka-python has no types
    """Key 39."""


class RenewDelegationTokenResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]  # kafka-python has no types
    """Error and the time when the token expires now."""


class ExpireDelegationTokenRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]  # kafka-python has no types
    """Key 40."""


class ExpireDelegationTokenResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]  # kafka-python has no types
    """Error and the time when the token expires now."""


class DescribeDelegationTokenRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]  # kafka-python has no types
    """Key 41."""


class DescribeDelegationTokenResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]  # kafka-python has no types
    """The tokens that the asker may see; a token that he may not is left out without an error."""
