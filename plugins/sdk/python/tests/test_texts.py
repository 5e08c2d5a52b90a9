"""Tests of functions for texts, whose outputs are those of the other SDKs."""

import unittest

from tests.vectors import VECTORS
from wattle import prompt


class Prompts(unittest.TestCase):
    def test_texts_are_cut_between_characters(self) -> None:
        for text, chars, expected in VECTORS["head"]:
            with self.subTest(text):
                self.assertEqual(prompt.head(text, chars), expected)
        self.assertEqual(prompt.head("ab", -1), "")

    def test_quoted_texts_do_not_contain_the_marker(self) -> None:
        for text, chars, end, expected in VECTORS["quoted"]:
            with self.subTest(text):
                self.assertEqual(prompt.quoted(text, chars, end), expected)


if __name__ == "__main__":
    unittest.main()
