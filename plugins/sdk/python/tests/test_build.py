"""Tests of the build, without the tool that makes the component."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

from wattle import _build
from wattle.__main__ import main

SDK = Path(_build.__file__).parent.parent

PLUGIN = """
    import wattle
    from wattle import node, llm
    from helpers import words

    wattle.manifest('llm = ["chat"]')

    @node
    def count(text: str) -> {"words": int}:
        import colorsys
        return {"words": words(text)}
"""

HELPERS = """
    def words(text):
        from xml.etree import ElementTree
        return len(text.split())
"""

INSPECT = """
    import sys
    from pathlib import Path
    from wattle import _build
    from wattle._registry import separate_plugin

    for module in sys.argv[2:]:
        with separate_plugin():
            try:
                parts = _build.inspect(module, Path(sys.argv[1]))
                print(_build.world(parts), _build.entry(module, parts), sep="\\n", end="\\0")
            except _build.BuildError as error:
                print(f"error: {error}", end="\\0")
"""


class Case(unittest.TestCase):
    """Each test has a folder with a plugin, which another process imports."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(textwrap.dedent(text), "utf-8")

    def inspect(self, *modules: str) -> list[str]:
        """Inspects modules in one process, whose start takes longer than all else."""
        environment = {**os.environ, "PYTHONPATH": str(SDK), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", textwrap.dedent(INSPECT), str(self.folder), *modules]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return run.stdout.split("\0")[:-1]


class Inspection(Case):
    def test_a_component_has_what_its_plugin_declares_and_imports(self) -> None:
        self.write("app.py", PLUGIN)
        self.write("helpers.py", HELPERS)
        (told,) = self.inspect("app")
        world = told[told.index("world ") : told.index("}\n")]
        self.assertEqual(
            world.split("\n")[1:-1],
            [
                "    import wattle:plugin/blob@0.1.0;",
                "    import wattle:plugin/llm@0.1.0;",
                "    import wattle:plugin/log@0.1.0;",
                "    export wattle:plugin/node@0.1.0;",
            ],
        )
        self.assertIn("_start.provide(['blob', 'llm', 'log'])", told)
        late = "['colorsys', 'xml.etree', 'xml.etree.ElementTree']"
        self.assertIn(f"_start.load('app', {late})", told)
        self.assertIn("_start.keep_sources(['helpers', 'app'])", told)
        self.assertIn("from wattle._export.node import Node", told)
        self.assertNotIn("import Tool", told)

    def test_a_setting_of_a_zone_imports_the_settings(self) -> None:
        plugin = """
            from wattle import clock, node
            {}

            @node
            def stamp() -> {{"date": str}}:
                return {{"date": clock.now_in().iso()}}
        """
        self.write("plain.py", plugin.format(""))
        self.write("zoned.py", plugin.format('ZONE = clock.ZoneSetting("time_zone")'))
        plain, zoned = self.inspect("plain", "zoned")
        self.assertIn("_start.provide(['blob', 'clock', 'log'])", plain)
        self.assertIn("_start.provide(['blob', 'clock', 'log', 'settings'])", zoned)

    def test_conversations_need_threads_and_no_models(self) -> None:
        self.write(
            "app.py",
            """
            from wattle.chat import Chat, chat_endpoints

            chat_endpoints(Chat("notes"), "/api")
            """,
        )
        (told,) = self.inspect("app")
        self.assertIn("_start.provide(['blob', 'log', 'runs'])", told)
        self.assertIn("from wattle._export.web import Web", told)

    def test_errors_of_a_plugin_have_their_place(self) -> None:
        cases = {
            "nothing": ("x = 1", "`nothing` declares nothing; decorate a function"),
            "untyped": (
                "import wattle\n\n@wattle.node\ndef f(text: str): ...",
                "untyped.py:3: `f` has no return type",
            ),
            "raising": ("def f():\n    return 1 / 0\nf()", 'raising.py", line 2, in f\n'),
            "lacking": ("import no_such_module", "No module named 'no_such_module'"),
            "broken": ("x = (", "SyntaxError"),
        }
        for name, (text, _) in cases.items():
            self.write(f"{name}.py", text)
        for told, (_, reason) in zip(self.inspect(*cases), cases.values(), strict=True):
            self.assertTrue(told.startswith("error: "), told)
            self.assertIn(reason, told)
            self.assertNotIn("importlib", told)

    def test_a_bad_manifest_is_named(self) -> None:
        declared = _build.Plugin(manifest="llm = [")
        with self.assertRaisesRegex(_build.BuildError, "the manifest is not TOML: Invalid value"):
            _build._manifest(declared)

    def test_the_contract_is_part_of_the_package(self) -> None:
        self.assertTrue((_build.CONTRACT / "node.wit").is_file())
        text = (_build.CONTRACT / "worlds.wit").read_text("utf-8")
        self.assertIn(f"package wattle:plugin@{_build.VERSION};", text)


class Output(unittest.TestCase):
    def test_a_custom_section_has_its_length(self) -> None:
        self.assertEqual(_build.custom_section("ab", b"c"), b"\x00\x04\x02abc")
        section = _build.custom_section("ab", b"c" * 200)
        self.assertEqual(section[:3], b"\x00\xcb\x01")

    def test_the_command_names_what_is_missing(self) -> None:
        with (
            mock.patch.object(_build, "find_spec", lambda name: None),
            contextlib.redirect_stderr(io.StringIO()) as errors,
        ):
            self.assertEqual(main(["build", "app"]), 1)
        # The package is in no registry.
        self.assertIn("pip install '../wattle/plugins/sdk/python[build]'", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
