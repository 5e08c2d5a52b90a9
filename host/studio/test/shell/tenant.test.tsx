// The tenant that the operator has to name for a thread, if its address does not.
import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import { problem } from "../host.ts";
import { show } from "../show.tsx";

const OPERATOR = { is_operator: true, tenant_header: "x-tenant" };

const COMPARED = "/compare?left=t1%7Er1&right=t1%7Er2";

/** Tenants of the requests about a thread. */
let tenants: (string | null)[];

beforeEach(() => {
  tenants = [];
  noteTenantHeader("x-tenant");
  vi.stubGlobal("fetch", async ({ url, headers }: Request) => {
    if (/threads\/|runs\//.test(url)) tenants.push(headers.get("x-tenant"));
    return problem(404, "there is no such thing");
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  noteTenantHeader(null);
});

test("an address that does not name the tenant of its thread asks for it", async () => {
  const { history } = show("/threads/a%3Fb%2Fc/runs/r1?view=log", OPERATOR);
  const field = await screen.findByLabelText("Tenant");
  expect(tenants).toEqual([]);
  fireEvent.change(field, { target: { value: "acme" } });
  fireEvent.click(screen.getByRole("button", { name: "Continue" }));
  await screen.findByRole("heading", { name: "Run r1" });
  expect(history.location.href).toBe("/threads/a%3Fb%2Fc/runs/r1?view=log&tenant=acme");
  await waitFor(() => expect(tenants.length).toBeGreaterThan(0));
  expect(new Set(tenants)).toEqual(new Set(["acme"]));
});

test("a name that an address cannot have is refused with the reason", async () => {
  const { history } = show("/threads/t1", OPERATOR);
  const field = await screen.findByLabelText("Tenant");
  fireEvent.change(field, { target: { value: "x".repeat(257) } });
  fireEvent.click(screen.getByRole("button", { name: "Continue" }));
  await screen.findByText("The name is too long.");
  expect(history.location.href).toBe("/threads/t1");
});

test.each(["/threads/t1", "/threads/t1/checkpoints/3", COMPARED])("%s asks", async (route) => {
  show(route, OPERATOR);
  await screen.findByLabelText("Tenant");
  expect(tenants).toEqual([]);
});

test.each([
  ["the address names it", "/threads/t1?tenant=acme", OPERATOR],
  ["the host has a default tenant", "/threads/t1", { ...OPERATOR, tenant: "default" }],
  ["the host has no header for it", "/threads/t1", { is_operator: true }],
  ["the request belongs to a tenant", "/threads/t1", { ...OPERATOR, is_operator: false }],
])("the tenant is not asked for if %s", async (_, route, access) => {
  show(route, access);
  await screen.findByRole("heading", { name: "t1" });
  expect(screen.queryByLabelText("Tenant")).toBeNull();
});
