"""Tests of the plugin, without a host.

`wattle build` and then `.wattle/venv/bin/python -m unittest discover src` run them.
"""

import unittest

import app
from wattle import ToolContext, testing


class CountWords(unittest.TestCase):
    def test_words_are_counted(self) -> None:
        output = testing.call_tool(app.count_words, ToolContext(), {"text": " two words "})
        self.assertEqual(output.structured, {"words": 2})
