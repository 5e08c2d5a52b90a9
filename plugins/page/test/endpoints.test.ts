// Requests that are typed by an OpenAPI document.
import { afterEach, expect, test, vi } from "vitest";
import { endpoints } from "../src/api/endpoints.ts";

afterEach(() => vi.unstubAllGlobals());

interface Json<D> {
  content: { "application/json": D };
}

/** Types in the form of those that are generated. */
interface Paths {
  "/api/notes": {
    get: {
      parameters: { query?: { limit?: number; tag?: string }; path?: never };
      requestBody?: never;
      responses: { 200: Json<string[]>; default: Json<{ error: string }> };
    };
    post: {
      parameters: { query?: never; path?: never };
      requestBody: Json<{ text: string }>;
      responses: { 201: Json<{ id: string }>; default: Json<{ error: string }> };
    };
    delete?: never;
  };
  "/api/notes/{id}": {
    get?: never;
    delete: {
      parameters: { query?: never; path: { id: string } };
      requestBody?: never;
      responses: { 204: { content?: never } };
    };
  };
}

const call = endpoints<Paths>();

/** Has the server answer. Returns the requests: method, path with query, and body. */
function answers(text: string): unknown[][] {
  const asked: unknown[][] = [];
  vi.stubGlobal("fetch", async (url: string, { method, body }: RequestInit) => {
    const { pathname, search } = new URL(url);
    asked.push([method, pathname + search, body]);
    return new Response(text);
  });
  return asked;
}

test("a request has the parameters and the body that it is given", async () => {
  const asked = answers('{"id":"a"}');
  const { id }: { id: string } = await call("post", "/api/notes", { body: { text: "x" } });
  expect(id).toBe("a");
  await call("get", "/api/notes", { query: { limit: 2, tag: "a&b" } });
  await call("get", "/api/notes", { query: { limit: 2, tag: undefined } });
  await call("get", "/api/notes");
  await call("delete", "/api/notes/{id}", { path: { id: "../a b" } });
  expect(asked).toEqual([
    ["POST", "/api/notes", '{"text":"x"}'],
    ["GET", "/api/notes?limit=2&tag=a%26b", undefined],
    ["GET", "/api/notes?limit=2", undefined],
    ["GET", "/api/notes", undefined],
    ["DELETE", "/api/notes/..%2Fa%20b", undefined],
  ]);
});

test("what the document does not describe has no type", async () => {
  answers("[]");
  // @ts-expect-error: the document has no such path.
  await call("get", "/api/others");
  // @ts-expect-error: the path has no such method.
  await call("get", "/api/notes/{id}", { path: { id: "a" } });
  // @ts-expect-error: the parameter of the path is missing.
  await call("delete", "/api/notes/{id}");
  // @ts-expect-error: the query has no such parameter.
  await call("get", "/api/notes", { query: { page: 2 } });
  // @ts-expect-error: the body is another one.
  await call("post", "/api/notes", { body: { title: "x" } });
  // @ts-expect-error: the response is a list of texts.
  const notes: number[] = await call("get", "/api/notes");
  const nothing: undefined = await call("delete", "/api/notes/{id}", { path: { id: "a" } });
  expect(nothing).toEqual(notes);
});
