// What the view of the host's operation shows, which is in its address.
import { type Access, may, type Need } from "../access/scope.ts";
import { name, oneOf, readSearch, type Search, writeSearch } from "../router/search.ts";

/** A part of the view. */
export interface Part {
  id: PartId;
  /** What a key must permit. */
  need: Need;
  /** True if the host has it only with the Agent Server API. */
  isOfAgentServer?: true;
}

const PART_IDS = [
  "statistics",
  "limits",
  "hosts",
  "queue",
  "crons",
  "webhooks",
  "keys",
  "store",
] as const;

export type PartId = (typeof PART_IDS)[number];

export const PARTS: readonly Part[] = [
  { id: "statistics", need: "admin" },
  { id: "limits", need: "admin" },
  { id: "hosts", need: "operator" },
  { id: "queue", need: "admin" },
  { id: "crons", need: "read", isOfAgentServer: true },
  { id: "webhooks", need: "admin", isOfAgentServer: true },
  { id: "keys", need: "admin" },
  { id: "store", need: "operator" },
];

/** The times that statistics can show, each with its number of intervals and their length. */
export const RANGES = {
  hour: { step: "minute", count: 60 },
  day: { step: "hour", count: 24 },
  week: { step: "hour", count: 168 },
  month: { step: "day", count: 30 },
  year: { step: "day", count: 365 },
} as const;

export type Range = keyof typeof RANGES;

export const RANGE_NAMES: readonly Range[] = ["hour", "day", "week", "month", "year"];

export const GROUPS = ["app", "model", "tenant"] as const;

export type Group = (typeof GROUPS)[number];

/** The search parameters of the view. */
export const FILTER = {
  part: oneOf(PART_IDS),
  app: name,
  tenant: name,
  status: oneOf(["pending", "abandoned", "delivered"]),
  range: oneOf(RANGE_NAMES),
  by: oneOf(GROUPS),
};

export type OperationsFilter = Search<typeof FILTER>;

/** Returns the filter of another part. The tenant stays. */
export function withPart({ tenant }: OperationsFilter, part: PartId): OperationsFilter {
  return readSearch(writeSearch({ part, tenant }), FILTER);
}

/** Returns the parts that the access permits and the host has. */
export function partsOf(access: Access): readonly Part[] {
  return PARTS.filter(
    ({ need, isOfAgentServer }) =>
      may(access, need) && (isOfAgentServer !== true || access.agent_server),
  );
}
