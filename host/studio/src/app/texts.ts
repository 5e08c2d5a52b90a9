// The texts of the view of an app.

export const TEXTS = {
  title: (app: string) => `App ${app}`,
  reading: "Reading the app…",
  notFound: "The host has no such app.",
  facts: "Facts",
  version: "Version",
  digest: "Digest",
  plugins: "Plugins",
  settings: "Settings",
  mount: "Mounted at",
  graphs: "Graphs",
  noGraphs: "The app has no graph.",
  threads: "Threads",
  playground: "Playground",
  endpoints: "Endpoints",
};
