// The texts of the filters of lists.

export const TEXTS = {
  filters: "Filters",
  text: "Search",
  app: "App",
  status: "Status",
  graph: "Graph",
  tenant: "Tenant",
  failure: "Failure code",
  more: (count: number) => (count === 0 ? "More filters" : `More filters (${count})`),
  all: "All",
  clear: "Clear filters",
  focusFilters: "Go to the filters",
  tooLong: "The text is too long.",
  partial: "Enter a complete date and time.",
  noTime: "Enter a date and a time from 1970 to 9998.",
};
