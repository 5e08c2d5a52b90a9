// Custom sections of components.

/** The section with the manifest of a plugin. */
export const MANIFEST = "wattle:manifest";

/** Appends a custom section to a component. */
export function withSection(component, name, text) {
  const title = Buffer.from(name);
  const content = Buffer.concat([leb128(title.length), title, Buffer.from(text)]);
  return Buffer.concat([component, Buffer.from([0]), leb128(content.length), content]);
}

/** Encodes a number as unsigned LEB128. */
function leb128(number) {
  const bytes = [];
  let rest = number;
  do {
    const byte = rest & 0x7f;
    rest >>>= 7;
    bytes.push(rest === 0 ? byte : byte | 0x80);
  } while (rest !== 0);
  return Buffer.from(bytes);
}
