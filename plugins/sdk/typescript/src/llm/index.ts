// Language models.

export { Checked, Refusal, TASK_FAILED } from "./attempt.ts";
export {
  type Attempt,
  Completion,
  type CompletionFields,
  type FinishReason,
  type Usage,
} from "./completion.ts";
export type { HistoryOptions } from "./history.ts";
export {
  GeneratedImage,
  type GeneratedImageFields,
  generateImages,
  type ImageOptions,
  type ImageRequest,
} from "./image.ts";
export {
  complete,
  completeAll,
  Request,
  type RequestOptions,
  type ResponseSchema,
  type ToolChoice,
  ToolDefinition,
} from "./request.ts";
export { RouteInfo, type RouteInfoFields, route } from "./route.ts";
export { CompletionStream, type StreamEvent, type StreamHandle, stream } from "./stream.ts";
export { Task, type TaskOptions } from "./task.ts";
