// Forms as a user fills them, one test for each kind of schema.
import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { useState } from "react";
import { afterEach, expect, test } from "vitest";
import { type Checked, checked } from "../../../src/part/schema-form/check.ts";
import { type Draft, draftOf } from "../../../src/part/schema-form/draft.ts";
import { fieldOf } from "../../../src/part/schema-form/field.ts";
import { SchemaForm } from "../../../src/part/schema-form/form.tsx";

afterEach(cleanup);

let entered: Checked;

function Form({ schema, given }: { schema: unknown; given: unknown }) {
  const [field] = useState(() => fieldOf(schema));
  const [draft, setDraft] = useState<Draft>(() => draftOf(field, given));
  entered = checked(field, draft);
  return <SchemaForm field={field} draft={draft} onDraft={setDraft} errors={entered.errors} />;
}

function show(schema: unknown, given?: unknown): void {
  render(<Form schema={schema} given={given} />);
}

function type(label: string | RegExp, value: string): void {
  fireEvent.change(screen.getByLabelText(label), { target: { value } });
}

function press(name: string | RegExp): void {
  fireEvent.click(screen.getByRole("button", { name }));
}

const problems = () => Object.fromEntries(entered.errors);

test("a text, which may be left out", () => {
  const name = { type: "string", minLength: 2 };
  const schema = { type: "object", properties: { name, note: { type: "string" } } };
  show({ ...schema, required: ["name"] });
  expect(problems()).toEqual({ "/name": "Enter a value." });
  type("name", "x");
  expect(problems()["/name"]).toMatch(/too short/);
  type("name", "xy");
  type("note (optional)", "z");
  type("note (optional)", "");
  expect(entered).toEqual({ value: { name: "xy" }, errors: new Map() });
});

test("texts with formats", () => {
  const formats = ["date", "email", "date-time", "uuid"];
  const properties = Object.fromEntries(
    formats.map((format) => [format, { type: "string", format }]),
  );
  show({ type: "object", properties, required: formats });
  expect(screen.getByLabelText("date").getAttribute("type")).toBe("date");
  for (const format of formats) type(format, format === "date" ? "" : "x");
  expect(Object.keys(problems())).toEqual(formats.map((format) => `/${format}`));
  type("date", "2026-02-28");
  type("email", "jane@acme.example");
  type("date-time", "2026-02-28T12:00:00Z");
  type("uuid", "5f0c6f0e-0000-4000-8000-000000000000");
  expect(problems()).toEqual({});
});

test("numbers, which are sent as they were entered or not at all", () => {
  const count = { type: "integer", minimum: 1 };
  show({ type: "object", properties: { count, share: { type: "number" } }, required: ["count"] });
  for (const [text, problem] of [
    ["one", /such as 12/],
    ["1.5", /integer/],
    ["0", /less than/],
    ["12345678901234567890", /too many digits/],
  ] as const) {
    type("count", text);
    expect(problems()["/count"]).toMatch(problem);
  }
  type("count", "12");
  type("share (optional)", "3.5e-1");
  expect(entered).toEqual({ value: { count: 12, share: 0.35 }, errors: new Map() });
});

test("a boolean, which has no value at first", () => {
  show({ type: "boolean", title: "Publish?" });
  expect(problems()).toEqual({ "": "Enter a value." });
  fireEvent.click(screen.getByLabelText("No"));
  expect(entered.value).toBe(false);
  expect(screen.getByRole("group", { name: "Publish?" })).toBeTruthy();
});

test("one of several values, which need not be texts", () => {
  show({ enum: ["red", 2, null] });
  const options = within(screen.getByLabelText("Answer")).getAllByRole("option");
  expect(options.map(({ textContent }) => textContent)).toEqual(["–", "red", "2", "null"]);
  type("Answer", "1");
  expect(entered.value).toBe(2);
});

test("values with names", () => {
  show({
    oneOf: [
      { const: "de", title: "German" },
      { const: "fr", description: "French" },
    ],
  });
  type("Answer", "1");
  expect(screen.getByText("German")).toBeTruthy();
  expect(entered.value).toBe("fr");
});

test("a constant is shown and sent", () => {
  const properties = { kind: { const: "refund" }, sum: { type: "number", default: 5 } };
  show({ type: "object", properties, required: ["kind", "sum"] });
  screen.getByText("refund");
  expect(entered.value).toEqual({ kind: "refund", sum: 5 });
});

test("alternatives, of which only the chosen one is checked", () => {
  const decision = (name: string, more = {}, required: string[] = []) => ({
    type: "object",
    properties: { decision: { const: name }, ...more },
    required: ["decision", ...required],
  });
  const content = { content: { type: "string", minLength: 1 } };
  show({ oneOf: [decision("approve"), decision("respond", content, ["content"])] });
  expect(problems()).toEqual({ "": "Choose one of the alternatives." });
  fireEvent.click(screen.getByLabelText("respond"));
  expect(problems()).toEqual({ "/content": "Enter a value." });
  type("content", "Later");
  expect(entered).toEqual({ value: { decision: "respond", content: "Later" }, errors: new Map() });
  fireEvent.click(screen.getByLabelText("approve"));
  expect(entered.value).toEqual({ decision: "approve" });
  // What was entered is there again.
  fireEvent.click(screen.getByLabelText("respond"));
  expect(entered.value).toEqual({ decision: "respond", content: "Later" });
});

test("several types are alternatives", () => {
  show({ type: ["integer", "null"] });
  fireEvent.click(screen.getByLabelText("null"));
  expect(entered.value).toBeNull();
  fireEvent.click(screen.getByLabelText("integer"));
  expect(entered.errors.size).toBe(1);
});

test("an elicitation asks for its content only if it is accepted", () => {
  const mail = { type: "string", format: "email" };
  show({
    type: "object",
    required: ["action"],
    properties: { action: { enum: ["accept", "decline", "cancel"], description: "choose" } },
    if: { properties: { action: { const: "accept" } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: {
      required: ["content"],
      properties: { content: { type: "object", properties: { mail }, required: ["mail"] } },
    },
  });
  fireEvent.click(screen.getByLabelText("decline"));
  expect(entered).toEqual({ value: { action: "decline" }, errors: new Map() });
  fireEvent.click(screen.getByLabelText("accept"));
  type("mail", "nobody");
  expect(problems()["/content/mail"]).toMatch(/email/);
  type("mail", "jane@acme.example");
  const value = { action: "accept", content: { mail: "jane@acme.example" } };
  expect(entered).toEqual({ value, errors: new Map() });
});

test("a list grows and shrinks", () => {
  const item = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  show({ type: "array", items: item, minItems: 2 });
  expect(problems()[""]).toMatch(/too few|fewer/i);
  press("Add an item");
  press("Add an item");
  const [first, second] = screen.getAllByLabelText("name");
  fireEvent.change(first as Element, { target: { value: "a" } });
  expect(problems()).toEqual({ "/1/name": "Enter a value." });
  fireEvent.change(second as Element, { target: { value: "b" } });
  expect(entered).toEqual({ value: [{ name: "a" }, { name: "b" }], errors: new Map() });
  press("Remove Item 1");
  expect(entered.value).toEqual([{ name: "b" }]);
});

test("an object that may be left out begins with a button", () => {
  const street = { type: "string" };
  const address = { type: "object", properties: { street }, required: ["street"] };
  show({ type: "object", properties: { address } });
  expect(entered.value).toEqual({});
  press("Add address");
  type("street", "Main Street");
  expect(entered.value).toEqual({ address: { street: "Main Street" } });
  press("Remove address");
  expect(entered.value).toEqual({});
});

test("a value that may be null or left out begins with a button, and not as null", () => {
  const note = { anyOf: [{ type: "null" }, { type: "string" }], default: null };
  show({ type: "object", properties: { note, count: { type: ["integer", "null"] } } });
  const chosen = () =>
    screen.queryAllByRole<HTMLInputElement>("radio").map(({ checked: isChosen }) => isChosen);
  const write = (value: string) =>
    fireEvent.change(screen.getByRole("textbox"), { target: { value } });
  expect(chosen()).toEqual([]);
  expect(screen.queryByRole("button", { name: /Remove/ })).toBeNull();
  expect(entered).toEqual({ value: {}, errors: new Map() });
  press("Add note");
  expect(chosen()).toEqual([false, true]);
  write("x");
  expect(entered.value).toEqual({ note: "x" });
  fireEvent.click(screen.getByLabelText("null"));
  expect(entered).toEqual({ value: { note: null }, errors: new Map() });
  press("Remove note");
  expect(entered.value).toEqual({});
  press("Add count");
  expect(chosen()).toEqual([true, false]);
  write("3");
  expect(entered).toEqual({ value: { count: 3 }, errors: new Map() });
});

test("a given null and a default other than null are shown", () => {
  const of = (initial: string | null) => ({ type: ["string", "null"], default: initial });
  show({ type: "object", properties: { a: of(null), b: of("x") } }, { a: null });
  expect(entered).toEqual({ value: { a: null, b: "x" }, errors: new Map() });
  press("Remove b");
  expect(entered.value).toEqual({ a: null });
  press("Add b");
  expect(entered.value).toEqual({ a: null, b: "x" });
});

test("references and parts of all are resolved", () => {
  const $defs = { "a/b": { type: "integer", description: "how many" } };
  const count = { allOf: [{ $ref: "#/$defs/a~1b" }], default: 3 };
  show({ $defs, type: "object", properties: { count }, required: ["count"] });
  screen.getByText("how many");
  expect(entered.value).toEqual({ count: 3 });
});

test("everything else is JSON, which is checked by the schema", () => {
  show({ type: "object", additionalProperties: { type: "number" } });
  type("Answer (JSON)", '{"a": ');
  expect(problems()[""]).toMatch(/not JSON/);
  type("Answer (JSON)", '{"a": "x"}');
  expect(problems()[""]).toMatch(/^\/a: .*number/);
  type("Answer (JSON)", '{"a": 1}');
  expect(entered).toEqual({ value: { a: 1 }, errors: new Map() });
});

test("a form can be edited as JSON and back", () => {
  show({ type: "object", properties: { name: { type: "string" } } }, { name: "x" });
  press("Edit as JSON");
  type("Answer (JSON)", '{"name": "y", "more": 1}');
  press("Edit as form");
  screen.getByText(/no place for this value/);
  type("Answer (JSON)", '{"name": "y"}');
  press("Edit as form");
  expect((screen.getByLabelText("name (optional)") as HTMLInputElement).value).toBe("y");
});

test("a given value is shown in full, also what the schema does not name", () => {
  show({ type: "object", properties: { name: { type: "string" } } }, { name: "x", more: "\u202e" });
  const text = (screen.getByLabelText("Answer (JSON)") as HTMLTextAreaElement).value;
  expect(text).toContain('"more": "\\u202e"');
  expect(entered.value).toEqual({ name: "x", more: "\u202e" });
});

test("the focus goes to what was added, and stays in the form after a removal", async () => {
  const tags = { type: "array", items: { type: "string" } };
  show({ type: "object", properties: { tags, agreed: { type: ["boolean", "null"] } } });
  const hasFocus = (element: () => Element) =>
    waitFor(() => expect(document.activeElement).toBe(element()));
  const named = (name: string) => () => screen.getByRole("button", { name });
  press("Add tags");
  await hasFocus(named("Add an item"));
  press("Add an item");
  await hasFocus(() => screen.getByLabelText("Item 1"));
  press("Add an item");
  await hasFocus(() => screen.getByLabelText("Item 2"));
  press("Remove Item 2");
  await hasFocus(() => screen.getByLabelText("Item 1"));
  press("Remove Item 1");
  await hasFocus(named("Add an item"));
  press("Remove tags");
  await hasFocus(named("Add tags"));
  press("Add agreed");
  await hasFocus(() => screen.getByLabelText("Yes"));
});
