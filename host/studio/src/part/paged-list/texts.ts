// The texts of lists that are read in pages.

export const TEXTS = {
  further: "Search further",
  tenant: "Tenant",
  status: "Status",
  appAndGraph: "App and graph",
  failure: "Failure",
};
