// Percent-encoding of query parameters.

import { encodeUtf8 } from "./utf8.ts";

/** A placeholder of a secret. */
const SECRET = /^\{\{secret:[^{}&#]*\}\}$/;

/** Appends `name=value` to the query of a URL. The fragment remains after the query. */
export function appendQuery(url: string, name: string, value: string): string {
  const hash = url.indexOf("#");
  const [address, fragment] = hash < 0 ? [url, ""] : [url.slice(0, hash), url.slice(hash)];
  const separator = address.includes("?") ? "&" : "?";
  // The braces of a placeholder must not be encoded.
  const encoded = SECRET.test(value) ? value : encode(value);
  return `${address}${separator}${encode(name)}=${encoded}${fragment}`;
}

function encode(text: string): string {
  const encoded = Array.from(encodeUtf8(text), (byte) => {
    const character = String.fromCharCode(byte);
    const hex = byte.toString(16).toUpperCase().padStart(2, "0");
    return /[A-Za-z0-9._~-]/.test(character) ? character : `%${hex}`;
  });
  return encoded.join("");
}
