"""The plugin of the app."""

from wattle import interrupt, node


@node
def greet(name: str) -> {"greeting": str}:
    """Greets a person."""
    return {"greeting": f"Hello, {name}!"}


@node
def approve(greeting: str) -> {"approved": bool}:
    """Asks a person whether the greeting may be sent."""
    # The run is interrupted until the answer arrives.
    return {"approved": interrupt.ask({"greeting": greeting}, schema=bool)}
