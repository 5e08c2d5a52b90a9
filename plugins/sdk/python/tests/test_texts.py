"""Tests of functions for texts, whose outputs are those of the other SDKs."""

import unittest
from dataclasses import dataclass

from tests.vectors import VECTORS
from wattle import Failure, llm, prompt, redact


@dataclass
class Login:
    user: str
    password: str


class Completions(unittest.TestCase):
    def test_a_text_of_whitespace_is_no_answer(self) -> None:
        for text, expected in VECTORS["is_answer"]:
            with self.subTest(text):
                self.assertEqual(llm.Completion.of_text(text).is_answer(), expected)


class Prompts(unittest.TestCase):
    def test_templates_are_filled(self) -> None:
        for template, values, expected in VECTORS["fill"]:
            with self.subTest(template):
                self.assertEqual(prompt.fill(template, **values), expected)

    def test_texts_are_cut_between_characters(self) -> None:
        for text, chars, expected in VECTORS["head"]:
            with self.subTest(text):
                self.assertEqual(prompt.head(text, chars), expected)
        self.assertEqual(prompt.head("ab", -1), "")

    def test_quoted_texts_do_not_contain_the_marker(self) -> None:
        for text, chars, end, expected in VECTORS["quoted"]:
            with self.subTest(text):
                self.assertEqual(prompt.quoted(text, chars, end), expected)


class Redactions(unittest.TestCase):
    def test_fields_with_names_of_secrets_and_keys_in_texts_are_redacted(self) -> None:
        for document, expected in VECTORS["redacted"]:
            with self.subTest(document):
                self.assertEqual(redact.value(document), expected)
                if isinstance(document, str):
                    self.assertEqual(redact.text(document), expected)

    def test_additions_extend_the_default_lists(self) -> None:
        redaction = redact.Redaction(
            fields=["Id-Card"], harmless=["Secret-Kind"], prefixes=["glpat-"]
        )
        for document, expected in VECTORS["redacted_with_additions"]:
            with self.subTest(document):
                self.assertEqual(redaction.value(document), expected)

    def test_a_value_that_becomes_json_is_redacted_and_kept_as_it_is(self) -> None:
        logins = (Login("a", "x"), {"tokens": ("t", 3)})
        shown = [{"user": "a", "password": "[redacted]"}, {"tokens": ["[redacted]", 3]}]
        self.assertEqual(redact.value(logins), shown)
        self.assertEqual(logins[0], Login("a", "x"))
        with self.assertRaisesRegex(Failure, "write the document as JSON"):
            redact.value({"a": float("nan")})


if __name__ == "__main__":
    unittest.main()
