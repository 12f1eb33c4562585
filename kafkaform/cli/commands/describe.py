"""`kafkaform describe`: what a system has, with or without a configuration."""

from __future__ import annotations

from ..offers.commands import make_app
from ..offers.questions import answer_question

app = make_app("describe", answer_question)
