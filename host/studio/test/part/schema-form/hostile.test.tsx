// Schemas of strangers: each leads to a form of bounded size, in bounded time.
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { checked } from "../../../src/part/schema-form/check.ts";
import { draftOf } from "../../../src/part/schema-form/draft.ts";
import { fieldOf } from "../../../src/part/schema-form/field.ts";
import { SchemaForm } from "../../../src/part/schema-form/form.tsx";
import { resolved } from "../../../src/part/schema-form/schema.ts";

afterEach(cleanup);

/** Shows the form of a schema, and returns what is checked for a given value. */
function shown(schema: unknown, given?: unknown) {
  const field = fieldOf(schema);
  const draft = draftOf(field, given);
  const result = checked(field, draft);
  render(
    <SchemaForm field={field} draft={draft} onDraft={() => undefined} errors={result.errors} />,
  );
  return { field, ...result };
}

function nested(depth: number): unknown {
  let schema: unknown = { type: "string" };
  for (let level = 0; level < depth; level += 1) {
    schema = { type: "object", properties: { in: schema }, required: ["in"] };
  }
  return schema;
}

test("a deep schema is edited as JSON", () => {
  expect(shown(nested(20)).field.kind).toBe("object");
  cleanup();
  expect(shown(nested(100_000), { in: 1 })).toMatchObject({
    field: { kind: "json" },
    value: { in: 1 },
  });
});

test("a reference within itself ends", () => {
  const $defs = { a: { $ref: "#/$defs/b" }, b: { anyOf: [{ $ref: "#/$defs/a" }, { $ref: "#" }] } };
  const { errors } = shown({ $defs, $ref: "#/$defs/a" }, "anything");
  expect([...errors]).toEqual([]);
  cleanup();
  expect(shown({ $ref: "#" }, 1).errors.size).toBe(0);
});

test("a tree has fields for its first levels, and JSON for the others", () => {
  const children = { type: "array", items: { $ref: "#/$defs/node" } };
  const node = { type: "object", properties: { name: { type: "string" }, children } };
  const tree = { name: "a", children: [{ name: "b", children: [{ name: "c", children: [1] }] }] };
  const { value, errors } = shown({ $defs: { node }, $ref: "#/$defs/node" }, tree);
  expect(value).toEqual(tree);
  expect(errors.size).toBe(0);
});

test("references that multiply are edited as JSON", () => {
  const names = Array.from({ length: 30 }, (_, index) => `d${index}`);
  const entries = names.map((name, index) => {
    const $ref = `#/$defs/d${index + 1}`;
    return [name, { type: "object", properties: { a: { $ref }, b: { $ref } } }];
  });
  const $defs = { ...Object.fromEntries(entries), d30: { type: "string" } };
  expect(resolved({ $defs, $ref: "#/$defs/d0" })).toBeUndefined();
  expect(shown({ $defs, $ref: "#/$defs/d0" }).field.kind).toBe("json");
});

test("a remote or unknown reference is not read, and permits everything", () => {
  for (const $ref of [
    "https://evil.example/schema",
    "other.json",
    "#anchor",
    "#/$defs/none",
    "#/%",
  ]) {
    const properties = { a: { $ref } };
    expect(shown({ type: "object", properties, required: ["a"] }, { a: [1] }).errors.size).toBe(0);
    cleanup();
  }
  const named = { $id: "https://evil.example/", properties: { a: { $ref: "#/x" } } };
  expect(resolved({ x: { type: "string" }, properties: { named } })).toEqual({
    properties: { named: true },
  });
});

test("a pattern is not evaluated, and nothing is refused because of that", () => {
  const slow = { type: "string", pattern: "^(a+)+$" };
  expect(shown(slow, `${"a".repeat(60)}!`).errors.size).toBe(0);
  cleanup();
  const either = { oneOf: [slow, { type: "string", pattern: "^b" }] };
  expect(checked(fieldOf({ allOf: [either, {}] }), { kind: "value", value: "x" }).errors.size).toBe(
    0,
  );
  const open = { type: "object", properties: {}, patternProperties: { "^x": {} } };
  expect(shown({ ...open, additionalProperties: false }, { x: 1 }).errors.size).toBe(0);
  cleanup();
  expect(shown({ not: slow }, "b").errors.size).toBe(0);
});

test("a huge list of values has few elements, and is searched by a text", () => {
  const values = Array.from({ length: 50_000 }, (_, index) => `value ${index}`);
  const { errors } = shown({ enum: values }, "value 49999");
  expect(errors.size).toBe(0);
  expect(document.querySelectorAll("option").length).toBeLessThan(100);
  cleanup();
  const wrong = checked(fieldOf({ enum: values }), { kind: "value", value: "none" });
  expect([...wrong.errors.values()].join()).toBe("This is not one of the allowed values.");
  shown({ enum: values.map((_, index) => index) }, 7);
  screen.getByLabelText("Answer (JSON)");
});

test("many fields, many alternatives and long texts are bounded", () => {
  const many = Array.from({ length: 1_000 }, (_, index) => [`p${index}`, { type: "string" }]);
  expect(shown({ type: "object", properties: Object.fromEntries(many) }).field.kind).toBe("json");
  cleanup();
  shown({ type: "string", title: "x".repeat(100_000), description: "y".repeat(100_000) });
  expect(document.body.textContent?.length).toBeLessThan(2_000);
  cleanup();
  shown({ type: "array", items: { type: "string" } }, Array.from({ length: 5_000 }, String));
  expect(document.querySelectorAll("textarea").length).toBe(1);
});

test("texts of a schema are text, and what cannot be seen is shown", () => {
  const title = "<img src=x onerror=alert(1)>\u202egnp";
  shown({ type: "string", title, description: title, default: "a\u202eb" });
  expect(document.querySelector("img")).toBeNull();
  expect(document.body.textContent).toContain("[U+202E]gnp");
  screen.getByText(/cannot be seen: a\[U\+202E\]b/);
});

test("names of properties cannot reach the prototype", () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"integer"},"constructor":{"type":"string"}}}',
  );
  const { value, errors } = shown(schema, JSON.parse('{"__proto__": 1, "constructor": "x"}'));
  expect(JSON.stringify(value)).toBe('{"__proto__":1,"constructor":"x"}');
  expect(errors.size).toBe(0);
  expect(Object.getPrototypeOf({})).toBe(Object.prototype);
});

test("what is no schema permits everything", () => {
  for (const schema of [
    null,
    3,
    "x",
    [],
    false,
    { type: 7, enum: "x", properties: [], anyOf: {} },
  ]) {
    const { field } = shown(schema, { a: 1 });
    expect(["json", "object"]).toContain(field.kind);
    cleanup();
  }
  expect(
    shown({ properties: { "\ud800": { type: "string" } } }, { "\ud800": "x" }).errors.size,
  ).toBe(0);
});
