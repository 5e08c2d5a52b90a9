// The range of the axis of bars.

/** Returns the range, with space above the highest bar and below the lowest one. */
export function barRange(low: number, high: number): [number, number] {
  const [bottom, top] = [Math.min(low, 0), Math.max(high, 0)];
  const room = (top - bottom || 1) * 0.08;
  return [bottom < 0 ? bottom - room : 0, top > 0 || bottom === 0 ? top + room : 0];
}
