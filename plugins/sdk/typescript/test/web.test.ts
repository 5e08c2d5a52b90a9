// Web handlers and their OpenAPI descriptions.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { type Extra, Failure, handler, plugin, Request, Response, web } from "wattle-plugin";
import { checkOpenapi, FakeHost } from "wattle-plugin/testing";
import * as z from "zod";
import { describeRoutes, openapi } from "../src/web/openapi.ts";
import { settle } from "../src/web/response.ts";
import { thrown } from "./thrown.ts";

const Item = z
  .object({ name: z.string(), tags: z.array(z.string()).default([]) })
  .meta({ id: "Item", description: "An item." });
const Basket = z.object({ items: z.array(Item) }).meta({ id: "Basket" });
const Problem = z.object({ error: z.string() }).meta({ id: "Problem" });
const Step = z.object({ event: z.literal("done"), data: Item }).meta({ id: "Step" });

const replace = handler(
  "PUT",
  "/items/{id}/{*rest}",
  {
    doc: "Replaces\nan item.\n\nKeeps its tags.",
    query: { dry: z.boolean().optional() },
    body: Basket,
    returns: { 200: Basket, 204: undefined },
    events: Step,
    bytes: "text/csv",
    error: Problem,
  },
  (request) => Response.json(200, request.json()),
);
const list = handler("GET", "/items", {}, () => Response.empty(204));

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });

describe("descriptions of endpoints", () => {
  const document = openapi("shop", [replace, list]) as {
    paths: Record<string, Record<string, Extra>>;
    components: { schemas: Record<string, Extra> };
  };
  const operation = document.paths["/items/{id}/{rest}"]?.put ?? {};
  const { schemas } = document.components;

  test("the document has the declared types", () => {
    expect(operation).toMatchObject({
      summary: "Replaces an item.",
      description: "Keeps its tags.",
    });
    const text = { type: "string" };
    expect(operation.parameters).toEqual([
      { name: "id", in: "path", required: true, schema: text },
      { name: "rest", in: "path", required: true, schema: text },
      { name: "dry", in: "query", required: false, schema: { type: "boolean" } },
    ]);
    expect(operation.responses).toEqual({
      200: {
        description: "Success",
        content: {
          "application/json": { schema: reference("Basket") },
          "text/event-stream": { schema: reference("Step") },
          "text/csv": { schema: text },
        },
      },
      204: { description: "Success" },
      default: {
        description: "Error",
        content: { "application/json": { schema: reference("Problem") } },
      },
    });
  });

  test("a type that reads other documents than it writes has two schemas", () => {
    const schema = reference("Basket.Request");
    const content = { "application/json": { schema } };
    expect(operation.requestBody).toEqual({ required: true, content });
    expect(schemas["Basket.Request"]).toMatchObject({
      properties: { items: { items: reference("Item.Request") } },
    });
    expect(schemas.Basket).toMatchObject({ properties: { items: { items: reference("Item") } } });
    expect(schemas["Item.Request"]?.required).toEqual(["name"]);
    expect(schemas.Item).toMatchObject({ required: ["name", "tags"], description: "An item." });
    expect(schemas.Item).not.toHaveProperty("id");
  });

  test("a route has only the schemas that it refers to", () => {
    const [first, second] = describeRoutes([replace, list]);
    const names = ["Basket", "Basket.Request", "Item", "Item.Request", "Problem", "Step"];
    expect(Object.keys(first?.schemas as object)).toEqual(names);
    const nothing = { default: { description: "Response" } };
    expect(second).toEqual({ operation: { responses: nothing }, schemas: {} });
  });

  test("a recursive type needs a name", () => {
    const Tree = z.object({
      get children() {
        return z.array(Tree);
      },
    });
    const trees = (type: z.ZodType) =>
      handler("GET", "/", { returns: type }, () => Response.empty(200));
    expect(thrown(() => describeRoutes([trees(Tree)])).message).toContain("name the type");
    expect(thrown(() => describeRoutes([trees(z.array(Tree))])).message).toContain("name the type");
    const Named = z
      .object({
        get children() {
          return z.array(Named);
        },
      })
      .meta({ id: "Named" });
    const [route] = describeRoutes([trees(Named)]);
    expect(route).toMatchObject({
      schemas: { Named: { properties: { children: { items: reference("Named") } } } },
    });
  });

  test("two types of a document have different ids", () => {
    const Own = z.object({ error: z.int() }).meta({ id: "ErrorDocument" });
    const own = handler("GET", "/", { returns: Own }, () => Response.empty(200));
    const other = handler("GET", "/b", { error: web.ErrorDocument }, () => Response.empty(200));
    expect(describeRoutes([own])[0]?.schemas).toHaveProperty("ErrorDocument");
    const message = "two types have the id `ErrorDocument`";
    expect(thrown(() => describeRoutes([own, other])).message).toContain(message);
  });

  test("a file is compared with the document, and written on demand", () => {
    const folder = mkdtempSync(join(tmpdir(), "openapi-"));
    const file = join(folder, "openapi.json");
    const check = () => checkOpenapi(file, "shop", plugin(list));
    try {
      expect(check).toThrow("openapi.json");
      writeFileSync(file, "{}");
      expect(check).toThrow("does not describe the handlers");
      vi.stubEnv("WATTLE_WRITE_OPENAPI", "1");
      check();
      vi.unstubAllEnvs();
      check();
    } finally {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    }
  });
});

describe("requests", () => {
  test("query parameters and headers are found", () => {
    const request = new Request()
      .withQuery("q", "a b")
      .withQuery("q", "second")
      .withHeader("Accept", "text/html");
    expect(request.query("q")).toBe("a b");
    expect(request.query("r")).toBeUndefined();
    expect(request.header("ACCEPT")).toBe("text/html");
  });

  test("parameters have types", () => {
    const request = new Request()
      .withQuery("limit", "5")
      .withQuery("dry", "true")
      .withParam("id", "07");
    expect(request.query("limit", z.int())).toBe(5);
    expect(request.query("dry", z.boolean())).toBe(true);
    expect(request.query("more", z.int().optional())).toBeUndefined();
    expect(request.param("id", z.string())).toBe("07");
    expect(thrown(() => request.query("limit", z.boolean())).status()).toBe(400);
    expect(thrown(() => request.param("name")).status()).toBe(400);
  });

  test("an invalid body is a bad request", () => {
    for (const body of ["{", Uint8Array.of(0xff), '{"items": 1}']) {
      const failure = thrown(() => replace.handle(new Request().withBody(body)));
      expect(failure.status()).toBe(400);
    }
    const body = '{"items":[{"name":"lamp"}]}';
    const basket = { items: [{ name: "lamp", tags: [] }] };
    expect(replace.handle(new Request().withBody(body)).jsonBody()).toEqual(basket);
  });

  test("a body may be missing if its type is optional", () => {
    const Named = z.object({ name: z.string() });
    const greet = handler("POST", "/", { body: Named.optional() }, (request) =>
      Response.json(200, { name: request.json()?.name ?? "nobody" }),
    );
    const print = handler("POST", "/", { body: Named.default({ name: "lamp" }) }, (request) =>
      Response.json(200, request.json()),
    );
    const empty = new Request();
    expect(greet.handle(empty).jsonBody()).toEqual({ name: "nobody" });
    expect(print.handle(empty).jsonBody()).toEqual({ name: "lamp" });
    expect(thrown(() => replace.handle(empty)).status()).toBe(400);
    expect(thrown(() => empty.json()).status()).toBe(400);
  });
});

describe("parameters of lists", () => {
  const asked = (limit?: string, offset?: string) => {
    const queryPairs = Object.entries({ limit, offset }).flatMap(([name, text]) => {
      return text === undefined ? [] : [[name, text] as [string, string]];
    });
    return () => new Request({ queryPairs }).page(50, 200);
  };

  test.each([
    [undefined, undefined, 50, 0],
    ["7", "21", 7, 21],
    ["+7", "007", 7, 7],
    ["0", undefined, 1, 0],
    ["201", undefined, 200, 0],
    ["4294967295", "4294967295", 200, 4294967295],
  ])("a page has a default and bounds: %j, %j", (limit, offset, most, from) => {
    expect(asked(limit, offset)()).toEqual({ limit: most, offset: from });
  });

  test.each([
    ["many", undefined, "limit"],
    ["", undefined, "limit"],
    ["1e1", undefined, "limit"],
    ["4294967296", undefined, "limit"],
    ["-0", undefined, "limit"],
    ["7", "-1", "offset"],
  ])("limits and offsets are whole numbers: %j, %j", (limit, offset, name) => {
    const failure = thrown(asked(limit, offset));
    expect(failure.status()).toBe(400);
    expect(failure.message).toBe(`\`${name}\` must be a whole number`);
  });

  test("a number may be negative", () => {
    expect(new Request().withQuery("after", "-7").number("after")).toBe(-7);
    expect(new Request().withQuery("after", "-0").number("after")).toBe(0);
    const request = new Request().withQuery("after", "9007199254740993");
    expect(thrown(() => request.number("after")).status()).toBe(400);
  });
});

describe("entity tags", () => {
  test.each([
    ['"5"', true],
    ['"1", "5"', true],
    ["*", true],
    ['"15"', false],
    ["5", false],
    ['W/"5"', false],
    ["", false],
  ])("tags of a header are compared whole: %s", (tags, hasIt) => {
    const request = new Request().withHeader("if-match", tags);
    expect(request.hasTag("if-match", '"5"')).toBe(hasIt);
    expect(request.hasTag("if-none-match", '"5"')).toBe(false);
  });

  test.each([
    ['W/"5"', '"5"'],
    ['"1", "5"', 'W/"5"'],
  ])("weak tags match in `if-none-match`: %s", (tags, tag) => {
    const request = new Request().withHeader("If-None-Match", tags).withHeader("if-match", tags);
    expect(request.hasTag("If-None-Match", tag)).toBe(true);
    expect(request.hasTag("if-match", tag)).toBe(false);
  });
});

describe("responses to failed requests", () => {
  const ENVELOPE: web.ErrorForm = {
    body: ({ path }, code) => ({ path, code }),
    status: (failure) => failure.status() ?? 500,
  };
  const request = new Request({ path: "/p" });
  const respond = (failure: unknown, form?: web.ErrorForm) => {
    const fail = () => {
      throw failure;
    };
    const response = web.respond(request, fail, form);
    return [response.status, response.jsonBody()];
  };

  test("failures are responses in the form of the app", () => {
    const host = new FakeHost();
    const gone = web.refuse(410, "too late");
    host.run(() => {
      expect(respond(gone)).toEqual([410, { error: "too late" }]);
      expect(respond(gone, ENVELOPE)).toEqual([410, { path: "/p", code: 410 }]);
      // The host reports these.
      expect(thrown(() => respond(Failure.internal("down"))).message).toBe("down");
      expect(() => respond(new TypeError("down"))).toThrow(TypeError);
    });
    expect(host.logged()).toEqual([]);
    const defect = host.run(() => respond(Failure.internal("down"), ENVELOPE));
    expect(defect).toEqual([500, { path: "/p", code: 500 }]);
    expect(host.logged()[0]?.message).toBe("a request failed: down");
  });

  test("responses are unchanged", () => {
    const none = Response.text(404, "none");
    expect(web.respond(request, () => none)).toBe(none);
  });

  test.each([
    [400, "invalid"],
    [404, "not-found"],
    [409, "conflict"],
    [412, "conflict"],
    [410, "expired"],
    [413, "limit"],
    [422, "invalid"],
    [500, "internal"],
    [502, "unavailable"],
  ])("a refusal with status %i has the code %s", (status, code) => {
    const failure = web.refuse(status, "no");
    expect([failure.status(), failure.code, failure.retryable]).toEqual([status, code, false]);
  });

  test("the document has a name and a description", () => {
    const [route] = describeRoutes([
      handler("GET", "/", { error: web.ErrorDocument }, () => Response.empty(204)),
    ]);
    expect(route?.schemas).toEqual({
      ErrorDocument: {
        type: "object",
        description: "The reason of a refused request, for users.",
        properties: { error: { type: "string" } },
        required: ["error"],
      },
    });
  });
});

describe("responses", () => {
  test("a failure with a status becomes a problem", () => {
    const failing = (failure: Failure) => () => {
      throw failure;
    };
    const response = settle(failing(Failure.invalid("no").withStatus(422)));
    expect(response.status).toBe(422);
    expect(response.headers).toEqual([["content-type", "application/problem+json"]]);
    expect(thrown(() => settle(failing(Failure.invalid("no")))).code).toBe("invalid");
  });

  test("responses have bodies, headers and status", () => {
    const response = Response.bytes("image/png", Uint8Array.of(1, 2)).withHeader("etag", "x");
    expect(response.headers).toHaveLength(2);
    expect(Response.text(404, "gone").withStatus(410).status).toBe(410);
  });

  test("a handler must be an endpoint and return a response", () => {
    const make = (method: string, path: string) =>
      handler(method as "GET", path, {}, () => ({}) as never);
    expect(thrown(() => make("get", "/a")).message).toContain("`GET`");
    expect(thrown(() => make("GET", "a")).message).toContain("begin with `/`");
    expect(thrown(() => make("GET", "/a").handle(new Request())).message).toContain("no response");
  });
});
