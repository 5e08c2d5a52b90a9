// JSON Schemas in the form that all SDKs share.

import { describe, expect, test } from "vitest";
import * as z from "zod";
import { inputSchema, outputSchema } from "../src/schema.ts";
import { thrown } from "./thrown.ts";

const input = (type: z.ZodType) => inputSchema("it", type);
const output = (type: z.ZodType) => outputSchema("it", type);

describe("schemas", () => {
  test("an object permits other fields unless its type is strict", () => {
    const open = { type: "object", properties: {} };
    for (const schema of [input, output]) {
      expect(schema(z.object({}))).toEqual(open);
      expect(schema(z.strictObject({}))).toEqual({ ...open, additionalProperties: false });
      expect(schema(z.looseObject({}))).toEqual({ ...open, additionalProperties: {} });
    }
  });

  test("a field with a default is required only in what is written", () => {
    const type = z.object({ tags: z.array(z.string()).default([]) });
    const properties = { tags: { type: "array", items: { type: "string" }, default: [] } };
    expect(input(type)).toEqual({ type: "object", properties });
    expect(output(type)).toEqual({ type: "object", properties, required: ["tags"] });
  });

  test("bounds that only say that numbers are exact are left out", () => {
    expect(input(z.int())).toEqual({ type: "integer" });
    expect(input(z.int().min(0).max(9))).toEqual({ type: "integer", minimum: 0, maximum: 9 });
    expect(input(z.int32())).toMatchObject({ minimum: -2147483648, maximum: 2147483647 });
  });

  test("null is a type beside others", () => {
    expect(input(z.string().nullable())).toEqual({ type: ["string", "null"] });
    expect(input(z.int().nullable())).toEqual({ type: ["integer", "null"] });
    expect(input(z.enum(["a", "b"]).nullable())).toEqual({
      type: ["string", "null"],
      enum: ["a", "b", null],
    });
    expect(input(z.literal("a").nullable())).toEqual({
      type: ["string", "null"],
      enum: ["a", null],
    });
    expect(input(z.object({ a: z.string() }).nullable())).toMatchObject({
      type: ["object", "null"],
      required: ["a"],
    });
  });

  test("a record has no schema for its names", () => {
    const schema = { type: "object", additionalProperties: { type: "number" } };
    expect(input(z.record(z.string(), z.number()))).toEqual(schema);
    expect(input(z.record(z.enum(["a"]), z.number()))).toHaveProperty("propertyNames");
  });

  test("descriptions are kept, and titles of the root and ids are not", () => {
    const Item = z.object({ name: z.string().describe("Its name.") }).meta({ id: "SchemaItem" });
    const type = z
      .object({ items: z.array(Item), one: Item })
      .meta({ title: "T", description: "D" });
    const item = {
      type: "object",
      properties: { name: { type: "string", description: "Its name." } },
      required: ["name"],
    };
    expect(input(type)).toEqual({
      type: "object",
      description: "D",
      properties: { items: { type: "array", items: item }, one: item },
      required: ["items", "one"],
    });
  });

  test("a recursive type refers to itself", () => {
    const Tree = z.object({
      get children() {
        return z.array(Tree);
      },
    });
    expect(input(Tree)).toMatchObject({ properties: { children: { items: { $ref: "#" } } } });
  });

  test("values are not taken for schemas", () => {
    const value = { anyOf: [{ type: "string" }, { type: "null" }] };
    expect(input(z.unknown().default(value))).toEqual({ default: value });
  });

  test("a type without a schema is rejected with its place", () => {
    for (const type of [z.date(), z.string().transform(Number)]) {
      expect(thrown(() => output(type)).message).toMatch(/^it has no JSON Schema: /);
    }
  });
});
