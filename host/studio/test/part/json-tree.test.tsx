// A JSON document as a tree, which may be large, deep and of strangers.
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { JsonTree } from "../../src/part/json-tree.tsx";

afterEach(cleanup);

/** Returns an object that is nested so deep. */
function nested(depth: number): unknown {
  let value: unknown = "bottom";
  for (let level = 0; level < depth; level += 1) value = { next: value };
  return value;
}

const content = () => screen.getByRole("group", { name: "Result" }).textContent ?? "";

test("a small document is open, and a user can close its parts", () => {
  render(<JsonTree label="Result" value={{ a: [1, true, null], b: "text" }} />);
  expect(content()).toBe('{2 fields}a: [3 items]0: 11: true2: nullb: "text"');
  fireEvent.click(screen.getByRole("button", { name: /^a ?:/ }));
  expect(content()).toBe('{2 fields}a: [3 items]b: "text"');
});

test("values without children are shown as they are", () => {
  render(<JsonTree label="Result" value={{ list: [], object: {}, zero: 0 }} />);
  expect(content()).toBe("{3 fields}list: []object: {}zero: 0");
});

test("the children of a large value are rendered step by step", () => {
  render(<JsonTree label="Result" value={Array.from({ length: 450 }, (_, index) => index)} />);
  expect(screen.queryAllByRole("listitem").length).toBe(0);
  fireEvent.click(screen.getByRole("button", { name: "[450 items]" }));
  expect(screen.getAllByRole("listitem").length).toBe(201);
  fireEvent.click(screen.getByRole("button", { name: "Show more (200 of 450)" }));
  fireEvent.click(screen.getByRole("button", { name: "Show more (400 of 450)" }));
  expect(screen.getAllByRole("listitem").length).toBe(450);
});

test("a long text is cut until a user asks for more", () => {
  render(<JsonTree label="Result" value={"x".repeat(5_000)} />);
  expect(content().length).toBeLessThan(4_100);
  fireEvent.click(screen.getByRole("button", { name: "Show more (4,000 of 5,000)" }));
  expect(content()).toBe(`"${"x".repeat(5_000)}"`);
});

test("a value that is nested too deep ends somewhere", () => {
  render(<JsonTree label="Result" value={nested(80)} />);
  for (let level = 0; level < 70; level += 1) {
    const [closed] = screen.queryAllByRole("button", { expanded: false });
    if (closed !== undefined) fireEvent.click(closed);
  }
  expect(content()).toMatch(/nested deeper/);
  expect(content()).not.toMatch(/bottom/);
});

test("markup and characters that turn text around stay text", () => {
  render(<JsonTree label="Result" value={{ "<b>": "<img src=x> \u202egnp" }} />);
  expect(content()).toBe('{1 field}<b>: "<img src=x> [U+202E]gnp"');
  expect(document.querySelector("img, b")).toBeNull();
});
