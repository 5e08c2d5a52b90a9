"""Conversations: their messages in the form of the AI SDK, and the log of their threads.

An app that stores conversations in tables of its own reads them from the log of the thread with an
`Agent`.
"""

from wattle.chat import ui
from wattle.chat._agent import Agent
from wattle.chat._steps import Step, StepStatus

__all__ = [
    "Agent",
    "Step",
    "StepStatus",
    "ui",
]
