"""Redaction: replaces what looks like a secret in documents and texts that people read later.

Services repeat keys in their error messages, and documents have fields such as `api_key`. A plugin
that stores requests, outputs or failures redacts them first:

>>> value({"api_key": 4711, "error": "Incorrect API key: sk-abc123456"})
{'api_key': '[redacted]', 'error': 'Incorrect API key: [redacted]'}
>>> text("Bearer abc.def-123 is not valid")
'Bearer [redacted] is not valid'

An application adds names of its own:

>>> redaction = Redaction(fields=["phone"], harmless=["phone_type"])
>>> redaction.value({"home_phone": "555-0100", "phone_type": "home"})
{'home_phone': '[redacted]', 'phone_type': 'home'}

Redaction recognizes names and forms only. The host itself keeps the secrets of the operator away
from plugins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from wattle import _json
from wattle._whitespace import WHITESPACE

__all__ = ["Redaction", "text", "value"]

REDACTED = "[redacted]"
"""Text in place of a secret."""

FIELDS = ("api_key", "apikey", "authorization", "password", "secret", "token")
"""Parts of the names of fields whose values are redacted."""

COUNTS = ("tokens", "token_count")
"""Parts of the names of token counts, whose numbers are not secrets."""

PREFIXES = ("sk-", "sk_", "AIza", "ghp_", "xoxb-")
"""Prefixes of keys of well-known services."""

SHORTEST = 8
"""Minimum length of a key."""

PLAIN = ("", "null", "true", "false", REDACTED)
"""Values that are not secrets."""

WORD = re.compile(r"[A-Za-z0-9\-_.~+/=]+")
GAP = re.compile(r"[^A-Za-z0-9\-_.~+/=]+")
SPACE = re.compile(f"[{WHITESPACE}]*")
BARE_VALUE = re.compile(rf"""[^{WHITESPACE}&;,"'<>()\[\]{{}}]*""")
QUOTE = re.compile(r"""\\*"|'""")
DIGITS = re.compile(r"[0-9]*")

Span = tuple[int, int]
"""A part of a text: its start, and its end, which is not part of it."""


class Redaction:
    """Lists of what looks like a secret: the default lists, and the additions of an application.

    | list | default |
    |---|---|
    | fields | `api_key`, `apikey`, `authorization`, `password`, `secret`, `token` |
    | harmless fields | none; numbers in `tokens` and `token_count` are kept |
    | prefixes of keys | `sk-`, `sk_`, `AIza`, `ghp_`, `xoxb-` |
    """

    def __init__(
        self,
        *,
        fields: Iterable[str] = (),
        harmless: Iterable[str] = (),
        prefixes: Iterable[str] = (),
    ) -> None:
        """Creates a redaction with the default lists and additions.

        `fields` are parts of the names of fields whose values are redacted. Names are compared in
        lower case and with `_` for `-`. `harmless` are parts of the names of fields that are not
        secrets, even if the name has a part of a secret. `prefixes` are prefixes of keys. A key
        consists of ASCII letters, digits and the characters `-_.~+/=`, and has at least 8
        characters.
        """
        self._fields = (*FIELDS, *map(_normal, fields))
        self._harmless = tuple(map(_normal, harmless))
        self._prefixes = (*PREFIXES, *prefixes)

    def value(self, document: Any) -> Any:
        """Redacts a document. Returns another one, of plain JSON.

        Redacts the values of fields with the name of a secret, of any type except null and boolean,
        and all texts of the document as `text` does. Of a field with the name of a token count,
        only the texts are redacted. Raises `internal` if JSON cannot have the document.
        """
        return self._redact(_json.to_value("the document", document))

    def text(self, text: str) -> str:
        """Redacts what looks like a secret in a text.

        * keys: words with the prefix of a key at the start or after `=` or `/`,
        * credentials: words after `Bearer`, and after `Authorization: Basic`,
        * values of fields with the name of a secret, as in `password=...` and in JSON.
        """
        kept: list[str] = []
        # The two words before, and what separates them from the next one.
        before = previous = gap = ""
        at = 0
        while at < len(text):
            found = WORD.match(text, at)
            if found is None:
                gap = _match(GAP, text, at)
                kept.append(gap)
                at += len(gap)
                continue
            word, end = found[0], found.end()
            # `authorization=Bearer` is one word.
            field, is_assigned, scheme = previous.rpartition("=")
            if not is_assigned:
                field = before
            is_credential = (
                len(word) >= SHORTEST
                and not gap.strip(WHITESPACE)
                and _is_credential(field.lower(), scheme.lower())
            )
            secret = (at, end) if is_credential else self._secret(text, at, word)
            if secret is None:
                kept.append(word)
                at = end
            else:
                kept += (text[at : secret[0]], REDACTED)
                at = secret[1]
            before, previous, gap = previous, word, ""
        return "".join(kept)

    def _redact(self, document: Any) -> Any:
        if isinstance(document, str):
            return self.text(document)
        if isinstance(document, list):
            return [self._redact(item) for item in document]
        if isinstance(document, dict):
            return {name: self._field(name, it) for name, it in document.items()}
        return document

    def _field(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if not self._is_secret(name):
            return self._redact(value)
        return _without_texts(value) if _is_count(name) else REDACTED

    def _secret(self, text: str, at: int, word: str) -> Span | None:
        """Returns the secret that the word at a position contains or names."""
        return (
            self._assigned(text, at, word)
            or self._in_json(text, at + len(word), word)
            or self._key(at, word)
        )

    def _assigned(self, text: str, at: int, word: str) -> Span | None:
        """Returns the value after a `=` within a word whose name is that of a secret."""
        name = 0
        for index, char in enumerate(word):
            if char == "=":
                value = self._secret_value(word[name:index], text, at + index + 1)
                if value is not None:
                    return value
            if char in "=/":
                name = index + 1
        return None

    def _in_json(self, text: str, end: int, name: str) -> Span | None:
        """Returns the value of a JSON field whose name is the word that ends at `end`."""
        start = _value_in_json(text, end)
        return None if start is None else self._secret_value(name, text, start)

    def _key(self, at: int, word: str) -> Span | None:
        """Returns the key that begins with a word, or after `=` or `/` within it."""
        for start in range(len(word) - SHORTEST + 1):
            is_start = start == 0 or word[start - 1] in "=/"
            if is_start and word.startswith(self._prefixes, start):
                return at + start, at + len(word)
        return None

    def _secret_value(self, name: str, text: str, at: int) -> Span | None:
        """Returns the value at a position, without its quotes, if the name is that of a secret."""
        if not self._is_secret(name):
            return None
        quote = _match(QUOTE, text, at)
        start = at + len(quote)
        end = _end_of_value(text, start, quote)
        value = text[start:end]
        is_count = _is_count(name) and DIGITS.fullmatch(value) is not None
        return None if value in PLAIN or is_count else (start, end)

    def _is_secret(self, name: str) -> bool:
        name = _normal(name)
        is_harmless = any(part in name for part in self._harmless)
        return not is_harmless and any(part in name for part in self._fields)


def value(document: Any) -> Any:
    """Redacts a document with the default lists, as `Redaction.value` does."""
    return Redaction().value(document)


def text(text: str) -> str:
    """Redacts a text with the default lists, as `Redaction.text` does."""
    return Redaction().text(text)


def _match(expression: re.Pattern[str], text: str, at: int) -> str:
    """Returns what an expression matches at a position; empty if nothing."""
    found = expression.match(text, at)
    return "" if found is None else found[0]


def _is_credential(field: str, scheme: str) -> bool:
    """Returns true if a credential follows a scheme, which follows the name of a field."""
    return scheme == "bearer" or (scheme == "basic" and field.endswith("authorization"))


def _value_in_json(text: str, end: int) -> int | None:
    """Returns the start of the value of a JSON field whose name ends at `end`."""
    quote = _match(QUOTE, text, end)
    if not quote:
        return None
    colon = _after_space(text, end + len(quote))
    return _after_space(text, colon + 1) if text[colon : colon + 1] == ":" else None


def _after_space(text: str, at: int) -> int:
    return at + len(_match(SPACE, text, at))


def _end_of_value(text: str, start: int, quote: str) -> int:
    """Returns the end of a value after its opening quote, which is empty for a bare value."""
    if not quote:
        return start + len(_match(BARE_VALUE, text, start))
    # Each level of JSON doubles the backslashes of the level within it, and adds one to a quote. A
    # closing quote has as many as the opening one. Backslashes at the end of the value add a
    # multiple of twice the length of the quote. Any other number is that of a quote in the value.
    backslashes = 0
    for at in range(start, len(text)):
        is_closing = backslashes % (2 * len(quote)) == len(quote) - 1
        if is_closing and text[at] == quote[-1]:
            return at - (len(quote) - 1)
        backslashes = backslashes + 1 if text[at] == "\\" else 0
    return len(text)


def _is_count(name: str) -> bool:
    """Returns true if a field has the name of a token count."""
    name = _normal(name)
    return any(part in name for part in COUNTS)


def _without_texts(document: Any) -> Any:
    """Redacts the texts of a document, and keeps its numbers."""
    if isinstance(document, str):
        return REDACTED
    if isinstance(document, list):
        return [_without_texts(item) for item in document]
    if isinstance(document, dict):
        return {name: _without_texts(item) for name, item in document.items()}
    return document


def _normal(name: str) -> str:
    """Returns the name of a field in the form in which names are compared."""
    return name.lower().replace("-", "_")
