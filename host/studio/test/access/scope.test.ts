// What scopes permit.
import { expect, test } from "vitest";
import { may, type Need } from "../../src/access/scope.ts";

const NEEDS: readonly Need[] = ["read", "write", "admin", "operator"];

test.each([
  ["read", false, ["read"]],
  ["write", false, ["read", "write"]],
  ["admin", false, ["read", "write", "admin"]],
  ["admin", true, ["read", "write", "admin", "operator"]],
  ["write", true, ["read", "write"]],
] as const)("the scope %s, operator %s, permits %j", (scope, is_operator, permitted) => {
  expect(NEEDS.filter((need) => may({ scope, is_operator }, need))).toEqual(permitted);
});
