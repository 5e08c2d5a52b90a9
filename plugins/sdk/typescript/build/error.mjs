// Errors of a build that are no defects of the build.

/** An error whose message is for the author of the plugin. */
export class BuildError extends Error {}
