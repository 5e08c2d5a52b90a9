"""Tests of the published package: its files, and a plugin that uses it."""

import os
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import tomllib
import unittest
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

SDK = Path(__file__).parent.parent
LICENSE = SDK.parents[2] / "LICENSE"

PLUGIN = """
    from wattle import node

    @node
    def count_words(text: str) -> {"words": int}:
        return {"words": len(text.split())}
"""

RUN = """
    import wattle
    from app import count_words
    from wattle import Context, testing

    print(wattle.__file__)
    print(testing.run_node(count_words, Context(), {"text": "two words"}).update("words"))
"""


def run(*arguments: str | Path, folder: Path, modules: Path | None = None) -> str:
    """Runs Python in a folder, with the modules of another one. Returns what it prints."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)
    if modules is not None:
        environment["PYTHONPATH"] = str(modules)
    command = [sys.executable, *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise AssertionError(ended.stderr)
    return ended.stdout


def sources() -> set[str]:
    """Returns the files of the sources, of which the contract is a link."""
    walk = os.walk(SDK / "src", followlinks=True)
    files = [Path(folder, name) for folder, _, names in walk for name in names]
    return {str(it.relative_to(SDK / "src")) for it in files if "__pycache__" not in it.parts}


class Package(unittest.TestCase):
    """Wheel and sources are built once, by the backend that authors build them with."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory())).resolve()
        run("-m", "hatchling", "build", "-d", cls.folder, folder=SDK)
        (cls.wheel,) = cls.folder.glob("*.whl")
        (cls.sources,) = cls.folder.glob("*.tar.gz")

    def test_the_package_has_all_modules_and_the_contract(self) -> None:
        with ZipFile(self.wheel) as wheel:
            names = {it for it in wheel.namelist() if ".dist-info/" not in it}
        self.assertEqual(names, sources())
        self.assertLess({"wattle/py.typed", "wattle/wit/node.wit"}, names)

    def test_the_wheel_and_the_sources_have_the_license(self) -> None:
        with ZipFile(self.wheel) as wheel:
            (name,) = (it for it in wheel.namelist() if it.endswith("/licenses/LICENSE"))
            of_wheel = wheel.read(name)
        with tarfile.open(self.sources) as sources:
            (member,) = (it for it in sources.getmembers() if it.name.endswith("/LICENSE"))
            self.assertTrue(member.isfile(), "a link leads nowhere outside of the repository")
            of_sources = sources.extractfile(member).read()
        self.assertEqual([of_wheel, of_sources], [LICENSE.read_bytes()] * 2)

    def test_the_package_needs_the_packages_of_its_project_file(self) -> None:
        project = tomllib.loads((SDK / "pyproject.toml").read_text("utf-8"))["project"]
        with ZipFile(self.wheel) as wheel:
            (name,) = (it for it in wheel.namelist() if it.endswith(".dist-info/METADATA"))
            metadata = HeaderParser().parsestr(wheel.read(name).decode())
        needed = [it for it in metadata.get_all("Requires-Dist", []) if "extra ==" not in it]
        self.assertEqual(sorted(needed), sorted(project["dependencies"]))
        self.assertEqual(metadata["Requires-Python"], project["requires-python"])

    def test_the_installed_package_runs_a_node(self) -> None:
        installed, plugin = self.folder / "installed", self.folder / "plugin"
        # The packages that it needs are those of the tests.
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
        pip += ["--no-deps", "--no-compile", "--target"]
        run(*pip, installed, self.wheel, folder=self.folder)
        plugin.mkdir()
        (plugin / "app.py").write_text(textwrap.dedent(PLUGIN), "utf-8")
        (plugin / "run.py").write_text(textwrap.dedent(RUN), "utf-8")
        printed = run("run.py", folder=plugin, modules=installed)
        self.assertEqual(printed.split("\n"), [str(installed / "wattle/__init__.py"), "2", ""])


class Backend(unittest.TestCase):
    def test_authors_build_the_package_with_the_backend_of_the_tests(self) -> None:
        system = tomllib.loads((SDK / "pyproject.toml").read_text("utf-8"))["build-system"]
        pins = (SDK / "requirements.txt").read_text("utf-8").split()
        self.assertLessEqual(set(system["requires"]), set(pins))


if __name__ == "__main__":
    unittest.main()
