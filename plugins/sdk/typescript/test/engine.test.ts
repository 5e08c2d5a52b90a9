// What the SDK adds to an engine: the console, and what QuickJS lacks.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeHost } from "wattle-plugin/testing";

const native = {
  console,
  random: Math.random,
  classes: { TextDecoder, TextEncoder, URL, URLSearchParams },
};

describe("a component on QuickJS", () => {
  let begin: () => void;

  beforeAll(async () => {
    await import("../src/guest/quickjs.ts");
    await import("../src/guest/console.ts");
    ({ begin } = await import("../src/guest/phase.ts"));
  });

  afterAll(() => {
    Math.random = native.random;
    Object.assign(globalThis, native.classes, { console: native.console });
  });

  const logged = (work: () => void) => {
    const host = new FakeHost();
    host.run(work);
    return host.logged().map(({ level, message }) => [level, message]);
  };

  test("modules that are loaded have no random numbers and write no messages", () => {
    expect(() => Math.random()).toThrow(
      "`Math.random` is not available while the plugin is loaded",
    );
    expect(logged(() => console.log("loading"))).toEqual([]);
  });

  test("random numbers are those of the host", () => {
    begin();
    const numbers = () =>
      new FakeHost().run(() => Array.from({ length: 100 }, () => Math.random()));
    const drawn = numbers();
    expect(new Set(drawn).size).toBe(100);
    expect(drawn.every((number) => number >= 0 && number < 1)).toBe(true);
  });

  test("messages of the console are log messages", () => {
    begin();
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const broken = {
      get field(): never {
        throw new Error("stop");
      },
    };
    const messages = logged(() => {
      console.log("a", 1, { b: [true, null, "c"] });
      console.debug(undefined, 1n, Symbol("s"), () => 1);
      console.warn(circle, broken);
      console.error(new Map([[1, new Set(["x"])]]), new Uint8Array(3), new Date(0));
      console.assert(1 > 2, "numbers");
      console.assert(1 < 2);
      console.info([[[[[[[1]]]]]]], Array(101).fill(0));
    });
    expect(messages.slice(0, 3)).toEqual([
      ["info", 'a 1 {b: [true, null, "c"]}'],
      ["debug", "undefined 1n Symbol(s) [function ]"],
      ["warn", "{self: [circular]} [Error: stop]"],
    ]);
    expect(messages[3]?.[1]).toMatch(/^Map \{1 => Set \{"x"\}\} \[3 bytes\] Thu Jan 01 1970/);
    expect(messages[4]).toEqual(["error", "assertion failed: numbers"]);
    expect(messages[5]?.[1]).toMatch(/^\[\[\[\[\[\[\[\.\.\.\]\]\]\]\]\]\] \[0, .*, and 1 more\]$/);
    expect(messages).toHaveLength(6);
  });

  test("an error is shown with its stack", () => {
    begin();
    const [message] = logged(() => console.error(new TypeError("x")));
    expect(message?.[1]).toMatch(/^TypeError: x\n {4}at .*engine\.test\.ts/);
  });

  test("UTF-8 and URLs have their classes", () => {
    expect(TextEncoder).not.toBe(native.classes.TextEncoder);
    const bytes = new TextEncoder().encode("ä€");
    expect(new TextDecoder().decode(bytes)).toBe("ä€");
    expect(new TextDecoder("utf-8").decode(bytes.buffer)).toBe("ä€");
    expect(new TextDecoder().decode(Uint8Array.of(0xff))).toBe("\ufffd");
    expect(() => new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.of(0xff))).toThrow();
    expect(() => new TextDecoder("latin1")).toThrow(RangeError);
    const url = new URL("/c?d=1#e", "https://a.example/b");
    expect([url.href, url.searchParams.get("d")]).toEqual(["https://a.example/c?d=1#e", "1"]);
  });
});
