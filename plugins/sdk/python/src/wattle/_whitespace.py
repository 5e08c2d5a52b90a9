"""Whitespace of Unicode, as the Rust SDK has it. The methods of `str` have another list."""

from __future__ import annotations

import re

WHITESPACE = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""The characters of whitespace, for `strip` and for a class of a regular expression."""

WORD = re.compile(f"[^{WHITESPACE}]+")


def words_of(text: str) -> list[str]:
    """Returns the words of a text: what is between whitespace."""
    return WORD.findall(text)
