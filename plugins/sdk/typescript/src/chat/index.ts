// Conversations: messages of the AI SDK, and the steps of agents.

export { Agent, type AgentNames } from "./agent.ts";
export type { Step, StepStatus, Write } from "./steps.ts";
export type { StoredCall } from "./stored.ts";
export * as ui from "./ui/index.ts";
