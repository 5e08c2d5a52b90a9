// What the scope of a request permits.
import type { Schemas } from "@wattle/page/native";

/** The access of this tab's requests, as the host describes it. */
export type Access = Schemas["AccessDocument"];

/** What a part of the studio needs: a scope, or the rights of the operator. */
export type Need = Schemas["KeyScope"] | "operator";

const RANKS = { read: 0, write: 1, admin: 2 } as const;

/** Returns true if the access permits what needs this. `write` includes `read`, `admin` both. */
export function may(access: Pick<Access, "scope" | "is_operator">, need: Need): boolean {
  if (need === "operator") return access.is_operator && access.scope === "admin";
  return RANKS[access.scope] >= RANKS[need];
}
