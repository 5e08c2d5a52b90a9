// The lines that would allow a denied call, as the host names them in its message.

/** A table of the configuration, and a line to add to it. Of several lines, one is enough. */
export interface Grant {
  table: string;
  lines: readonly string[];
}

const TABLE = /^\[grants\.[^\n]+\]$/;

const LINE = /^[a-z_]+ = [^\n]+$/;

/** Returns what a message about a missing grant asks for; `undefined` if it names no line. */
export function grantIn(message: string): Grant | undefined {
  // Every second part is between backticks.
  const quoted = message.split("`").filter((_, index) => index % 2 === 1);
  const table = quoted.findLast((part) => TABLE.test(part));
  const lines = quoted.filter((part) => LINE.test(part));
  return table === undefined || lines.length === 0 ? undefined : { table, lines };
}

/** Returns the lines of a configuration with a grant. */
export function grantText({ table, lines: [line = "", ...others] }: Grant): string {
  return [table, line, ...others.map((other) => `# or: ${other}`)].join("\n");
}
