// Who sent a request, as events have it.
import type { Schemas } from "../api/client.ts";
import { useKeyName } from "../api/key-name.ts";
import { visible } from "./text.tsx";

type Principal = Schemas["Principal"];

const TEXTS = {
  user: (name: string) => `User ${name}`,
  key: (id: string) => `The key ${id}`,
  namedKey: (name: string, id: string) => `The key ${name} (${id})`,
  appItself: (name: string) => `The app ${name}`,
  command: "A command on the machine of the host",
  somebody: "Somebody without a key",
};

/**
 * Returns the name of who sent a request, as far as it is known. A key has its id beside its name,
 * because several keys may have one name.
 */
export function useWho(principal: Principal | undefined): string {
  const { user, key, app, local } = principal ?? {};
  const isKey = local !== true && user == null && key != null;
  const name = useKeyName(isKey ? key : undefined);
  if (local === true) return TEXTS.command;
  if (user != null) return TEXTS.user(visible(user));
  if (key != null && name !== undefined) return TEXTS.namedKey(visible(name), visible(key));
  if (key != null) return TEXTS.key(visible(key));
  return app == null ? TEXTS.somebody : TEXTS.appItself(visible(app));
}
