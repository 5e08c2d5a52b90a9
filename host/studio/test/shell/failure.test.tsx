// What is shown in place of what is being read, or could not be read.
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { errorIn } from "@wattle/page/api";
import { afterEach, expect, test, vi } from "vitest";
import { Failure, Reading } from "../../src/shell/failure.tsx";

afterEach(cleanup);

test("a failure shows the reason as text, and another attempt is made on request", () => {
  const retry = vi.fn();
  render(<Failure error={errorIn(500, { detail: "<b>\u202e" })} what="Runs" onRetry={retry} />);
  screen.getByText("Runs: <b>[U+202E]");
  fireEvent.click(screen.getByRole("button", { name: "Retry" }));
  expect(retry).toHaveBeenCalledOnce();
});

test("a request that has to name a tenant fails with what the view asks for", () => {
  const details = { missing: "tenant", header: "x-tenant" };
  const error = errorIn(401, { detail: "the request names no tenant", details });
  const { rerender } = render(<Failure error={error} onRetry={() => {}} />);
  screen.getByText("the request names no tenant");
  rerender(<Failure error={error} tenantNeeded="Enter the tenant." onRetry={() => {}} />);
  screen.getByText("Enter the tenant.");
  expect(screen.queryByRole("button")).toBeNull();
});

test("a reading says so until there is data, and why there is none", () => {
  const refetch = vi.fn();
  const { rerender } = render(<Reading of={{ error: null, data: undefined, refetch }} />);
  expect(screen.getByRole("status").textContent).toBe("Reading…");
  rerender(<Reading of={{ error: null, refetch }} text="Reading the runs…" />);
  expect(screen.getByRole("status").textContent).toBe("Reading the runs…");
  rerender(<Reading of={{ error: null, data: [], refetch }} />);
  expect(screen.queryByRole("status")).toBeNull();
  const error = errorIn(404, { detail: "no such run" });
  rerender(<Reading of={{ error, data: [], refetch }} notFound="The run is gone." />);
  screen.getByText("The run is gone.");
  fireEvent.click(screen.getByRole("button", { name: "Retry" }));
  expect(refetch).toHaveBeenCalledOnce();
});
