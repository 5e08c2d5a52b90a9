// Conversions of values: JSON, failures, UTF-8, base64, queries and stacks.

import { afterEach, describe, expect, test } from "vitest";
import { Failure } from "wattle-plugin";
import * as z from "zod";
import { fromValue, read, toValue, write } from "../src/json.ts";
import { appendQuery } from "../src/query.ts";
import { framesOf, LINES } from "../src/stack.ts";
import { decodeBase64, decodeLossy, decodeUtf8, encodeBase64, encodeUtf8 } from "../src/utf8.ts";
import { thrown } from "./thrown.ts";

describe("JSON", () => {
  const Rows = z.object({ rows: z.array(z.strictObject({ count: z.int() })) });

  test("errors name the path", () => {
    const text = '{"rows":[{"count":1},{"count":"x"}]}';
    const failure = thrown(() => read("the input", text, Rows));
    expect(failure.code).toBe("invalid");
    expect(failure.message).toMatch(/^the input is invalid at `rows\[1\]\.count`: /);
    expect(failure.details).toEqual({ path: "rows[1].count" });
    expect(thrown(() => fromValue("it", { rows: [{ count: 1, more: 2 }] }, Rows)).details).toEqual({
      path: "rows[0].more",
    });
  });

  test("text after the document is rejected", () => {
    expect(thrown(() => read("the input", "1 2", z.unknown())).code).toBe("invalid");
  });

  test.each([
    [{ a: Number.NaN }, "the value at `a` is NaN"],
    [[1n], "the value at `0` is a BigInt"],
    [{ f: () => 1 }, "the value at `f` is a function"],
    [new Map([[1, 2]]), "the value is of the class Map"],
    [{ bytes: new Uint8Array(1) }, "the value at `bytes` is of the class Uint8Array"],
    [undefined, "the value is undefined"],
    [{ list: [1, undefined] }, "the value at `1` is undefined"],
  ])("a value that JSON cannot have is rejected", (value, message) => {
    const failure = thrown(() => write("the updates", value));
    expect(failure.code).toBe("internal");
    expect(failure.message).toContain(message);
  });

  test("a value that exceeds the stack of the engine is too deep", () => {
    let value: unknown = null;
    for (let level = 0; level < 100_000; level += 1) value = [value];
    const failure = thrown(() => write("the updates", value));
    expect(failure.code).toBe("invalid");
    expect(failure.message).toMatch(/^the updates are nested too deep for the engine; /);
  });

  test("undefined fields are left out, and dates are written as text", () => {
    const value = { a: undefined, at: new Date(0) };
    expect(toValue("it", value)).toEqual({ at: "1970-01-01T00:00:00.000Z" });
  });
});

describe("failures", () => {
  test("a status keeps other details", () => {
    const failure = Failure.invalid("no");
    expect(failure.withDetails({ field: "a" }).withStatus(400).details).toEqual({
      field: "a",
      http_status: 400,
    });
    expect(failure.withDetails([1]).withStatus(400).details).toEqual({
      facts: [1],
      http_status: 400,
    });
    expect(failure.withDetails({ status: 401 }).status()).toBeUndefined();
  });

  test("a failure is read from what it is written as", () => {
    const failure = Failure.timeout("late", { details: { ms: 5 } });
    expect(Failure.read(failure.toJSON())).toEqual(failure);
    expect(Failure.read({ code: "a" })).toBeUndefined();
  });

  test("an exception becomes internal with its class and stack", () => {
    const failure = Failure.from(new RangeError("too far"));
    expect(failure.message).toBe("RangeError: too far");
    expect(failure.details).toMatchObject({ exception: "RangeError" });
    const { stack } = failure.details as { stack: string[] };
    expect(stack[0]).toContain("values.test.ts");
    expect(Failure.from({ a: 1 }).message).toBe('threw {"a":1}');
    expect(Failure.from("text").message).toBe("threw text");
  });

  test("a failure is kept as it is", () => {
    const failure = Failure.conflict("not now");
    expect(Failure.from(failure)).toBe(failure);
  });
});

describe("stacks in a component", () => {
  const global = globalThis as unknown as Record<string, unknown>;

  afterEach(() => {
    delete global[LINES];
  });

  test("frames of both engines name files of the plugin", () => {
    global[LINES] = {
      files: ["src/index.ts", "src/deep.ts"],
      runs: [
        [10, 3, 0, 5],
        [20, 1, 1, 7],
      ],
    };
    const quickjs =
      "    at second (/plugin.js:20:4)\n    at run (/plugin.js:99:1)\n    at <anonymous> (/plugin.js:12:9)\n";
    expect(framesOf(quickjs)).toEqual(["second (src/deep.ts:7)", "src/index.ts:7"]);
    const starlingmonkey =
      "second@/tmp/plugin.js:20:4\nt<@/tmp/plugin.js:10:1\nrun@/a/initializer.js:3:1\n";
    expect(framesOf(starlingmonkey)).toEqual(["second (src/deep.ts:7)", "t (src/index.ts:5)"]);
    const error = new TypeError("x is undefined");
    error.stack = quickjs;
    expect(Failure.from(error).message).toBe("TypeError: x is undefined (src/deep.ts:7)");
  });
});

describe("UTF-8 and base64", () => {
  test.each(["", "a", "ä", "€", "😀", "a\u0000ä€😀".repeat(3000)])(
    "%# is decoded again",
    (text) => {
      expect(encodeUtf8(text)).toEqual(new TextEncoder().encode(text));
      expect(decodeUtf8(encodeUtf8(text))).toBe(text);
    },
  );

  test.each([
    [0x80],
    [0xc0, 0x80],
    [0xc3],
    [0xe0, 0x80, 0x80],
    [0xed, 0xa0, 0x80],
    [0xe2, 0x82],
    [0xf0, 0x80, 0x80, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xff],
    [0x61, 0xe2, 0x28, 0x61],
  ])("bytes that are not UTF-8 are replaced as in browsers (%#)", (...bytes) => {
    expect(decodeUtf8(Uint8Array.from(bytes))).toBeUndefined();
    expect(decodeLossy(Uint8Array.from(bytes))).toBe(
      new TextDecoder().decode(Uint8Array.from(bytes)),
    );
  });

  test("a lone surrogate is replaced", () => {
    expect(decodeUtf8(encodeUtf8("a\ud800b"))).toBe("a\ufffdb");
  });

  test("base64 is decoded again, and other text is rejected", () => {
    const bytes = Uint8Array.from({ length: 10_001 }, (_, index) => index % 256);
    expect(decodeBase64(encodeBase64(bytes))).toEqual(bytes);
    expect(thrown(() => decodeBase64("*")).code).toBe("invalid");
    expect(thrown(() => decodeBase64("abc")).code).toBe("invalid");
  });
});

describe("queries", () => {
  test("parameters are encoded", () => {
    expect(appendQuery("https://a/b", "q", "x y&z")).toBe("https://a/b?q=x%20y%26z");
    expect(appendQuery("https://a/b?c=1", "q", "é(!)")).toBe("https://a/b?c=1&q=%C3%A9%28%21%29");
    expect(appendQuery("https://a/b#top", "q", "1")).toBe("https://a/b?q=1#top");
  });

  test("only a whole placeholder is not encoded", () => {
    const key = "{{secret:KEY}}";
    expect(appendQuery("https://a", "k", key)).toBe(`https://a?k=${key}`);
    expect(appendQuery("https://a", "k", "{{secret:A}}&b={{secret:B}}")).toContain("%26");
  });
});
