/** The events of a streamed response, as what the host is to be told. */

import { failed, GatewayError } from "./errors.ts";
import { isRecord } from "./parts.ts";
import { RAW_ARGUMENTS } from "./request.ts";

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: { reasoning_tokens: number };
}

export type Output =
  | { kind: "text"; text: string }
  | { kind: "thinking"; text: string; id: string }
  /** A thought is whole; `item` is what its backend wants to have back, byte for byte. */
  | { kind: "thought"; id: string; item: string }
  | { kind: "call"; callId: string; name: string; input: object }
  | { kind: "image"; mime: string; data: Uint8Array }
  | { kind: "usage"; usage: Usage };

/** Splits a stream of bytes into the data of server-sent events. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const events = rest.split(/\r?\n\r?\n/);
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      if (data.length > 0) yield data.map((line) => line.slice(5).trimStart()).join("\n");
    }
  }
}

/** Reads one response, event by event. */
export class ResponseReader {
  private readonly backend: string | undefined;
  /** Items whose text came in pieces, so that the whole is not told again. */
  private readonly told = new Set<string>();
  private isComplete = false;

  constructor(backend: string | undefined) {
    this.backend = backend;
  }

  /** Returns what an event says. Fails when it is that the response failed. */
  read(data: string): Output[] {
    if (data === "[DONE]") return [];
    const event: unknown = JSON.parse(data);
    if (!isRecord(event)) return [];
    const id = text(event["item_id"]);
    switch (event["type"]) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        this.told.add(id);
        return spoken(text(event["delta"]));
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
      case "response.reasoning.delta":
        this.told.add(id);
        return [{ kind: "thinking", text: text(event["delta"]), id }];
      case "response.output_item.done":
        return isRecord(event["item"]) ? this.item(event["item"]) : [];
      case "response.completed":
      case "response.incomplete":
        return this.end(event["response"]);
      case "response.failed":
        throw failed(isRecord(event["response"]) ? event["response"]["error"] : event, this.backend);
      case "error":
        throw failed(event, this.backend);
      default:
        return [];
    }
  }

  /** Checks that the response came to its end. */
  finish(): void {
    if (this.isComplete) return;
    const by = this.backend === undefined ? "The gateway" : `Backend "${this.backend}"`;
    throw new GatewayError("other", `${by} ended its answer in the middle. Try again.`);
  }

  private item(item: Record<string, unknown>): Output[] {
    const id = text(item["id"]);
    const isTold = this.told.has(id);
    switch (item["type"]) {
      case "function_call":
        return [call(item)];
      case "message":
        return isTold ? [] : spoken(texts(item["content"]));
      case "reasoning": {
        const thought = texts(item["summary"]) || texts(item["content"]);
        const words: Output[] = isTold || thought === "" ? [] : [{ kind: "thinking", text: thought, id }];
        return [...words, { kind: "thought", id, item: JSON.stringify(item) }];
      }
      case "image_generation_call":
        return typeof item["result"] === "string"
          ? [{ kind: "image", mime: "image/png", data: Buffer.from(item["result"], "base64") }]
          : [];
      default:
        return [];
    }
  }

  private end(response: unknown): Output[] {
    this.isComplete = true;
    if (!isRecord(response)) return [];
    const details = response["incomplete_details"];
    if (isRecord(details) && details["reason"] === "content_filter") {
      throw new GatewayError("blocked", "The provider's content filter stopped the answer.", "content_filter");
    }
    return isRecord(response["usage"]) ? [{ kind: "usage", usage: readUsage(response["usage"]) }] : [];
  }
}

/** The host's meter reads the names of Chat Completions. */
function readUsage(usage: Record<string, unknown>): Usage {
  const inner = (name: string, field: string) => (isRecord(usage[name]) ? count(usage[name][field]) : 0);
  const prompt = count(usage["input_tokens"]);
  const completion = count(usage["output_tokens"]);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: inner("input_tokens_details", "cached_tokens") },
    completion_tokens_details: { reasoning_tokens: inner("output_tokens_details", "reasoning_tokens") },
  };
}

function call(item: Record<string, unknown>): Output {
  const written = text(item["arguments"]);
  return { kind: "call", callId: text(item["call_id"]), name: text(item["name"]), input: readArguments(written) };
}

/** Arguments that are no object are kept as they are: the tool will refuse them, and the model sees what it wrote. */
function readArguments(written: string): object {
  if (written.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(written);
    if (isRecord(value)) return value;
  } catch {
    // told below
  }
  return { [RAW_ARGUMENTS]: written };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const count = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0);
const spoken = (words: string): Output[] => (words === "" ? [] : [{ kind: "text", text: words }]);

function texts(parts: unknown): string {
  if (!Array.isArray(parts)) return "";
  return parts.map((part) => (isRecord(part) ? text(part["text"]) || text(part["refusal"]) : "")).join("");
}
