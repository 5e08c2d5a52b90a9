"""Tests of the plugin, without a host.

`wattle build` and then `.wattle/venv/bin/python -m unittest discover src` run them.
"""

import unittest

import app
from wattle import testing


class App(unittest.TestCase):
    def test_a_person_is_greeted_by_name(self) -> None:
        self.assertEqual(app.greet("Ada"), {"greeting": "Hello, Ada!"})

    def test_the_answer_decides(self) -> None:
        with testing.FakeHost().answer(False):
            self.assertEqual(app.approve("Hello, Ada!"), {"approved": False})
