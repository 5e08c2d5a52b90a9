// The choices of filters by app, graph and status.
import { useApps } from "../../api/apps.ts";
import { type Option, optionsOf } from "../options.ts";
import { TEXTS } from "./texts.ts";

/** The choice of no condition. */
const ALL: Option = { value: "", name: TEXTS.all };

/** How many items of each status match the other conditions. */
export interface Counts {
  total: number;
  by_status: Readonly<Record<string, number>>;
  is_complete: boolean;
}

/** Returns the choices of a status, each with the number of items that it would show. */
export function statusOptions(statuses: readonly string[], counts: Counts | undefined): Option[] {
  const named = (name: string, count: number | undefined) =>
    counts === undefined || count === undefined
      ? name
      : TEXTS.counted(name, count, counts.is_complete);
  const options = statuses.map((value) => ({
    value,
    name: named(value, counts?.by_status[value]),
  }));
  return [{ ...ALL, name: named(ALL.name, counts?.total) }, ...options];
}

interface Selected {
  app?: string | undefined;
  graph?: string | undefined;
}

/** Returns the names of the loaded apps, and of the selected one, which may have been removed. */
export function useAppOptions({ app }: Selected): Option[] {
  const { data = [] } = useApps();
  const names = data.map(({ name }) => name);
  return optionsOf(TEXTS.all, names, app);
}

/** Returns the graphs of the selected app or of all apps, and the selected one. */
export function useGraphOptions({ app, graph }: Selected): Option[] {
  const { data = [] } = useApps();
  const apps = data.filter(({ name }) => app === undefined || app === name);
  const names = apps.flatMap(({ graphs }) => graphs);
  return optionsOf(TEXTS.all, names, graph);
}
