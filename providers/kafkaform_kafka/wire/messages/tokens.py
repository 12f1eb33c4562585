"""Short, because their JSON files define them: messages about delegation tokens (KIP-48, KIP-373),
which kafka-python does not have."""

from __future__ import annotations

from .definition import define_message

CreateDelegationTokenRequest = define_message("CreateDelegationTokenRequest")
CreateDelegationTokenResponse = define_message("CreateDelegationTokenResponse")
RenewDelegationTokenRequest = define_message("RenewDelegationTokenRequest")
RenewDelegationTokenResponse = define_message("RenewDelegationTokenResponse")
ExpireDelegationTokenRequest = define_message("ExpireDelegationTokenRequest")
ExpireDelegationTokenResponse = define_message("ExpireDelegationTokenResponse")
DescribeDelegationTokenRequest = define_message("DescribeDelegationTokenRequest")
DescribeDelegationTokenResponse = define_message("DescribeDelegationTokenResponse")
