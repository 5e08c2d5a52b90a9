"""Tests of the examples on pages and in the documentation of the modules."""

import doctest
import importlib
import pkgutil
import re
import unittest
from pathlib import Path

import wattle
from wattle._registry import separate_plugin

SDK = Path(__file__).parent.parent

PAGES = [SDK / "README.md", SDK.parents[2] / "host/docs/first-app.md"]

WITH_BINDINGS = ("wattle._wire", "wattle._export", "wattle.__main__")
"""Modules that need the bindings of a component, and the command."""

MODULES = [
    module.name
    for module in pkgutil.walk_packages(wattle.__path__, "wattle.")
    if not module.name.startswith(WITH_BINDINGS)
]


class Examples(unittest.TestCase):
    def test_examples_of_the_pages_run(self) -> None:
        for page in PAGES:
            text = page.read_text("utf-8")
            examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            self.assertGreater(len(examples), 0, page)
            for number, example in enumerate(examples):
                with self.subTest(page=page.name, number=number), separate_plugin():
                    names = {"__name__": f"example_{number}"}
                    exec(compile(example, str(page), "exec"), names)  # noqa: S102
                    self.run_cases(names)

    def run_cases(self, names: dict[str, object]) -> None:
        """Runs the test cases that an example defines."""
        for case in names.values():
            if isinstance(case, type) and issubclass(case, unittest.TestCase):
                result = unittest.TestResult()
                unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
                self.assertEqual((result.testsRun, result.errors, result.failures), (1, [], []))

    def test_examples_of_the_modules_run(self) -> None:
        tried = 0
        for name in ["wattle", *MODULES]:
            with self.subTest(name):
                result = doctest.testmod(importlib.import_module(name))
                self.assertEqual(result.failed, 0)
                tried += result.attempted
        self.assertGreater(tried, 10)


class Names(unittest.TestCase):
    def test_each_listed_name_exists(self) -> None:
        for name in ["wattle", *MODULES]:
            module = importlib.import_module(name)
            for listed in getattr(module, "__all__", []):
                self.assertTrue(hasattr(module, listed), f"{name}.{listed}")


if __name__ == "__main__":
    unittest.main()
