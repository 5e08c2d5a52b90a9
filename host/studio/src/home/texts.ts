// The texts of the home view.

export const TEXTS = {
  title: "Home",
  host: "Host",
  version: "Version",
  instance: "Instance",
  zone: "Time zone",
  recovery: "Recovery of runs",
  recovered: (recovered: number, found: number) => `${recovered} of ${found} runs continue`,
  setAside: (count: number) => `${count} set aside`,
  waiting: (count: number) => `${count} wait for their app`,
  problemCount: "Load problems",
  healthUnread: "The health of the host cannot be read",
  apps: "Apps",
  reading: "Reading the apps…",
  noApps: "No app is loaded. Put an app into the plugins folder, and it is loaded.",
  graphs: "Graphs",
  threads: "Threads",
  page: (title: string) => `Open ${title}`,
  unbuilt: "The page is not built",
  problems: "Files and folders that were not loaded",
  noProblems: "Everything was loaded.",
};
