// Implements `settings` with the script.

import { current } from "../state.ts";

export function get(name: string): string | undefined {
  const { settings } = current();
  return Object.hasOwn(settings, name) ? JSON.stringify(settings[name]) : undefined;
}

export function all(): string {
  return JSON.stringify(current().settings);
}
