// Who sent a request, as events have it.
import type { Schemas } from "../api/client.ts";
import { visible } from "./text.tsx";

const TEXTS = {
  user: (name: string) => `User ${name}`,
  key: (id: string) => `The key ${id}`,
  appItself: (name: string) => `The app ${name}`,
  command: "A command on the machine of the host",
  somebody: "Somebody without a key",
};

/** Returns the name of who sent a request, as far as it is known. */
export function whoOf(principal: Schemas["Principal"] | undefined): string {
  const { user, key, app, local } = principal ?? {};
  if (local === true) return TEXTS.command;
  if (user != null) return TEXTS.user(visible(user));
  if (key != null) return TEXTS.key(visible(key));
  return app == null ? TEXTS.somebody : TEXTS.appItself(visible(app));
}
