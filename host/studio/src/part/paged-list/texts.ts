// The texts of lists that are read in pages.

export const TEXTS = {
  further: "Search further",
};
