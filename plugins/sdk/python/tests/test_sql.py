"""Tests of the rows of results."""

import unittest
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from mashumaro.types import Alias

from wattle import Failure, code, sql
from wattle.sql import Json, Other, Rows


@dataclass
class Place:
    lat: float


class Pair(NamedTuple):
    one: int
    two: int


@dataclass
class Documents:
    it: Annotated[Any, Json]


@dataclass
class Renamed:
    document: Annotated[Any, Json, Alias("it")]


class Entry(TypedDict):
    n: int


@dataclass
class Item:
    n: int


def one(of: Any) -> Any:
    """Returns a type with one column."""
    return TypedDict("One", {"it": of})  # type: ignore[operator]


def rows(value: Any) -> Rows:
    return Rows.new(["it", "unused"], [[value, None]])


def entries(count: int, *, truncated: bool = False, newest_first: bool = False) -> Rows:
    numbers = range(count, 0, -1) if newest_first else range(1, count + 1)
    found = Rows.new(["n"], [[number] for number in numbers])
    found.truncated = truncated
    return found


class Types(unittest.TestCase):
    def test_values_of_both_databases_fit_a_type(self) -> None:
        for value, of, expected in (
            (True, bool, True),
            (0, bool, False),
            (7, int, 7),
            (Other("7"), int, 7),
            (2, float, 2.0),
            (Other("1.50"), float, 1.5),
            ("lamp", str, "lamp"),
            (Other("2025-01-15"), str, "2025-01-15"),
            (Other("2025-01-15"), date, date(2025, 1, 15)),
            ("OPEN", Literal["OPEN", "CLOSED"], "OPEN"),
            (None, str | None, None),
            (Json(None), str | None, None),
            ("a", str | None, "a"),
            (b"\1\2", bytes, b"\1\2"),
            ([1, 2], list[int], [1, 2]),
            ("[1, 2]", Pair, Pair(1, 2)),
            ('{"lat": 35.5}', Place, Place(35.5)),
            ({"lat": 35}, Place | None, Place(35.0)),
            # Only the type decides, so that text such as `12` stays text.
            ("12", Any, "12"),
        ):
            with self.subTest(f"{value!r} {of}"):
                found = rows(value).one().read(one(of))["it"]
                self.assertEqual((found, type(found)), (expected, type(expected)))

    def test_documents_are_parsed_from_text(self) -> None:
        for value, document in (
            ("[1]", [1]),
            ("null", None),
            (Json("text"), "text"),
            (None, None),
            ({"a": 1}, {"a": 1}),
        ):
            self.assertEqual(rows(value).read_all(Documents), [Documents(document)])
            self.assertEqual(rows(value).read_first(Renamed), Renamed(document))

    def test_errors_name_the_column(self) -> None:
        for found, of, message in (
            (rows("x"), int, "read a row: column `it`: must be integer"),
            (Rows.new([], [[]]), int, "read a row: missing field `it`"),
            (rows("x"), list, "read a row: column `it`: must be array"),
            (rows('{"lat": "x"}'), Place, "read a row: column `it.lat`: must be number"),
        ):
            with self.assertRaises(Failure) as raised:
                found.read_first(one(of))
            self.assertEqual(
                (raised.exception.code, raised.exception.message), ("invalid", message)
            )
        for text in ("[", "[1] 2"):
            with self.assertRaisesRegex(
                Failure, "^read a row: column `it`: the document is invalid"
            ):
                rows(text).read_first(Documents)

    def test_all_rows_or_the_first_one_are_read(self) -> None:
        found = Rows.new(["it"], [["a"], ["b"]])
        self.assertEqual(found.read_all(one(str)), [{"it": "a"}, {"it": "b"}])
        self.assertEqual(found.read_first(one(str)), {"it": "a"})
        self.assertIsNone(Rows().read_first(one(str)))
        self.assertEqual(found.read_all(dict[str, Any]), [{"it": "a"}, {"it": "b"}])

    def test_only_a_whole_result_is_whole(self) -> None:
        self.assertEqual(len(entries(2).whole()), 2)
        with self.assertRaises(Failure) as raised:
            entries(2, truncated=True).whole()
        self.assertEqual(raised.exception.code, code.LIMIT)


class Lists(unittest.TestCase):
    def test_a_page_ends_at_its_limits_or_with_the_list(self) -> None:
        # An item takes seven bytes, and its comma one.
        for count, truncated, limit, budget, length, next in (
            (0, False, 3, 100, 0, None),
            (3, False, 3, 100, 3, None),
            (3, False, 3, 24, 3, None),
            (4, False, 3, 100, 3, 3),
            (2, True, 3, 100, 2, 2),
            (3, False, 3, 23, 2, 2),
            # A page has an item, however large.
            (3, False, 3, 0, 1, 1),
            (1, False, 3, 0, 1, None),
        ):
            with self.subTest(f"{count} {truncated} {limit} {budget}"):
                page = entries(count, truncated=truncated).page(Item, limit, budget)
                found = (len(page.items), page.next_cursor(lambda last: last.n))
                self.assertEqual(found, (length, next))
                self.assertEqual(page.has_more, next is not None)

    def test_the_budget_of_a_page_is_in_bytes(self) -> None:
        found = Rows.new(["it"], [["東京"], ["東京"]])
        size = len('{"it":"東京"},'.encode())
        self.assertEqual(len(found.page(one(str), 2, 2 * size).items), 2)
        self.assertEqual(len(found.page(one(str), 2, 2 * size - 1).items), 1)

    def test_a_result_that_is_truncated_before_its_first_row_is_no_page(self) -> None:
        with self.assertRaises(Failure) as raised:
            entries(0, truncated=True).page(Item, 3, 100)
        self.assertEqual(raised.exception.code, code.LIMIT)

    def test_newest_rows_are_in_order_within_the_budget(self) -> None:
        for count, is_truncated, budget, items, truncated, rest in (
            (3, False, 100, [{"n": 1}, {"n": 2}, {"n": 3}], False, 76),
            (3, False, 17, [{"n": 2}, {"n": 3}], True, 1),
            (3, False, 7, [], True, 7),
            (1, True, 100, [{"n": 1}], True, 92),
        ):
            found = entries(count, truncated=is_truncated, newest_first=True)
            for of in (Item, Entry):
                expected = sql.Newest(items, truncated, rest)
                self.assertEqual(found.newest(of, budget), expected)


if __name__ == "__main__":
    unittest.main()
