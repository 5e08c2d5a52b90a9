// The way into the studio: without a key, with one, with a refused one, without a tenant.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AccessGate, Guarded, useAccess } from "../../src/access/access.tsx";
import { keyOf, leave, noteTenantHeader, setKey } from "../../src/access/key.ts";
import { accessOf, problem } from "../host.ts";

let answer: (headers: Headers) => Response;

beforeEach(() => {
  vi.stubGlobal("fetch", async (request: Request) => answer(request.headers));
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  leave();
  noteTenantHeader(null);
});

function Inside() {
  const { scope } = useAccess();
  return (
    <>
      <p>scope {scope}</p>
      <Guarded need="operator">
        <p>for the operator</p>
      </Guarded>
    </>
  );
}

function show(): void {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <AccessGate>
        <Inside />
      </AccessGate>
    </QueryClientProvider>,
  );
}

async function logIn(key: string): Promise<void> {
  const field = await screen.findByLabelText("API key");
  fireEvent.change(field, { target: { value: key } });
  fireEvent.click(screen.getByRole("button", { name: "Log in" }));
}

test("a host without keys asks for none", async () => {
  answer = () => Response.json(accessOf({ needs_key: false, is_operator: true }));
  show();
  await screen.findByText("scope admin");
  screen.getByText("for the operator");
});

test("a key that the host refuses is removed, and the reason is shown", async () => {
  answer = (headers) => {
    if (headers.get("x-api-key") === "good") {
      return Response.json(accessOf({ scope: "read", key: { id: "k1" } }));
    }
    return problem(401, "send a known key", { missing: "key" });
  };
  show();
  await logIn("bad");
  await screen.findByText(/The host refused the key: send a known key/);
  expect(keyOf()).toBeNull();
  await logIn("good");
  await screen.findByText("scope read");
  expect(screen.queryByText("for the operator")).toBeNull();
});

test("a key that no header can have is not sent", async () => {
  answer = () => problem(401, "send a known key", { missing: "key" });
  show();
  await logIn("ключ");
  await screen.findByText(/printable ASCII/);
  expect(keyOf()).toBeNull();
});

test("a tenant that nobody named is asked for, and the key is kept", async () => {
  setKey("good");
  answer = (headers) => {
    if (headers.get("x-tenant") === "acme") return Response.json(accessOf({ tenant: "acme" }));
    return problem(401, "no tenant", { missing: "tenant", header: "x-tenant" });
  };
  show();
  fireEvent.change(await screen.findByLabelText("Tenant"), { target: { value: "acme" } });
  fireEvent.click(screen.getByRole("button", { name: "Continue" }));
  await screen.findByText("scope admin");
  expect(keyOf()).toBe("good");
});

test("a host that fails is asked once more by hand", async () => {
  answer = () => problem(500, "the store is broken");
  show();
  await screen.findByText("the store is broken");
  answer = () => Response.json(accessOf({}));
  fireEvent.click(screen.getByRole("button", { name: "Retry" }));
  await screen.findByText("scope admin");
});
