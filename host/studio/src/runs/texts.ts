// The texts of the list of runs.

export const TEXTS = {
  title: "Runs",
  textHint: "id, thread, failure",
  createdSince: "Requested since",
  createdTo: "Requested until",
  reading: "Reading the runs…",
  none: "There are no runs yet. Start one in an app.",
  noneMatch: "No run matches the filters.",
  searching: "Searching older runs…",
  stopped: "Not all older runs were searched.",
  list: "Runs, newest request first",
  run: "Run",
  thread: "Thread",
  requested: "Requested",
  duration: "Duration",
  cost: "Cost",
};
