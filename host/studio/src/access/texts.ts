// The texts of the login.

export const TEXTS = {
  studio: "Wattle studio",
  reading: "Connecting to the host…",
  loginTab: "Log in – Wattle studio",
  login: "Log in",
  keyNeeded: "This host needs an API key.",
  key: "API key",
  enter: "Log in",
  keyKept: "The key stays in this tab until you close it or log out.",
  refused: (reason: string) => `The host refused the key: ${reason}`,
  tenantTitle: "Choose a tenant",
  tenantNeeded: (header: string) =>
    `The requests name no tenant: the header ${header} is missing. A proxy usually sets it.`,
  tenant: "Tenant",
  continue: "Continue",
  notPrintable: "Enter printable ASCII characters without spaces.",
};
