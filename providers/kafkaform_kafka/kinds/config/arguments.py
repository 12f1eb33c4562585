"""The arguments that the types of configs share."""

from __future__ import annotations

from kafkaform.core.schema import (
    STRING,
    TEXT,
    AttributeSchema,
    map_of,
)

from ...protocol import config_pages

CONFIG = AttributeSchema(
    "config",
    map_of(TEXT),
    "Configs by name; a list is a list or text with commas. The plan shows and removes configs "
    'that are set but not in the map, unless config_mode is "additive". null leaves a config as it '
    "is.",
)
"""Without the checks of its values, and without known keys."""
MODE = AttributeSchema(
    "config_mode",
    STRING,
    "authoritative: configs that are not in config are removed; additive: they stay.",
    default="authoritative",
    choices=("authoritative", "additive"),
)
# KRaft keeps dynamic passwords in the metadata log without encryption; docs/configs.md warns.
SECRETS = (
    AttributeSchema(
        "secret_config",
        map_of(STRING),
        "Configs whose values a broker never reveals, by name: passwords, keys, and configs of "
        "plugins that the broker does not know.",
        secret=True,
        keys=config_pages.list_broker_secrets,
    ),
    AttributeSchema(
        "secret_config_version",
        STRING,
        "Any text. When it changes, secret_config is sent again.",
    ),
    AttributeSchema(
        "secret_keys",
        map_of(STRING),
        "The secret configs that are set, without their values.",
        computed=True,
    ),
)
