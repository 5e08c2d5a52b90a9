// The choices of filters by app, graph and status.
import { useApps } from "../../api/apps.ts";
import { type Option, optionsOf } from "../options.ts";
import { TEXTS } from "./texts.ts";

/** The choice of no condition. */
export const ALL: Option = { value: "", name: TEXTS.all };

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
