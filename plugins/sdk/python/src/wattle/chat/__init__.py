"""Conversations: their messages in the form of the AI SDK."""

from wattle.chat import ui

__all__ = ["ui"]
