// What the keys for approving, editing and rejecting mean for a schema.
import { expect, test } from "vitest";
import { verdictOf } from "../../src/inbox/verdict.ts";
import { checked } from "../../src/part/schema-form/check.ts";
import { draftOf } from "../../src/part/schema-form/draft.ts";
import { fieldOf } from "../../src/part/schema-form/field.ts";

type Kind = Parameters<typeof verdictOf>[1];

/** Returns the answer of a kind, and whether a user may add something. */
function answer(schema: unknown, kind: Kind, payload?: unknown) {
  const field = fieldOf(schema);
  const verdict = verdictOf(field, kind, payload);
  return verdict && { value: checked(field, verdict.draft).value, hasFields: verdict.hasFields };
}

const decision = (name: string, more: object = {}, required: string[] = []) => ({
  type: "object",
  properties: { decision: { const: name }, ...more },
  required: ["decision", ...required],
});

test("the approval of a tool is approved, rejected with a reason, or edited", () => {
  const args = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
  const schema = {
    oneOf: [
      decision("approve"),
      decision("edit", { arguments: args }, ["arguments"]),
      decision("reject", { message: { type: "string" } }),
    ],
  };
  const payload = { kind: "tool_approval", decision: "hack", arguments: { path: "/tmp/a" } };
  expect(answer(schema, "approve", payload)).toEqual({
    value: { decision: "approve" },
    hasFields: false,
  });
  expect(answer(schema, "edit", payload)).toEqual({
    value: { decision: "edit", arguments: { path: "/tmp/a" } },
    hasFields: true,
  });
  expect(answer(schema, "reject", payload)).toEqual({
    value: { decision: "reject" },
    hasFields: true,
  });
});

test("an approval without the alternative to edit has no such key", () => {
  const schema = { oneOf: [decision("approve"), decision("reject")] };
  expect(answer(schema, "edit")).toBeUndefined();
  expect(answer(schema, "reject")).toEqual({ value: { decision: "reject" }, hasFields: false });
});

test("a boolean, a list of values, and an object that decides by one of them", () => {
  expect(answer({ type: "boolean" }, "reject")?.value).toBe(false);
  expect(answer({ enum: ["Later", "Yes", "No"] }, "approve")?.value).toBe("Yes");
  const properties = { approved: { type: "boolean" }, comment: { type: "string" } };
  const schema = { type: "object", properties, required: ["approved"] };
  expect(answer(schema, "approve")).toEqual({ value: { approved: true }, hasFields: true });
});

test("an elicitation is accepted with its content, or declined", () => {
  const schema = {
    type: "object",
    required: ["action"],
    properties: { action: { enum: ["accept", "decline", "cancel"] } },
    if: { properties: { action: { const: "accept" } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { required: ["content"], properties: { content: { type: "object" } } },
  };
  expect(answer(schema, "approve")).toEqual({ value: { action: "accept" }, hasFields: true });
  expect(answer(schema, "reject")).toEqual({ value: { action: "decline" }, hasFields: false });
});

test("what a user has entered stays", () => {
  const comment = { type: "string" };
  const properties = { approved: { type: "boolean" }, comment };
  const field = fieldOf({ type: "object", properties, required: ["approved"] });
  const entered = draftOf(field, { comment: "fine" });
  const verdict = verdictOf(field, "approve", {}, entered);
  expect(verdict && checked(field, verdict.draft).value).toEqual({
    approved: true,
    comment: "fine",
  });
  const choice = fieldOf({ oneOf: [decision("approve"), decision("reject", { comment })] });
  const given = draftOf(choice, { decision: "reject", comment: "no" });
  const rejected = verdictOf(choice, "reject", {}, given);
  expect(rejected && checked(choice, rejected.draft).value).toEqual({
    decision: "reject",
    comment: "no",
  });
});

test("other answers have no such keys", () => {
  const two = { a: { enum: ["yes", "no"] }, b: { enum: ["yes", "no"] } };
  for (const schema of [
    { type: "string" },
    { enum: ["red", "green"] },
    { type: "object", properties: two, required: ["a", "b"] },
    { type: "object", properties: { force: { type: "boolean" } }, required: ["force"] },
    true,
  ]) {
    expect(answer(schema, "approve")).toBeUndefined();
    expect(answer(schema, "reject")).toBeUndefined();
  }
});
