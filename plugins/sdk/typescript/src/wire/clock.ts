// Calls of `clock`.

import * as raw from "wattle:plugin/clock@0.1.0";
import type { Civil, Zoned } from "../clock.ts";
import { call, rawOption, same } from "./convert.ts";

export function now(): number {
  return Number(raw.now());
}

export function monotonic(): number {
  return Number(raw.monotonic());
}

export function timeZone(): string {
  return raw.timeZone();
}

export function toZone(unixMs: number, zone: string | undefined): Zoned {
  return call(() => raw.toZone(Math.trunc(unixMs), rawOption(zone, same)));
}

export function fromZone(civil: Civil, zone: string | undefined): number {
  return Number(call(() => raw.fromZone(civil, rawOption(zone, same))));
}
