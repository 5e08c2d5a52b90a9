// `wit/wattle/random.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/random@0.1.0" {
  export function bytes(length: number): Uint8Array;
}
