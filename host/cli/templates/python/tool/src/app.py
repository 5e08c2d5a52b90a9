"""A plugin with a tool."""

from typing import Annotated

from wattle import node, tool, tools


@tool(read_only=True)
def count_words(text: Annotated[str, "The text."]) -> dict:
    """Counts the words of a text."""
    return {"words": len(text.split())}


@node
def call(text: str) -> {"words": int}:
    """Calls the tool as an agent does."""
    return tools.Call("{{name}}/count_words", {"text": text}).call().structured
