"""The plugin of the app."""

from wattle import node


@node
def greet(name: str) -> {"greeting": str}:
    """Greets a person."""
    return {"greeting": f"Hello, {name}!"}
