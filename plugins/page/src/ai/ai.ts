// Chats with the AI SDK.
import "./jitless.ts";

export {
  type ChatHelpers,
  type ChatOptions,
  type StoredChat,
  type Unsent,
  useChat,
} from "./chat.ts";
export { textOf } from "./message.ts";
