// `wit/wattle/clock.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/clock@0.1.0" {
  import type { Integer, Option } from "wattle:plugin/types@0.1.0";

  export interface Civil {
    year: number;
    month: number;
    day: number;
    hour: number;
    minute: number;
    second: number;
    millisecond: number;
  }

  export interface Zoned {
    civil: Civil;
    offsetSeconds: number;
    weekday: number;
    zone: string;
  }

  export function now(): Integer;
  export function monotonic(): Integer;
  export function timeZone(): string;
  export function toZone(unixMs: Integer, zone: Option<string>): Zoned;
  export function fromZone(civil: Civil, zone: Option<string>): Integer;
}
