// The texts of the view of the host's operation.
import { countText } from "../part/amount.ts";
import type { Group, PartId, Range } from "./filter.ts";

const PART_NAMES: Record<PartId, string> = {
  statistics: "Statistics",
  limits: "Limits reached",
  hosts: "Hosts",
  queue: "Queue",
  crons: "Crons",
  webhooks: "Webhooks",
  keys: "Keys",
  store: "Store",
};

const RANGE_TEXTS: Record<Range, string> = {
  hour: "Last hour",
  day: "Last day",
  week: "Last week",
  month: "Last 30 days",
  year: "Last year",
};

const GROUP_TEXTS: Record<Group, string> = { app: "App", model: "Model", tenant: "Tenant" };

export const TEXTS = {
  title: "Operations",
  parts: "Parts of the operation",
  partNames: PART_NAMES,
  nothing: "The key permits no part of the operation.",
  filters: "Filters",
  app: "App",
  graph: "Graph",
  tenant: "Tenant",
  status: "Status",
  reading: "Reading…",
  more: "Show more",
  run: "Run",
  thread: "Thread",
  created: "Created",
  tenantNeeded: "Enter the tenant whose items you want to see.",
  noneFound: "None of the examined items matches the filters.",
};

export const HOSTS = {
  list: "Live hosts",
  none: "The store has one host: the one that serves the studio.",
  host: "Host",
  version: "Version",
  started: "Started",
  silent: "Last heartbeat",
  silence: (seconds: string) => `${seconds} s ago`,
  runs: "Runs",
  load: (runs: number, most: number) => `${countText(runs)} of ${countText(most)}`,
  self: "this host",
};

export const QUEUE = {
  list: "Pending runs",
  none: "No run is pending.",
  noneFound: "None of the examined runs matches the filters.",
  due: "Due",
  requested: "Requested",
  by: "Requested by",
  byKey: (id: string) => `key ${id}`,
  byUser: (name: string) => `user ${name}`,
};

export const CRONS = {
  list: "Crons",
  none: "No client has created a cron.",
  schedule: "Schedule",
  zone: "Time zone",
  next: "Next run",
  noNext: "none",
  last: "Newest run",
  noLast: "none yet",
  end: "Ends",
  disabled: "disabled",
  unloaded: "The graph is not loaded",
  assistant: "Assistant",
};

export const WEBHOOKS = {
  list: "Webhooks",
  statuses: { pending: "Pending", abandoned: "Abandoned", delivered: "Delivered" },
  none: {
    pending: "No webhook waits for its delivery.",
    abandoned: "No webhook was abandoned in the last 30 days.",
    delivered: "No delivered webhook of the last 30 days is kept.",
  },
  url: "URL",
  attempts: "Failed attempts",
  next: "Next attempt",
  abandoned: "Abandoned",
  delivered: "Delivered",
  error: "Last error",
  log: "Attempts",
  response: (status: number) => `Status ${status}`,
  noResponse: "No response",
  waits: "The run has not ended.",
  host: "Delivered by",
};

export const KEYS = {
  list: "Keys",
  none: "No key was created.",
  configured: "Keys in the configuration of the host are not listed.",
  open: "The host needs no key. Once a key exists, every request needs one.",
  create: "Create a key",
  name: "Name",
  nameNeeded: "Enter a name.",
  scope: "Permits",
  scopes: { read: "Reading", write: "Reading and writing", admin: "Everything" },
  rate: "Rate limit (optional)",
  rateHint: "such as 10/s",
  days: "Days until it expires (optional)",
  daysProblem: "Enter a number of days, such as 30.",
  tenantOptional: "Tenant (optional)",
  send: "Create",
  made: (name: string) => `The key “${name}” was created. It is shown this once: keep it now.`,
  secret: "The new key",
  hide: "I have kept it",
  id: "Id",
  expires: "Expires",
  expired: "expired",
  used: "Last used",
  unused: "never",
  rateLimit: "Rate limit",
  madeBy: "Created with",
  own: "the key of this tab",
  revoke: "Revoke",
  revokeName: (name: string) => `Revoke ${name}`,
  revokeTitle: (name: string) => `Revoke ${name}?`,
  confirm: "The host refuses the key at once, and its open streams end.",
  confirmOwn: "This is the key of this tab: you have to log in again.",
  withMade: "Also revoke the keys that were created with it",
  last: "Revoke it all the same",
  lastNote: "Without its last key, everybody who reaches the host may do everything.",
  left: (count: number) =>
    count === 1
      ? "A key that was created with it still works."
      : `${count} keys that were created with it still work.`,
};

export const STORE = {
  measured: "Measured",
  threads: "Threads",
  bytes: "Size of the threads",
  database: "Size of the database",
  size: "Size",
  apps: "By app",
  tenants: "By tenant",
  noApp: "without an app",
  noTenant: "without a tenant",
  others: "others",
  files: "Data folder of the host",
  file: "File or folder",
  count: "Files",
  noFiles: "The data folder is empty.",
  noThreads: "There are no threads.",
  partial: "The data folder has more files than are measured.",
  verify: "Verify the store",
  verifyNote: "Reads everything that is stored, which can take long.",
  verifying: "Verifying…",
  intact: (threads: number) => `${countText(threads)} threads were read. Nothing is damaged.`,
  damaged: (items: number, threads: number) =>
    `${countText(threads)} threads were read. Damaged: ${countText(items)}.`,
  damages: "What is damaged",
  backUp: "Back up the store",
  backUpNote:
    "Copies threads, blobs and the long-term memory into a new folder of the data folder. " +
    "The command “wattle store backup” also copies the code of older threads, the routes of " +
    "tenants and the secret of links.",
  backingUp: "Copying…",
  backedUp: "The copy is in",
  incomplete: "The copy lacks damaged blobs.",
  compact: "Compact the store",
  compactNote: "Gives the space of deleted data back to the file system.",
  compactTitle: "Compact the store?",
  compactText: "What runs write waits until the store is compacted.",
  compacted: (before: string, after: string) => `${before} before, ${after} now.`,
};

export const LIMITS = {
  list: "Limits that runs reached",
  none: "No run reached a limit in this time.",
  limit: "Limit",
  runs: "Runs",
  show: "Threads",
  threads: "Threads that failed by a limit",
  failures: "Failed runs by code",
  noFailures: "No run failed in this time.",
  code: "Code",
  other: "others",
};

export const REJECTED = {
  title: "Rejected requests",
  note: "Requests of all tenants that exceeded a limit since the start of the host that serves the studio.",
  none: "No request exceeded a limit.",
  limit: "Limit",
  status: "Status",
  count: "Requests",
  /** The limits by the reason that the host counts. */
  limits: {
    rate: { limit: "Rate of a key or an address", status: "429" },
    requests: { limit: "Open requests", status: "429, 503" },
    size: { limit: "Size of a request body", status: "413" },
    bodies: { limit: "Memory of request bodies", status: "503" },
    responses: { limit: "Memory of unread responses", status: "503" },
    connections: { limit: "Connections", status: "503" },
  },
};

export const STATISTICS = {
  range: "Time",
  ranges: RANGE_TEXTS,
  by: "Each",
  groups: GROUP_TEXTS,
  everything: "Everything",
  incomplete: "Some names are missing: an interval had too many.",
  measures: {
    runs: "Runs",
    failures: "Failed runs",
    calls: "Model calls",
    tokens: "Tokens",
    cost: "Cost",
  },
  nothing: {
    runs: "No run ended in this time.",
    failures: "No run failed in this time.",
    calls: "No model was called in this time.",
    tokens: "No tokens were used in this time.",
    cost: "Nothing has a cost in this time. Prices are those of [model.prices] in wattle.toml.",
  },
  curves: {
    completed: "Completed",
    interrupted: "Interrupted",
    failed: "Failed",
    cancelled: "Cancelled",
    calls: "Calls",
    failedCalls: "Failed calls",
    input: "Input",
    output: "Output",
    cost: "Cost",
  },
  unpriced: (tokens: number) => `${countText(tokens)} tokens are of models without a price.`,
  others: "Others",
  unnamed: { app: "Without an app", model: "Unknown model", tenant: "Without a tenant" },
  from: "From",
  total: "Total",
  plot: (measure: string, range: string) => `${measure} over time: ${range.toLowerCase()}`,
  table: (measure: string) => `${measure} by time`,
};
