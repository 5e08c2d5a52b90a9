// The cases of branches that a run took, as the picture of its graph needs them.
import { nodeKey } from "../run/node-states.ts";
import type { CasesOfBranch, TakenCase, TakenCases } from "../run/taken.ts";
import { caseLines, casesOf, type Item, lineKey } from "./definition.ts";
import type { Scene } from "./scene.ts";

/** The cases without a run. */
export const NO_CASES: TakenCases = new Map();

/** Returns the keys of the lines that a run took at branches, with those in opened nodes. */
export function takenLines(scene: Scene, taken: TakenCases): readonly string[] {
  const own = scene.shape.items.flatMap((item) => {
    const indexes = takenAt(scene, item, taken)?.keys() ?? [];
    const cases = casesOf(item);
    return [...indexes].flatMap((index) => {
      const found = cases[index];
      return found === undefined ? [] : caseLines(item.id, found);
    });
  });
  const inner = [...scene.inside.values()].flat();
  return [
    ...own.map((line) => scene.key + lineKey(line)),
    ...inner.flatMap((copy) => takenLines(copy.scene, taken)),
  ];
}

/** Returns the cases of a branch that a run took, in all scenes that show it. */
export function takenIn(
  boxes: readonly { readonly scene: Scene; readonly item: Item }[],
  taken: TakenCases,
): CasesOfBranch {
  const sums = new Map<number, TakenCase>();
  for (const { scene, item } of boxes) {
    for (const [index, { count, seq }] of takenAt(scene, item, taken) ?? []) {
      const before = sums.get(index) ?? { count: 0, seq: 0 };
      sums.set(index, { count: before.count + count, seq: Math.max(before.seq, seq) });
    }
  }
  return sums;
}

function takenAt(
  { place }: Scene,
  { kind, name }: Item,
  taken: TakenCases,
): CasesOfBranch | undefined {
  if (kind !== "branch" || place === undefined) return undefined;
  return taken.get(nodeKey(place, name));
}
