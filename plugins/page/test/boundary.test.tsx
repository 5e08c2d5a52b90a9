// Errors while a page is rendered.
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ErrorBoundary } from "../src/boundary/boundary.tsx";
import { showPage } from "../src/shell/shell.tsx";

function Broken(): never {
  throw new Error("broken");
}

// React logs every error that a boundary has caught.
beforeEach(() => void vi.spyOn(console, "error").mockImplementation(() => {}));

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

test("a page that cannot be rendered says so and offers to reload", () => {
  const root = document.createElement("div");
  root.id = "root";
  document.body.append(root);
  act(() => showPage(<Broken />));
  expect(screen.getByRole("alert").textContent).toContain("页面出错了");
  const reload = vi.spyOn(location, "reload").mockImplementation(() => {});
  act(() => screen.getByRole("button", { name: "重新加载" }).click());
  expect(reload).toHaveBeenCalledTimes(1);
});

test("a part that cannot be rendered leaves the rest of the page", () => {
  render(
    <>
      <p>rest</p>
      <ErrorBoundary fallback={<p>instead</p>}>
        <Broken />
      </ErrorBoundary>
    </>,
  );
  screen.getByText("rest");
  screen.getByText("instead");
});
