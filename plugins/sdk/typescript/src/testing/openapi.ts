// The check of an OpenAPI document.

import type { Plugin } from "../plugin.ts";
import { openapi } from "../web/openapi.ts";

/** What Node.js has, without a dependency on its types. */
declare const process: {
  env: Record<string, string | undefined>;
  getBuiltinModule(id: "node:fs"): {
    readFileSync(file: string, encoding: "utf8"): string;
    writeFileSync(file: string, text: string): void;
  };
};

/** Environment variable with which {@link checkOpenapi} writes the file. */
const WRITE_OPENAPI = "WATTLE_WRITE_OPENAPI";

/**
 * Checks that a file has the OpenAPI document of a plugin's handlers. With the environment variable
 * `WATTLE_WRITE_OPENAPI`, the file is written instead. Types of clients can be generated from the file.
 *
 * @throws If the file is missing or has another document.
 */
export function checkOpenapi(file: string, title: string, plugin: Plugin): void {
  const fs = process.getBuiltinModule("node:fs");
  const document = `${JSON.stringify(openapi(title, plugin.handlers), null, 2)}\n`;
  if (process.env[WRITE_OPENAPI] !== undefined) {
    fs.writeFileSync(file, document);
    return;
  }
  const known = JSON.parse(fs.readFileSync(file, "utf8")) as unknown;
  if (JSON.stringify(known) === JSON.stringify(JSON.parse(document))) return;
  throw new Error(
    `\`${file}\` does not describe the handlers; run this test with \`${WRITE_OPENAPI}=1\`, which ` +
      "writes the file",
  );
}
