/**
 * What the host puts into messages, read into plain values.
 *
 * Parts are recognised by their shape, not by their class: hosts hand over parts of classes that an extension
 * cannot name (thinking, newer versions of the stable ones), and tests have no host at all.
 */

export type Role = "system" | "user" | "assistant";

export type Part =
  | { kind: "text"; text: string }
  | { kind: "thinking"; text: string; id: string | undefined; metadata: Record<string, unknown> }
  | { kind: "call"; callId: string; name: string; input: unknown }
  | { kind: "result"; callId: string; content: Part[] }
  | { kind: "data"; mime: string; data: Uint8Array }
  | { kind: "other"; value: unknown };

export interface Message {
  role: Role;
  parts: Part[];
}

/** The data part in which the host gives back what a provider told it to remember about its state. */
export const MARKER_MIME = "stateful_marker";

/** Data parts that hosts keep for themselves; no model is meant to see them. */
const HOST_DATA = new Set([MARKER_MIME, "cache_control", "context_management", "phase_data", "thinking", "usage"]);

export const isHostData = (mime: string): boolean => HOST_DATA.has(mime);

/** Reads a message of the host's. */
export function readMessage(message: { role: number; content: readonly unknown[] | string }): Message {
  const role = message.role === 2 ? "assistant" : message.role === 3 ? "system" : "user";
  const content = typeof message.content === "string" ? [message.content] : message.content;
  return { role, parts: content.map(readPart) };
}

/** Reads one part of a message or of a tool result. */
export function readPart(part: unknown): Part {
  if (typeof part === "string") return { kind: "text", text: part };
  if (!isRecord(part)) return { kind: "other", value: part };
  const { callId, name, content, mimeType, data, value } = part;
  if (typeof callId === "string") {
    if (Array.isArray(content)) return { kind: "result", callId, content: content.map(readPart) };
    if (typeof name === "string") return { kind: "call", callId, name, input: part["input"] };
  }
  if (typeof mimeType === "string" && isBytes(data)) return { kind: "data", mime: mimeType, data };
  const text = typeof value === "string" ? value : isStrings(value) ? value.join("") : undefined;
  if (text === undefined) return { kind: "other", value: part };
  if (!("metadata" in part) && !("id" in part)) return { kind: "text", text };
  const metadata = isRecord(part["metadata"]) ? part["metadata"] : {};
  return { kind: "thinking", text, id: typeof part["id"] === "string" ? part["id"] : undefined, metadata };
}

/**
 * Returns a value without what the host adds when it passes objects between its processes: `$mid` marks the class
 * of an object on the wire, and means nothing to a model.
 */
export function withoutHostMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutHostMarks);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([key]) => key !== "$mid");
  return Object.fromEntries(kept.map(([key, inner]) => [key, withoutHostMarks(inner)]));
}

/**
 * Returns the text of a part that has none of its own: an element that was rendered with `@vscode/prompt-tsx`
 * (a tree whose leaves have `text`), or anything else as JSON.
 */
export function textOfOther(value: unknown): string {
  const inner = isRecord(value) && "value" in value ? value["value"] : value;
  const leaves: string[] = [];
  collectText(inner, leaves);
  return leaves.length > 0 ? leaves.join("") : (JSON.stringify(withoutHostMarks(inner)) ?? "");
}

function collectText(value: unknown, leaves: string[]): void {
  if (!isRecord(value)) return;
  if (typeof value["text"] === "string") leaves.push(value["text"]);
  if (isRecord(value["node"])) collectText(value["node"], leaves);
  if (Array.isArray(value["children"])) for (const child of value["children"]) collectText(child, leaves);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
