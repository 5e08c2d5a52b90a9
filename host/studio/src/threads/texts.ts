// The texts of the list of threads.

export const TEXTS = {
  title: "Threads",
  filters: "Filters",
  app: "App",
  status: "Status",
  tenant: "Tenant",
  all: "All",
  clear: "Clear filters",
  focusFilters: "Go to the filters",
  reading: "Reading the threads…",
  none: "There are no threads yet. A run of an app makes one.",
  noneMatch: "No thread matches the filters.",
  retry: "Retry",
  tenantNeeded: "Enter the tenant whose threads you want to see.",
  list: "Threads, newest update first",
  thread: "Thread",
  graph: "App and graph",
  updated: "Updated",
  created: "Created",
};
