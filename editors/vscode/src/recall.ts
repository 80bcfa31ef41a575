/** What `#recall` finds: earlier tool calls with their results, whole, also those that the host compacted away. */

import type { Entry, Gateway, Hit } from "./gateway.ts";

export interface RecallInput {
  query: string;
  tool?: string;
  failed?: boolean;
  everywhere?: boolean;
  limit?: number;
}

/** A result is given back up to this length; the model can ask for more narrowly. */
const RESULT_CHARS = 20_000;

/** Its own calls match every search that they were made for, and hold nothing but what others returned. */
const OWN_TOOL = "throughline_recall";

type Reader = Pick<Gateway, "search" | "conversation" | "entry">;

/** Searches the history and returns what it found, in words for a model. */
export async function recall(gateway: Reader, conversation: string | undefined, input: RecallInput): Promise<string> {
  const within = input.everywhere === true ? undefined : conversation;
  const query: Record<string, string> = { q: input.query, limit: "50" };
  if (within !== undefined) query["conversation"] = within;
  if (input.tool !== undefined) query["tool"] = input.tool;
  if (input.failed === true) query["failed"] = "true";
  const hits = (await gateway.search(query)).filter((hit) => hit.kind === "called" || hit.kind === "returned");
  const found = await pairsOf(gateway, hits, input.limit ?? 5);
  if (found.length > 0) return found.join("\n\n");
  const where = within === undefined ? "any conversation" : "this conversation";
  const more = within === undefined ? "" : " Set `everywhere` to search all conversations.";
  return `No tool call of ${where} matches "${input.query}".${more}`;
}

/** Returns the calls that were found with their results, each pair once. */
async function pairsOf(gateway: Reader, hits: readonly Hit[], limit: number): Promise<string[]> {
  const found = new Map<string, string>();
  const known = new Map<string, Entry[]>();
  for (const hit of hits) {
    if (found.size >= limit) break;
    const entries = known.get(hit.conversation) ?? (await gateway.conversation(hit.conversation)).entries;
    known.set(hit.conversation, entries);
    const callId = entries.find(({ id }) => id === hit.entry)?.call_id;
    if (callId === undefined || found.has(callId)) continue;
    if (entries.some((each) => each.call_id === callId && each.tool === OWN_TOOL)) continue;
    const whole = async (kind: string) => {
      const entry = entries.find((each) => each.kind === kind && each.call_id === callId);
      return entry && gateway.entry(hit.conversation, entry.id);
    };
    found.set(callId, describe(hit, await whole("called"), await whole("returned")));
  }
  return [...found.values()];
}

function describe(hit: Hit, call: Entry | undefined, result: Entry | undefined): string {
  const text = result?.text ?? "(no result was recorded)";
  const rest = text.length - RESULT_CHARS;
  const shown = rest > 0 ? `${text.slice(0, RESULT_CHARS)}\n[${rest} more characters]` : text;
  const head = call === undefined ? "A result without its call" : `${call.tool ?? "tool"}(${call.input ?? ""})`;
  return `${head} at ${hit.at}: ${result?.outcome ?? "open"}\n${shown}`;
}
