// The way from a box of a picture to its neighbors, for the arrow keys.
import type { Box } from "./layout.ts";

/** Directions by the keys that lead there. */
const DIRECTIONS: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
};

/** How much farther away a box counts as for each pixel beside the direction. */
const ASIDE = 2;

/** Returns the box that a key leads to; `undefined` for any other key, and if there is none. */
export function neighbor(boxes: readonly Box[], from: Box, key: string): Box | undefined {
  const direction = DIRECTIONS[key];
  if (direction === undefined) return undefined;
  const [right, down] = direction;
  const [startX, startY] = headOf(from);
  let [nearest, least]: [Box | undefined, number] = [undefined, Number.POSITIVE_INFINITY];
  for (const box of boxes) {
    const [x, y] = headOf(box);
    const [dx, dy] = [x - startX, y - startY];
    const along = dx * right + dy * down;
    const aside = Math.abs(dx * down) + Math.abs(dy * right);
    if (along <= 0 || along + ASIDE * aside >= least) continue;
    [nearest, least] = [box, along + ASIDE * aside];
  }
  return nearest;
}

/** Height of the part of a box that has its name. */
const HEAD_PX = 60;

/** Returns the middle of the heading of a box. */
function headOf({ x, y, width, height }: Box): [number, number] {
  return [x + width / 2, y + Math.min(height, HEAD_PX) / 2];
}
