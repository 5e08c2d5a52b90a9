// The choices of filters by app, graph and status.
import { useApps } from "../../api/apps.ts";
import { visible } from "../text.tsx";
import { TEXTS } from "./texts.ts";

export interface Option {
  value: string;
  name: string;
}

/** The choice of no condition. */
export const ALL: Option = { value: "", name: TEXTS.all };

interface Selected {
  app?: string | undefined;
  graph?: string | undefined;
}

/** Returns the names of the loaded apps, and of the selected one, which may have been removed. */
export function useAppOptions({ app }: Selected): Option[] {
  const { data = [] } = useApps();
  return optionsOf(
    data.map(({ name }) => name),
    app,
  );
}

/** Returns the graphs of the selected app or of all apps, and the selected one. */
export function useGraphOptions({ app, graph }: Selected): Option[] {
  const { data = [] } = useApps();
  const apps = data.filter(({ name }) => app === undefined || app === name);
  return optionsOf(
    apps.flatMap(({ graphs }) => graphs),
    graph,
  );
}

function optionsOf(known: readonly string[], selected: string | undefined): Option[] {
  const names = new Set(selected === undefined ? known : [...known, selected]);
  const sorted = [...names].sort((one, other) => one.localeCompare(other));
  return [ALL, ...sorted.map((name) => ({ value: name, name: visible(name) }))];
}
