"""How much a lower default deletes of the topics that follow it."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change, PathChange, add_findings
from kafkaform.core.identity import Identity
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka.kinds.topic.configs import Retention
from kafkaform_kafka.review import impact
from kafkaform_kafka.rules.topic_config_rows import COMPACTION_STARTED, RETENTION_CUT, SIZE_CUT

from ....kit.kafka.changes import FACTS
