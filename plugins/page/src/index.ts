// The parts that nearly every page needs. Larger parts have entries of their own.
export { Alert } from "./alert/alert.tsx";
export { ApiError, address, type Problem, request } from "./api/index.ts";
export { ErrorBoundary } from "./boundary/boundary.tsx";
export { Composer, type ComposerProps } from "./chat/composer.tsx";
export {
  type Attachment,
  FileButton,
  FilePreviews,
  type Files,
  useFiles,
} from "./chat/files.tsx";
export { MessageList, Said } from "./chat/messages.tsx";
export { takeSuggestion } from "./chat/suggestion.ts";
export { JsonView, ToolCard, type ToolState, toolState } from "./chat/tool-card.tsx";
export { Banner, useConnection } from "./connection/connection.tsx";
export { Button } from "./control/button.tsx";
export { Field, SelectField, TextField } from "./control/field.tsx";
export { copyText, saveFile } from "./control/save.ts";
export { Segments } from "./control/segments.tsx";
export { Dialog } from "./dialog/dialog.tsx";
export { later } from "./hook/later.ts";
export { useOnce } from "./hook/once.ts";
export { usePersistent } from "./hook/persistent.ts";
export { useTabs } from "./hook/tabs.ts";
export { Panel, Shell, showPage } from "./shell/shell.tsx";
export { ThemeToggle, useTheme } from "./theme/theme.tsx";
export { Announce, Toasts, toast } from "./toast/toast.tsx";
