// The lines that would allow a denied call, as the host names them in its message.

/** Places in files, and a line to add in each of them. Of several lines, one is enough. */
export interface Grant {
  /** The file of each place as a comment of TOML, with the table below, if there is one. */
  places: readonly string[];
  lines: readonly string[];
}

const TABLE = /^\[(?:grants\.[^\n]+|needs(?:\.plugins\.[^\n]+)?)\]$/;

const LINE = /^[a-z_]+ = [^\n]+$/;

const MANIFEST = "the plugin's own manifest";

/** Returns what a message about a denied call asks for; `undefined` if it names no line. */
export function grantIn(message: string): Grant | undefined {
  // Every second part is between backticks.
  const quoted = message.split("`").filter((_, index) => index % 2 === 1);
  // The tables end the message. A request comes directly before a grant.
  const last = quoted.findLastIndex((part) => TABLE.test(part));
  const tables = quoted.slice(Math.max(last - 1, 0), last + 1).filter((part) => TABLE.test(part));
  const lines = quoted.filter((part) => LINE.test(part));
  const places = tables.map((table) => `# ${fileOf(table)}\n${table}`);
  if (message.includes(`in ${MANIFEST}`)) places.unshift(`# ${MANIFEST}`);
  return places.length === 0 || lines.length === 0 ? undefined : { places, lines };
}

function fileOf(table: string): string {
  return table.startsWith("[needs") ? "app.toml" : "wattle.toml";
}

/** Returns the lines of each file with a grant. */
export function grantText({ places, lines: [line = "", ...others] }: Grant): string {
  const added = [line, ...others.map((other) => `# or: ${other}`)].join("\n");
  return places.map((place) => `${place}\n${added}`).join("\n\n");
}
