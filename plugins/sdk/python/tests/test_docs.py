"""Tests of the examples in the README and in the documentation of the modules."""

import doctest
import importlib
import pkgutil
import re
import unittest
from pathlib import Path

import wattle
from wattle._registry import separate_plugin

README = Path(__file__).parent.parent / "README.md"

WITH_BINDINGS = ("wattle._wire", "wattle._export", "wattle.__main__")
"""Modules that need the bindings of a component, and the command."""

MODULES = [
    module.name
    for module in pkgutil.walk_packages(wattle.__path__, "wattle.")
    if not module.name.startswith(WITH_BINDINGS)
]


class Examples(unittest.TestCase):
    def test_examples_of_the_readme_run(self) -> None:
        text = README.read_text("utf-8")
        examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(examples), 5)
        for number, example in enumerate(examples):
            with self.subTest(number), separate_plugin():
                names = {"__name__": f"readme_{number}"}
                exec(compile(example, str(README), "exec"), names)  # noqa: S102
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
