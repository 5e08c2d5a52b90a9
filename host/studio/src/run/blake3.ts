// BLAKE3, the hash function of the digests in the log. Browsers do not have it.

const IV = Uint32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
);

const BLOCK_BYTES = 64;
const CHUNK_BYTES = 1_024;
const ROUNDS = 7;

/** Flags of a compression. */
const [CHUNK_START, CHUNK_END, PARENT, ROOT] = [1, 2, 4, 8];

/** The columns of the state, and then its diagonals. */
const LANES = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as const;

const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/** The words of a block in the order of all rounds, 16 for each. */
const ORDER = orderOfRounds();

function orderOfRounds(): Uint8Array {
  const order = new Uint8Array(ROUNDS * 16);
  for (let at = 0; at < order.length; at += 1) {
    const [round, place] = [Math.floor(at / 16), at % 16];
    order[at] = round === 0 ? place : get(order, (round - 1) * 16 + get(PERMUTATION, place));
  }
  return order;
}

/** Returns the hash of bytes. */
export function blake3(bytes: Uint8Array): Uint8Array {
  const hash = new Uint8Array(32);
  const view = new DataView(hash.buffer);
  for (const [at, word] of treeValue(bytes, 0, ROOT).entries()) view.setUint32(4 * at, word, true);
  return hash;
}

/** Returns the value of a tree of chunks. `first` is the number of its first chunk. */
function treeValue(bytes: Uint8Array, first: number, flags: number): Uint32Array {
  if (bytes.length <= CHUNK_BYTES) return chunkValue(bytes, first, flags);
  // The left part has as many chunks as possible of which there is a power of two, but not all.
  const chunks = 1 << (31 - Math.clz32(Math.floor((bytes.length - 1) / CHUNK_BYTES)));
  const end = chunks * CHUNK_BYTES;
  const block = new Uint32Array(16);
  block.set(treeValue(bytes.subarray(0, end), first, 0));
  block.set(treeValue(bytes.subarray(end), first + chunks, 0), 8);
  return compressed(IV, block, 0, BLOCK_BYTES, PARENT | flags);
}

function chunkValue(bytes: Uint8Array, chunk: number, flags: number): Uint32Array {
  const blocks = Math.max(Math.ceil(bytes.length / BLOCK_BYTES), 1);
  let value: Uint32Array = IV;
  for (let block = 0; block < blocks; block += 1) {
    const part = bytes.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
    const start = block === 0 ? CHUNK_START : 0;
    const end = block === blocks - 1 ? CHUNK_END | flags : 0;
    value = compressed(value, wordsOf(part), chunk, part.length, start | end);
  }
  return value;
}

/** Returns the words of a block, of which the last ones may be missing. */
function wordsOf(part: Uint8Array): Uint32Array {
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(part);
  const view = new DataView(block.buffer);
  const words = new Uint32Array(16);
  for (let at = 0; at < 16; at += 1) words[at] = view.getUint32(4 * at, true);
  return words;
}

function compressed(
  value: Uint32Array,
  words: Uint32Array,
  counter: number,
  length: number,
  flags: number,
): Uint32Array {
  const state = new Uint32Array(16);
  state.set(value);
  state.set(IV.subarray(0, 4), 8);
  // No text of a browser has so many chunks that the upper half of the counter is not zero.
  state.set([counter, 0, length, flags], 12);
  for (let at = 0; at < ORDER.length; at += 2) {
    const lane = LANES[(at / 2) % LANES.length] ?? LANES[0];
    mix(state, lane, get(words, get(ORDER, at)), get(words, get(ORDER, at + 1)));
  }
  const result = new Uint32Array(8);
  for (let at = 0; at < 8; at += 1) result[at] = get(state, at) ^ get(state, at + 8);
  return result;
}

function mix(
  state: Uint32Array,
  [a, b, c, d]: (typeof LANES)[number],
  first: number,
  second: number,
): void {
  state[a] = get(state, a) + get(state, b) + first;
  state[d] = rotated(get(state, d) ^ get(state, a), 16);
  state[c] = get(state, c) + get(state, d);
  state[b] = rotated(get(state, b) ^ get(state, c), 12);
  state[a] = get(state, a) + get(state, b) + second;
  state[d] = rotated(get(state, d) ^ get(state, a), 8);
  state[c] = get(state, c) + get(state, d);
  state[b] = rotated(get(state, b) ^ get(state, c), 7);
}

function rotated(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

/** Returns a number that is there. */
function get(numbers: ArrayLike<number>, at: number): number {
  return numbers[at] as number;
}
