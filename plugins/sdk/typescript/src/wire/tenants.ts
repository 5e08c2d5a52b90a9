// Calls of `tenants`.

import * as raw from "wattle:plugin/tenants@0.1.0";
import type { Json } from "../json.ts";
import { call, option, text, value } from "./convert.ts";

export function setRoute(route: string, config: Json): void {
  call(() => raw.setRoute(route, text(config)));
}

export function getRoute(route: string): Json | undefined {
  return option(
    call(() => raw.getRoute(route)),
    value,
  );
}

export function removeRoute(route: string): void {
  call(() => raw.removeRoute(route));
}
