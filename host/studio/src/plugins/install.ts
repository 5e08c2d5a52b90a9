// Sends components to the host, which checks and installs them. The page itself opens no file.
import { api, ok, type Schemas } from "../api/client.ts";

/** A component that the host accepts, as it describes it. */
export type Checked = Schemas["CheckedPluginDocument"];

/** Bytes of the largest component that the host accepts. */
export const MOST_BYTES = 64 * 1024 * 1024;

/** Returns the name of a plugin in a file: that of the file without its extension. */
export function pluginNameOf(file: string): string {
  return file.replace(/\.wasm$/i, "");
}

/** The body of a request. The file is sent as it is. */
function bodyOf(component: Blob) {
  return {
    // The document of the API has no type for bytes.
    body: component as Blob & string,
    bodySerializer: (body: unknown) => body,
    headers: { "content-type": "application/wasm" },
  };
}

/** Returns what a component would be, without installing it. */
export function check(plugin: string, component: Blob): Promise<Checked> {
  const params = { path: { plugin } };
  return ok(api.POST("/api/v1/plugins/{plugin}/check", { params, ...bodyOf(component) }));
}

/** Installs a component as a standalone plugin. */
export function install(plugin: string, component: Blob): Promise<Checked> {
  const params = { path: { plugin } };
  return ok(api.PUT("/api/v1/plugins/{plugin}", { params, ...bodyOf(component) }));
}

/** Removes a standalone plugin. */
export async function remove(plugin: string): Promise<void> {
  await ok(api.DELETE("/api/v1/plugins/{plugin}", { params: { path: { plugin } } }));
}
