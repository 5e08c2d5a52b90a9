"""Tests of schemas and of values that are read by them."""

import enum
import random
import unittest
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mashumaro.types import Alias

from wattle import BlobRef, Failure, _json, _schema


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Tree:
    """A tree."""

    name: str
    children: "list[Tree]"


class Options(TypedDict):
    """Options."""

    zoom: int
    alpha: NotRequired[Annotated[float, "From 0 to 1."]]


@dataclass
class Empty:
    pass


@dataclass
class Defaults:
    count: int = 1
    names: Annotated[list[str], Alias("name-list")] = field(default_factory=list)
    inner: Empty = field(default_factory=Empty)
    drawn: list[int] = field(default_factory=lambda: [random.randint(0, 9)])


class Schemas(unittest.TestCase):
    def test_schemas_have_the_form_of_all_sdks(self) -> None:
        text = {"type": "string"}
        for of, expected in (
            (int | None, {"type": ["integer", "null"]}),
            (list[str], {"type": "array", "items": text}),
            (dict[str, str], {"type": "object", "additionalProperties": text}),
            (dict, {"type": "object", "additionalProperties": True}),
            (Color, {"type": "string", "enum": ["red", "blue"]}),
            (Color | None, {"type": ["string", "null"], "enum": ["red", "blue", None]}),
            (Literal["a"], {"type": "string", "const": "a"}),
            (int | str, {"anyOf": [{"type": "integer"}, text]}),
            (Any, {}),
            (object, {}),
            (date, {"type": "string", "format": "date"}),
            (BlobRef, text),
            (Empty, {"type": "object", "properties": {}}),
            (
                tuple[int, str],
                {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, text],
                    "maxItems": 2,
                    "minItems": 2,
                },
            ),
            (
                Options,
                {
                    "type": "object",
                    "description": "Options.",
                    "properties": {
                        "zoom": {"type": "integer"},
                        "alpha": {"type": "number", "description": "From 0 to 1."},
                    },
                    "required": ["zoom"],
                },
            ),
        ):
            with self.subTest(_schema.name_of(of)):
                self.assertEqual(_schema.schema(of), expected)

    def test_schemas_have_the_defaults_that_are_the_same_each_time(self) -> None:
        properties = _schema.schema(Defaults)["properties"]
        defaults = {name: it["default"] for name, it in properties.items() if "default" in it}
        self.assertEqual(defaults, {"count": 1, "name-list": [], "inner": {}})

    def test_a_type_that_contains_itself_has_its_fields_at_the_root(self) -> None:
        schema = _schema.schema(Tree)
        self.assertEqual(schema["properties"]["children"]["items"], {"$ref": "#/$defs/Tree"})
        self.assertEqual(schema["$defs"]["Tree"]["description"], "A tree.")
        tree = {"name": "a", "children": [{"name": "b", "children": []}]}
        self.assertEqual(_schema.decode("it", Tree, tree), Tree("a", [Tree("b", [])]))
        tree["children"] = [{"name": "b", "children": [{}]}]
        with self.assertRaisesRegex(Failure, r"at `children\[0\].children\[0\]`: missing field"):
            _schema.decode("it", Tree, tree)

    def test_only_closed_types_refuse_unknown_fields(self) -> None:
        self.assertNotIn("additionalProperties", _schema.schema(Options))
        self.assertIs(_schema.schema(Options, is_closed=True)["additionalProperties"], False)
        self.assertEqual(_schema.decode("it", Options, {"zoom": 1, "more": 2}), {"zoom": 1})
        with self.assertRaisesRegex(Failure, "unknown field `more`, expected `zoom`, `alpha`"):
            _schema.codec(Options, is_closed=True).decode("it", {"zoom": 1, "more": 2})

    def test_values_are_not_converted_to_other_types(self) -> None:
        for of, value in (
            (int, "2"),
            (int, 1.5),
            (int, True),
            (str, 5),
            (bool, 1),
            (float, "1"),
            (list[str], "abc"),
            (dict[str, int], [1]),
            (Literal["a"], "b"),
            (tuple[int, str], [1, 2]),
            (Color, "green"),
            (date, "tomorrow"),
        ):
            with self.subTest(_schema.name_of(of)), self.assertRaises(Failure) as raised:
                _schema.decode("it", of, value)
            self.assertEqual(raised.exception.code, "invalid")
        self.assertEqual(_schema.decode("it", float, 1), 1.0)
        self.assertEqual(_schema.decode("it", date, "2026-03-01"), date(2026, 3, 1))
        self.assertEqual(_schema.decode("it", Color, "red"), Color.RED)
        self.assertEqual(_schema.decode("it", int | str, "2"), "2")

    def test_a_type_without_schema_is_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "`complex` has no JSON Schema"):
            _schema.codec(complex)


class Json(unittest.TestCase):
    def test_values_of_types_become_json(self) -> None:
        value = {"tree": Tree("a", []), "day": date(2026, 3, 1), "color": Color.RED, "set": {1}}
        expected = '{"tree":{"name":"a","children":[]},"day":"2026-03-01","color":"red","set":[1]}'
        self.assertEqual(_json.write("it", value), expected)

    def test_values_that_are_no_json_are_named(self) -> None:
        for value, reason in (
            (float("inf"), "Out of range"),
            ("\ud800", "surrogates not allowed"),
            (object(), "a value of type `object` cannot be JSON"),
            ({(1,): 2}, "keys must be"),
        ):
            with self.assertRaisesRegex(Failure, f"write it as JSON: .*{reason}"):
                _json.write("it", value)

    def test_text_that_is_no_json_is_refused(self) -> None:
        for text in ("{", "1 2", "NaN", "[" * 100_000, b"\xff"):
            with self.assertRaisesRegex(Failure, "it is invalid"):
                _json.read("it", text)


if __name__ == "__main__":
    unittest.main()
