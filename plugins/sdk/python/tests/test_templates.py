"""Runs the unit tests of new apps, as their authors do."""

import subprocess
import sys
import unittest
from pathlib import Path

TEMPLATES = Path(__file__).parents[4] / "host/cli/templates/python"
"""The templates of new apps: a folder for each kind, and one that all kinds have."""


class NewApps(unittest.TestCase):
    def test_unit_tests_of_new_apps_pass(self) -> None:
        folders = sorted(TEMPLATES.glob("*/src"))
        self.assertGreater(len(folders), 2)
        for folder in folders:
            with self.subTest(folder.parent.name):
                discover = [sys.executable, "-m", "unittest", "discover", folder]
                ended = subprocess.run(discover, capture_output=True, text=True, check=False)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertRegex(ended.stderr, r"Ran [1-9]\d* test")


if __name__ == "__main__":
    unittest.main()
