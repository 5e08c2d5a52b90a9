// The documents of the app's endpoints, under the names that they have there.

export type StepName =
  | "intent_recognition"
  | "task_parse"
  | "sql_generation"
  | "sql_validate"
  | "hidden_context"
  | "result_return";

export type Cell = unknown;
export type Row = Record<string, Cell>;

export interface Intent {
  intent: "chat" | "business_query";
  is_followup: boolean;
  confidence: number;
  merged_query: string;
  rewritten_query: string;
}

export interface Filter {
  field: string;
  op: string;
  value: unknown;
}

export interface Task {
  entities: { type: string; value: string }[];
  dimensions: string[];
  metrics: string[];
  filters: Filter[];
  time_range: { start: string | null; end: string | null };
  operation: "detail" | "aggregate" | "ranking" | "trend";
}

export interface Replacement {
  from: string;
  to: string;
}

export interface Generation {
  sql: string;
  entity_mappings: { type: string; value: string; field: string; reason: string }[];
  sql_fields: string[];
  applied_field_replacements?: Replacement[];
  generation_failed?: true;
  generation_error?: string;
}

export interface Validation {
  is_valid: boolean;
  error: string | null;
  rows: number;
  executed_sql: string;
  empty_result: boolean;
  zero_metric_result: boolean;
  /** Missing at the end of a step; only the first rows in a list of messages. */
  result?: Row[];
}

export interface HiddenContext {
  error_type: string;
  error: string;
  failed_sql: string;
  field_candidates: { missing: string; candidates: string[] }[];
  probe_samples: { field: string; probe_sql: string; values: string[]; error?: string }[];
  hints: string[];
  retry_count: number;
}

export interface Result {
  session_id: string;
  intent: "chat" | "business_query";
  is_followup: boolean;
  merged_query: string;
  rewritten_query: string;
  skipped: boolean;
  final_status: "success" | "partial_success" | "failed";
  reason_code: string | null;
  summary: string;
  assistant_reply: string;
  download_url: string | null;
  task: Task | null;
  sql_result: Generation | null;
  sql_validate_result: Validation | null;
  hidden_context_result: HiddenContext | null;
  hidden_context_retry_count: number;
}

export interface Session {
  session_id: string;
  title: string;
  created_at: string;
  updated_at: string;
  message_count: number;
}

export interface SessionList {
  sessions: Session[];
  /** Number of all sessions. */
  total: number;
}

export interface Message {
  id: number;
  role: "user" | "assistant";
  content: string;
  result: Result | null;
  created_at: string;
}

/** Status of a question without an answer. */
export type Pending =
  | { status: "running" }
  | { status: "failed"; step: string; message: string }
  | null;

export interface Messages {
  messages: Message[];
  total: number;
  pending: Pending;
}

/** An event of the stream of a question. */
export interface StepEvent {
  session_id: string;
  step: StepName | "workflow";
  status: "start" | "end" | "error";
  message: string;
  seq: number;
  detail?: Intent | Task | Generation | Validation | HiddenContext;
  result?: Result;
}
