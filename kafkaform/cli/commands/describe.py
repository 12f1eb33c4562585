"""`kafkaform describe`: what a system has, with or without a configuration. It loads the questions
of this command only."""

from __future__ import annotations

from ..options.provider_commands import answer_question, make_app

app = make_app("describe", answer_question)
