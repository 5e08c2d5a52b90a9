// What a server keeps for its clients: assistants, items, crons, and more of threads.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { INPUT, asked, needs, refused } from "./checks.mjs";

const { deepEqual, equal, ok } = assert;

/** Every night, which no test sees. */
const NIGHTLY = "15 3 * * *";

export async function assistants({ assistants, runs }) {
  const mark = randomUUID();
  const made = await assistants.create({
    graphId: "factory_agent",
    context: { access_context: "of the assistant" },
    metadata: { mark },
    name: "by hand",
  });
  const id = made.assistant_id;
  deepEqual([made.name, made.version], ["by hand", 1]);
  const values = await runs.wait(null, id, { input: { text: "hi" } });
  equal(values.access_context, "of the assistant");
  const changed = await assistants.update(id, { name: "newer", metadata: { more: 1 } });
  deepEqual([changed.name, changed.version], ["newer", 2]);
  deepEqual((await assistants.getVersions(id)).map(({ version }) => version), [2, 1]);
  equal((await assistants.setLatest(id, 1)).name, "by hand");
  equal((await assistants.get(id)).version, 1);
  deepEqual((await assistants.search({ metadata: { mark } })).map((it) => it.assistant_id), [id]);
  equal(await assistants.count({ metadata: { mark } }), 1);
  await assistants.delete(id);
  await refused(assistants.get(id), 404);
  return changed;
}

export async function pages_of_assistants({ assistants }) {
  const page = await assistants.search({ limit: 1, includePagination: true });
  // An older client returns the assistants alone.
  needs("the next page of assistants", !Array.isArray(page));
  deepEqual([page.assistants.length, page.next], [1, "1"]);
  return page;
}

export async function graphs({ assistants }) {
  const [{ assistant_id }] = await assistants.search({ graphId: "agent" });
  const { nodes, edges } = await assistants.getGraph(assistant_id, { xray: true });
  ok(nodes.some(({ id }) => id === "call_tool"));
  ok(edges.some(({ source, target }) => source === "stream_message" && target === "call_tool"));
  equal((await assistants.getSchemas(assistant_id)).graph_id, "agent");
  equal(typeof (await assistants.getSubgraphs(assistant_id, { recurse: true })), "object");
  return nodes;
}

export async function store({ store }) {
  const root = `mark-${randomUUID()}`;
  equal(await store.getItem([root], "one"), null);
  await store.putItem([root], "one", { color: "red" });
  await store.putItem([root, "in"], "two", { color: "blue" }, { ttl: 60, index: false });
  const item = await store.getItem([root], "one");
  deepEqual([item.value, item.namespace, item.key], [{ color: "red" }, [root], "one"]);
  ok(item.createdAt && item.updatedAt);
  const { items } = await store.searchItems([root], { filter: { color: "blue" } });
  deepEqual(items.map(({ key }) => key), ["two"]);
  const { namespaces } = await store.listNamespaces({ prefix: [root] });
  deepEqual(namespaces.map((names) => names.slice(1)).toSorted(), [[], ["in"]]);
  await store.deleteItem([root], "one");
  equal(await store.getItem([root], "one"), null);
  return item;
}

export async function crons({ crons, threads }) {
  const made = await crons.create("agent", { schedule: NIGHTLY, input: INPUT });
  deepEqual([made.schedule, made.thread_id, made.enabled], [NIGHTLY, null, true]);
  const { thread_id } = await threads.create();
  const own = await crons.createForThread(thread_id, "agent", { schedule: NIGHTLY, input: INPUT });
  equal(own.thread_id, thread_id);
  equal(await crons.count({ threadId: thread_id }), 1);
  const found = await crons.search({ threadId: thread_id });
  deepEqual(found.map(({ cron_id }) => cron_id), [own.cron_id]);
  for (const { cron_id } of [made, own]) await crons.delete(cron_id);
  await refused(crons.delete(made.cron_id), 404);
  return made;
}

export async function crons_that_change({ crons }) {
  needs("changes of crons", "update" in crons);
  const mark = randomUUID();
  const made = await crons.create("agent", {
    schedule: NIGHTLY,
    input: INPUT,
    metadata: { mark },
    timezone: "Asia/Shanghai",
  });
  deepEqual([made.schedule, made.timezone, made.enabled], [NIGHTLY, "Asia/Shanghai", true]);
  const changed = await crons.update(made.cron_id, { enabled: false });
  equal(changed.enabled, false);
  const found = await crons.search({ metadata: { mark } });
  deepEqual(found.map(({ cron_id }) => cron_id), [made.cron_id]);
  await crons.delete(made.cron_id);
  return changed;
}

export async function more_of_threads(client) {
  const { threads } = client;
  const mark = randomUUID();
  const { thread_id, values } = await asked(client);
  await threads.update(thread_id, { metadata: { mark }, ttl: 60, returnMinimal: true });
  const copy = await threads.copy(thread_id);
  deepEqual((await threads.getState(copy.thread_id)).values.items, values.items);
  equal(await threads.count({ metadata: { mark }, status: "interrupted" }), 2);
  const found = await threads.search({
    metadata: { mark },
    sortBy: "created_at",
    sortOrder: "asc",
    select: ["thread_id"],
  });
  deepEqual(found.map((thread) => thread.thread_id), [thread_id, copy.thread_id]);
  const updates = [{ values: { items: ["old"] }, asNode: "stream_message" }];
  const past = await threads.create({ graphId: "agent", supersteps: [{ updates }] });
  deepEqual((await threads.getState(past.thread_id)).next, ["call_tool"]);
  return found;
}

export async function parts_of_threads(client) {
  const { threads } = client;
  needs("values taken out of threads", "prune" in threads);
  const { thread_id } = await asked(client);
  await threads.update(thread_id, { ttl: 60 });
  const [found] = await threads.search({
    ids: [thread_id],
    select: ["thread_id"],
    extract: { said: "values.value" },
  });
  deepEqual(found, { thread_id, extracted: { said: "x" } });
  ok((await threads.get(thread_id, { include: ["ttl"] })).ttl);
  const pruned = await threads.prune([thread_id], { strategy: "delete" });
  equal(pruned.pruned_count, 1);
  await refused(threads.get(thread_id), 404);
  return found;
}
