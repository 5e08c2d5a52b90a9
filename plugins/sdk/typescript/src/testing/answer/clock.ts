// Implements `clock` with a stopped clock and zones with fixed offsets.

import type { Civil, Zoned } from "../../clock.ts";
import { Failure } from "../../failure.ts";
import * as civil from "../civil.ts";
import { current } from "../state.ts";

export function now(): number {
  return current().nowMs;
}

export function monotonic(): number {
  return current().monotonicNs;
}

export function timeZone(): string {
  return find(undefined).name;
}

export function toZone(unixMs: number, zone: string | undefined): Zoned {
  const { name, offsetSeconds } = find(zone);
  return civil.toZone(unixMs, name, offsetSeconds);
}

export function fromZone(time: Civil, zone: string | undefined): number {
  return civil.fromZone(time, find(zone).offsetSeconds);
}

/** Returns the time zone with a name that was set last, or the time zone that was set last. */
function find(zone: string | undefined): { name: string; offsetSeconds: number } {
  const found = current().zones.findLast(({ name }) => zone === undefined || zone === name);
  if (found !== undefined) return found;
  throw Failure.invalid(`there is no time zone \`${zone}\`; add it with \`FakeHost.zone\``);
}
