// The texts of the view of a thread.

export const TEXTS = {
  title: (thread: string) => `Thread ${thread}`,
  reading: "Reading the thread…",
  notFound: "There is no such thread, or it belongs to another tenant.",
  back: "All threads",
  retry: "Retry",
  facts: "Facts",
  status: "Status",
  app: "App",
  graph: "Graph",
  version: "Version",
  run: "Newest run",
  created: "Created",
  updated: "Updated",
  expires: "Expires",
  next: "Next nodes",
  interrupts: "Pending interrupts",
  failure: "Failure of the last run",
  setAside: "The recovery of the run is set aside",
  metadata: "Metadata",
  state: "State",
};
