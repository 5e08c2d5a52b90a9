// The texts of the list of threads.

export const TEXTS = {
  title: "Threads",
  textHint: "id, run, failure, metadata",
  createdSince: "Created since",
  createdTo: "Created until",
  updatedSince: "Updated since",
  updatedTo: "Updated until",
  reading: "Reading the threads…",
  none: "There are no threads yet. A run of an app makes one.",
  noneMatch: "No thread matches the filters.",
  searching: "Searching older threads…",
  stopped: "Not all older threads were searched.",
  list: "Threads, newest update first",
  thread: "Thread",
  updated: "Updated",
  created: "Created",
};
