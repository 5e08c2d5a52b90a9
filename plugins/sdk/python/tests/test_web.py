"""Tests of requests, and of responses to failed requests."""

import unittest
from dataclasses import dataclass
from typing import Any, Self

from wattle import Failure, Request, Response, web
from wattle.testing import FakeHost
from wattle.web import ErrorDocument, ErrorForm, PageQuery, refuse, respond, status


def page(limit: str | None, offset: str | None) -> PageQuery:
    query = (("limit", limit), ("offset", offset))
    pairs = [(name, text) for name, text in query if text is not None]
    return Request("GET", "/", query_params=pairs).page(50, 200)


def has_tag(header: str, tags: str, tag: str) -> bool:
    return Request("GET", "/", headers=[(header.lower(), tags)]).has_tag(header, tag)


class Requests(unittest.TestCase):
    def test_pages_have_a_default_and_bounds(self) -> None:
        for limit, offset, expected in (
            (None, None, PageQuery(50, 0)),
            ("7", "21", PageQuery(7, 21)),
            ("0", None, PageQuery(1, 0)),
            ("201", None, PageQuery(200, 0)),
        ):
            self.assertEqual(page(limit, offset), expected)

    def test_limits_and_offsets_are_whole_numbers(self) -> None:
        for limit, offset, name in (
            ("many", None, "limit"),
            ("", None, "limit"),
            ("1_0", None, "limit"),
            ("٣", None, "limit"),
            (" 7", None, "limit"),
            (str(2**32), None, "limit"),
            ("9" * 5_000, None, "limit"),
            ("7", "-1", "offset"),
        ):
            with self.assertRaises(Failure) as raised:
                page(limit, offset)
            failure = raised.exception
            self.assertEqual(failure.status(), 400)
            self.assertEqual(failure.message, f"`{name}` must be a whole number")

    def test_numbers_have_64_bits(self) -> None:
        def number(text: str) -> int | None:
            return Request("GET", "/", query_params=[("after", text)]).number("after")

        self.assertEqual(number(f"-{2**63}"), -(2**63))
        self.assertEqual(number("+7"), 7)
        with self.assertRaises(Failure):
            number(str(2**63))

    def test_tags_of_a_header_are_compared_whole(self) -> None:
        for tags, expected in (
            ('"5"', True),
            ('"1", "5"', True),
            ("*", True),
            ('"15"', False),
            ("5", False),
            ('W/"5"', False),
            ("", False),
        ):
            with self.subTest(tags):
                self.assertEqual(has_tag("if-match", tags, '"5"'), expected)
        self.assertFalse(Request("GET", "/").has_tag("if-match", '"5"'))

    def test_weak_tags_match_in_if_none_match(self) -> None:
        for tags, tag in (('W/"5"', '"5"'), ('"1", "5"', 'W/"5"')):
            self.assertTrue(has_tag("If-None-Match", tags, tag))
            self.assertFalse(has_tag("if-match", tags, tag))


@dataclass
class Envelope(ErrorForm):
    """A form that has a status for each failure, and the path of the request."""

    path: str
    code: int

    @classmethod
    def new(cls, request: Request, status: int, failure: Failure) -> Self:
        return cls(request.path, status)

    @classmethod
    def status_of(cls, failure: Failure) -> int | None:
        return failure.status() or 500


def response_of(form: type[ErrorForm], failure: Failure) -> tuple[int, Any]:
    def work() -> Response:
        raise failure

    response = respond(Request("GET", "/p"), work, form)
    return response.status, response.json_body()


class Bodies(unittest.TestCase):
    def test_half_of_a_surrogate_pair_is_a_bad_request(self) -> None:
        for body in (rb'{"a": "\ud83c"}', rb'{"\uDF5C": 1}'):
            with self.assertRaises(Failure) as raised:
                Request("POST", "/", body=body).json()
            self.assertEqual((raised.exception.status(), raised.exception.code), (400, "invalid"))
        for body, text in ((rb'"\ud83c\udf5c"', "🍜"), (rb'"\\ud83c"', r"\ud83c")):
            self.assertEqual(Request("POST", "/", body=body).json(), text)


class Responses(unittest.TestCase):
    def test_failures_are_responses_in_the_form_of_the_app(self) -> None:
        gone = refuse(status.GONE, "too late")
        defect = Failure.internal("down")
        with FakeHost() as host:
            self.assertEqual(response_of(ErrorDocument, gone), (410, {"error": "too late"}))
            with self.assertRaises(Failure, msg="the host reports it"):
                response_of(ErrorDocument, defect)
            self.assertEqual(response_of(Envelope, gone), (410, {"path": "/p", "code": 410}))
            self.assertEqual(host.logged, [])
            self.assertEqual(response_of(Envelope, defect), (500, {"path": "/p", "code": 500}))
        self.assertEqual(host.logged[0].message, "a request failed: down")

    def test_responses_are_unchanged(self) -> None:
        response = respond(Request("GET", "/p"), lambda: Response.text(404, "none"))
        self.assertEqual(response, Response.text(404, "none"))

    def test_refusals_have_the_code_of_their_status(self) -> None:
        for refused, code in (
            (400, "invalid"),
            (404, "not-found"),
            (409, "conflict"),
            (410, "expired"),
            (412, "conflict"),
            (413, "limit"),
            (422, "invalid"),
            (500, "internal"),
            (502, "unavailable"),
        ):
            failure = web.refuse(refused, "no")
            self.assertEqual((failure.code, failure.status()), (code, refused))


if __name__ == "__main__":
    unittest.main()
