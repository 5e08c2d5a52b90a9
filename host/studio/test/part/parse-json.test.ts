// JSON that a user writes.
import { expect, test } from "vitest";
import { parsed } from "../../src/part/parse-json.ts";

test("a document is read, and a text that is none has a reason", () => {
  expect(parsed('{"a": [1, -2.5e3, "x"]}')).toEqual({ value: { a: [1, -2500, "x"] } });
  expect(parsed("{")).toEqual({ problem: expect.stringMatching(/^This is not JSON: ./) });
});

test("a number that a browser would change is refused", () => {
  for (const number of ["12345678901234567890", "-9007199254740993", "1e400"]) {
    const problem = `The number cannot be sent exactly: ${number}`;
    expect(parsed(`{"id": [${number}]}`)).toEqual({ problem });
  }
});

test("numbers that keep their digits, and digits in texts, are accepted", () => {
  for (const value of [9007199254740991, 12345678901234567000, 1e300, 0.1]) {
    expect(parsed(JSON.stringify([value]))).toEqual({ value: [value] });
  }
  const texts = { "12345678901234567890": 'a \\" 12345678901234567890', b: '"' };
  expect(parsed(JSON.stringify(texts))).toEqual({ value: texts });
});
