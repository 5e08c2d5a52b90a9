// The documents of the app's endpoints, most of them under shorter names.
import type { components } from "../schema.d.ts";

type Schemas = components["schemas"];

/** A step of the workflow, without the workflow itself. */
export type StepName = Exclude<Schemas["StepName"], "workflow">;

export type Cell = unknown;
export type Row = Record<string, Cell>;

export type Intent = Schemas["IntentResult"];
export type Task = Schemas["ParseResult"];
export type Replacement = Schemas["AppliedFieldReplacement"];
export type Generation = Schemas["SqlGenerationResult"];
export type Execution = Schemas["Execution"];
export type HiddenContext = Schemas["HiddenContextResult"];
export type Result = Schemas["ResultReturnResult"];

/** The outcome of a step. */
export type Detail = Schemas["Detail"];

export type Session = Schemas["Session"];
export type SessionList = Schemas["SessionList"];
export type Suggestions = Schemas["Suggestions"];
export type RowList = Schemas["RowList"];
export type Message = Schemas["Message"];

/** Status of a question without an answer. */
export type Pending = Schemas["MessageList"]["pending"];

export type Messages = Pick<Schemas["MessageList"], "messages" | "total" | "pending">;

/** An event of the stream of a question. */
export type StepEvent = Schemas["Progress"];
