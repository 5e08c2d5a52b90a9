// The key of a tab: where it is, and how tabs hand it over.
import { afterEach, expect, test, vi } from "vitest";
import {
  askKey,
  keyOf,
  leave,
  noteTenantHeader,
  offerKey,
  refuse,
  requestHeaders,
  setKey,
  setTenant,
  tenantHeaders,
} from "../../src/access/key.ts";

const CHANNEL = "wattle-studio-key";
const STORED = "wattle-studio-key";

/** Opens the channel as another tab does. */
function tab(onMessage: (data: unknown, channel: BroadcastChannel) => void): BroadcastChannel {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => onMessage(data, channel);
  opened.push(channel);
  return channel;
}

const opened: BroadcastChannel[] = [];

afterEach(() => {
  for (const channel of opened.splice(0)) channel.close();
  leave();
  noteTenantHeader(null);
});

test("a key is in memory, in `sessionStorage` and in the headers of requests only", () => {
  setKey("secret");
  expect(requestHeaders()).toEqual({ "x-api-key": "secret" });
  expect(sessionStorage.getItem(STORED)).toBe("secret");
  expect(localStorage.length).toBe(0);
  expect(document.cookie + location.href).not.toContain("secret");
  setKey(null);
  expect(requestHeaders()).toEqual({});
  expect(sessionStorage.getItem(STORED)).toBeNull();
});

test("a new tab takes the key of another one", async () => {
  tab((data, channel) => channel.postMessage({ ...Object(data), kind: "key", key: "theirs" }));
  expect(await askKey()).toBe(true);
  expect(keyOf()).toBe("theirs");
});

test("a tab without another one stays without a key", async () => {
  expect(await askKey()).toBe(false);
  expect(keyOf()).toBeNull();
});

test("a key that nobody asked for is not taken", async () => {
  const stop = offerKey();
  const answers: unknown[] = [];
  const other = tab((data) => answers.push(data));
  other.postMessage({ kind: "key", id: "1", key: "planted" });
  other.postMessage(null);
  setKey("own");
  other.postMessage({ kind: "ask", id: "2" });
  await vi.waitFor(() => expect(answers).toEqual([{ kind: "key", id: "2", key: "own" }]));
  expect(keyOf()).toBe("own");
  stop();
});

test("who leaves in one tab leaves in all", async () => {
  const stop = offerKey();
  setKey("own");
  tab(() => undefined).postMessage({ kind: "leave" });
  await vi.waitFor(() => expect(keyOf()).toBeNull());
  stop();
});

test("the refusal of an older key does not remove a newer one", () => {
  setKey("new");
  refuse("old", "revoked");
  expect(keyOf()).toBe("new");
  refuse("new", "revoked");
  expect(keyOf()).toBeNull();
});

test("a tenant is named in the header of the host", () => {
  expect(tenantHeaders("acme")).toEqual({});
  setTenant("x-tenant", "acme");
  expect(requestHeaders()).toEqual({ "x-tenant": "acme" });
  expect(tenantHeaders("other")).toEqual({ "x-tenant": "other" });
});
