"""Requests and answers about delegation tokens, which kafka-python has no schemas for.

Source of the fields: KIP-48, KIP-373 (version 3 of both requests).
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

_HERE = __name__


class CreateDelegationTokenRequest(ApiMessage, load_json=_HERE):
    """Key 38."""


class CreateDelegationTokenResponse(ApiMessage, load_json=_HERE):
    """Error and token."""


class DescribeDelegationTokenRequest(ApiMessage, load_json=_HERE):
    """Key 41."""


class DescribeDelegationTokenResponse(ApiMessage, load_json=_HERE):
    """The tokens that the asker may see; a token that he may not is left out without an error."""
