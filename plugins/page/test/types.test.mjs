// @vitest-environment node
// Types from OpenAPI documents.
import { expect, test } from "vitest";
import { sources, typesOf } from "../scripts/api.mjs";

test("the host and each app with a page have a document", () => {
  const owners = sources().map(({ owner }) => owner);
  const apps = ["asset", "expense", "nl2sql", "reasoning", "travel"];
  expect(owners).toEqual(["the host", ...apps.map((name) => `the app ${name}`)]);
});

test("a schema is a type, whose properties with a default may be missing", async () => {
  const schema = {
    type: "object",
    properties: { name: { type: "string" }, tags: { type: "array", default: [] } },
    required: ["name"],
  };
  const document = {
    openapi: "3.1.0",
    info: { title: "test", version: "1" },
    paths: {},
    components: { schemas: { Item: schema } },
  };
  const types = await typesOf(document);
  expect(types).toMatch(/name: string;/);
  expect(types).toMatch(/tags\?: unknown\[\];/);
  expect(types).toMatch(/export type Item = components\['schemas'\]\['Item'\];/);
});
