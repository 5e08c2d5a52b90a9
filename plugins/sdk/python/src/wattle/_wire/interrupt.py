"""Calls of `interrupt`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import interrupt as raw

from wattle import _json
from wattle._wire._convert import call, raw_extra, text, value
from wattle.interrupt import Question


def ask(question: Question) -> Any:
    """Asks a question. Without an answer, the host ends the plugin here."""
    payload = _json.write("the question", question.payload)
    schema = text("the schema of the answer", question.response_schema)
    return value(call(raw.ask, raw.Question(payload, schema, raw_extra(question.extra))))
