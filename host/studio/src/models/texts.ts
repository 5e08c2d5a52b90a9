// The texts of the view of models.

export const TEXTS = {
  title: "Models",
  reading: "Reading the models…",
  forbidden: "Only the operator of the host sees models.",
  routes: "Routes",
  routesNote: "A route calls its first model. The others are called if it fails.",
  noRoutes: "The host has no model routes.",
  route: "Route",
  model: "Model",
  input: "Input, a million tokens",
  output: "Output, a million tokens",
  noPrice: "no price",
  noPriceNote: "Costs are without models that have no price under [model.prices] in wattle.toml.",
  others: "Prices of other models",
};
