/** Messages of the host, as the body of a Responses request: everything in its place and in its order. */

import { isHostData, type Message, type Part, textOfOther, withoutHostMarks } from "./parts.ts";

export interface Tool {
  name: string;
  description: string;
  inputSchema?: object | undefined;
}

export interface RequestOptions {
  /** Undefined for whatever the active backend has. */
  model: string | undefined;
  tools: readonly Tool[];
  toolChoice: "auto" | "required" | "none";
  /** How much to reason, where the user or the host says so. */
  effort: string | undefined;
  modelOptions: Readonly<Record<string, unknown>>;
}

export type Item = Record<string, unknown> & { type: string };

/** The property under which a call's arguments are given to the host when they are no JSON object. */
export const RAW_ARGUMENTS = "invalid_json_arguments";

/** The property of a thinking part's metadata that has the whole reasoning item. */
export const REASONING_ITEM = "throughline_reasoning_item";

/** Builds the body of a request. */
export function buildRequest(messages: readonly Message[], options: RequestOptions): Record<string, unknown> {
  const { temperature, top_p, max_tokens, max_output_tokens } = options.modelOptions;
  const body: Record<string, unknown> = {
    input: messages.flatMap(toItems),
    stream: true,
    include: ["reasoning.encrypted_content"],
  };
  if (options.model !== undefined) body["model"] = options.model;
  if (options.tools.length > 0) {
    body["tools"] = options.tools.map(toTool);
    body["tool_choice"] = options.toolChoice;
  }
  if (options.effort !== undefined) body["reasoning"] = { effort: options.effort, summary: "auto" };
  if (typeof temperature === "number") body["temperature"] = temperature;
  if (typeof top_p === "number") body["top_p"] = top_p;
  const limit = max_output_tokens ?? max_tokens;
  if (typeof limit === "number") body["max_output_tokens"] = limit;
  return body;
}

function toTool(tool: Tool): Record<string, unknown> {
  const schema = tool.inputSchema === undefined ? {} : (withoutHostMarks(tool.inputSchema) as Record<string, unknown>);
  const parameters = { type: "object", properties: {}, ...schema };
  return { type: "function", name: tool.name, description: tool.description, parameters, strict: false };
}

/** Returns the items of one message. */
export function toItems(message: Message): Item[] {
  const items: Item[] = [];
  let content: Record<string, unknown>[] = [];
  const flush = () => {
    if (content.length > 0) items.push({ type: "message", role: message.role, content });
    content = [];
  };
  for (const part of inOrder(message)) {
    const item = toItem(part);
    if (item !== undefined) {
      flush();
      items.push(item);
    } else {
      content.push(...toContent(message, part));
    }
  }
  flush();
  return items;
}

/** What a message is counted behind: a prompt of nothing but, say, a result would be repaired, and counted with that. */
const COUNTED_BEHIND: Item = { type: "message", role: "user", content: [{ type: "input_text", text: "." }] };

/**
 * Returns a message to be counted alone, as two prompts: one with it, and one without. Calls get a result of nothing,
 * and results a call, in both where they are not the message's own.
 */
export function toCountable(message: Message): { input: Item[]; empty: Item[]; length: number } {
  const input = [COUNTED_BEHIND];
  const empty = [COUNTED_BEHIND];
  const items = toItems({ ...message, parts: message.parts.filter((part) => part.kind !== "thinking") });
  for (const item of items) {
    const { type, call_id } = item;
    const nothing = { type: "function_call_output", call_id, output: "" };
    if (type === "function_call") {
      input.push(item, nothing);
    } else if (type === "function_call_output") {
      const call = { type: "function_call", call_id, name: "tool", arguments: "{}" };
      input.push(call, item);
      empty.push(call, nothing);
    } else {
      input.push(item);
    }
  }
  return { input, empty, length: JSON.stringify(items).length - 2 };
}

/**
 * A model thinks before it speaks and acts, and backends want its thoughts in that place. Hosts keep them as one
 * part of the message, wherever that happens to stand.
 */
function inOrder(message: Message): Part[] {
  if (message.role !== "assistant") return message.parts;
  const thoughts = message.parts.filter((part) => part.kind === "thinking");
  return [...thoughts, ...message.parts.filter((part) => part.kind !== "thinking")];
}

function toItem(part: Part): Item | undefined {
  switch (part.kind) {
    case "call":
      return { type: "function_call", call_id: part.callId, name: part.name, arguments: toArguments(part.input) };
    case "result":
      return { type: "function_call_output", call_id: part.callId, output: toOutput(part.content) };
    case "thinking":
      return toReasoning(part);
    default:
      return undefined;
  }
}

function toArguments(input: unknown): string {
  if (typeof input === "string") return input;
  const plain = withoutHostMarks(input ?? {});
  const raw = (plain as Record<string, unknown>)[RAW_ARGUMENTS];
  return typeof raw === "string" ? raw : JSON.stringify(plain);
}

/** Returns the thought as it came, where the host kept that; backends verify their own. */
function toReasoning(part: Part & { kind: "thinking" }): Item | undefined {
  const kept = part.metadata[REASONING_ITEM];
  if (typeof kept === "string") return JSON.parse(kept) as Item;
  if (part.text === "") return undefined;
  return { type: "reasoning", summary: [{ type: "summary_text", text: part.text }] };
}

/** Returns what a tool answered: plain text where it is nothing else. */
function toOutput(parts: readonly Part[]): string | Record<string, unknown>[] {
  const content = parts.flatMap((part) => toInput(part));
  const isText = content.every((piece) => piece["type"] === "input_text");
  return isText ? content.map((piece) => piece["text"]).join("") : content;
}

function toContent(message: Message, part: Part): Record<string, unknown>[] {
  if (message.role !== "assistant") return toInput(part);
  // The Responses API has no pictures in what an assistant said; that there was one is said in words.
  return toInput(part).map((piece) => ({
    type: "output_text",
    text: piece["type"] === "input_text" ? piece["text"] : describe(part),
  }));
}

function toInput(part: Part): Record<string, unknown>[] {
  switch (part.kind) {
    case "text":
      return part.text === "" ? [] : [{ type: "input_text", text: part.text }];
    case "data":
      return isHostData(part.mime) ? [] : [toMedia(part)];
    case "other":
      return [{ type: "input_text", text: textOfOther(part.value) }];
    default:
      return [];
  }
}

function toMedia(part: Part & { kind: "data" }): Record<string, unknown> {
  const { mime, data } = part;
  const encoded = () => `data:${mime};base64,${Buffer.from(data).toString("base64")}`;
  if (mime.startsWith("image/")) return { type: "input_image", image_url: encoded(), detail: "auto" };
  if (mime === "application/pdf") return { type: "input_file", filename: "document.pdf", file_data: encoded() };
  if (/^text\/|[/+](json|xml|yaml)$/.test(mime)) {
    return { type: "input_text", text: new TextDecoder().decode(data) };
  }
  return { type: "input_text", text: describe(part) };
}

const describe = (part: Part): string =>
  part.kind === "data" ? `[${part.mime}, ${part.data.length} bytes, not shown]` : "[not shown]";
