// The texts of the frame.

export const TEXTS = {
  studio: "Wattle studio",
  tab: (title: string) => (title === "" ? "Wattle studio" : `${title} – Wattle studio`),
  navigation: "Main",
  logOut: "Log out",
  scopes: {
    read: "read-only key",
    write: "key that may write",
    admin: "key with all rights",
  },
  tenant: (name: string) => `tenant ${name}`,
  user: (name: string) => `user ${name}`,
  upgraded: (version: string) => `The host runs version ${version} now. Reload the studio.`,
  reload: "Reload",
  reading: "Reading…",
  retry: "Retry",
  keyboard: "Keyboard",
  showKeyboard: "Show the keys",
  goTo: (name: string) => `Go to ${name}`,
  notFound: "Nothing is at this address",
  notFoundHint: "The view may belong to another version of the studio.",
  failed: "This view failed",
  home: "Go to the home view",
};

export const TENANT = {
  title: "Choose a tenant",
  unnamed: "The address does not name the tenant of the thread, which this host needs to know.",
  tenant: "Tenant",
  continue: "Continue",
  tooLong: "The name is too long.",
  none: "A thread without a tenant cannot be shown.",
};
