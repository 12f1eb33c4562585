"""`kafkaform explain`: why a system treats somebody or something as it does."""

from __future__ import annotations

from ..offers.commands import make_app
from ..offers.questions import answer_question

app = make_app("explain", answer_question)
