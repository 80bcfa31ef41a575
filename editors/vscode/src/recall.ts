/** What `#recall` finds: earlier tool calls with their results, whole, also those that the host compacted away. */

import type { Gateway, Hit, Pair } from "./gateway.ts";

export interface RecallInput {
  query: string;
  tool?: string;
  failed?: boolean;
  everywhere?: boolean;
  limit?: number;
}

/** A result is given back up to this length; the model can ask for more narrowly. */
const RESULT_CHARS = 20_000;

/** Searches the history and returns what it found, in words for a model. */
export async function recall(
  gateway: Pick<Gateway, "search" | "pairs">,
  conversation: string | undefined,
  input: RecallInput,
): Promise<string> {
  const within = input.everywhere === true ? undefined : conversation;
  const query: Record<string, string> = { q: input.query, limit: "50" };
  if (within !== undefined) query["conversation"] = within;
  if (input.tool !== undefined) query["tool"] = input.tool;
  if (input.failed === true) query["failed"] = "true";
  const hits = (await gateway.search(query)).filter((hit) => hit.kind === "called" || hit.kind === "returned");
  const found = await pairsOf(gateway, hits, input.limit ?? 5);
  if (found.length > 0) return found.map(describe).join("\n\n");
  const where = within === undefined ? "any conversation" : "this conversation";
  const more = within === undefined ? "" : " Set `everywhere` to search all conversations.";
  return `No tool call of ${where} matches "${input.query}".${more}`;
}

async function pairsOf(gateway: Pick<Gateway, "pairs">, hits: readonly Hit[], limit: number): Promise<Pair[]> {
  const found: Pair[] = [];
  const conversations = new Map<string, Pair[]>();
  for (const hit of hits) {
    if (found.length >= limit) break;
    const pairs = conversations.get(hit.conversation) ?? (await gateway.pairs(hit.conversation));
    conversations.set(hit.conversation, pairs);
    const pair = pairs.find(({ call, result }) => call?.id === hit.entry || result?.id === hit.entry);
    if (pair !== undefined && !found.includes(pair)) found.push(pair);
  }
  return found;
}

function describe({ state, call, result }: Pair): string {
  const text = result?.text ?? "(no result was recorded)";
  const rest = text.length - RESULT_CHARS;
  const shown = rest > 0 ? `${text.slice(0, RESULT_CHARS)}\n[${rest} more characters]` : text;
  const head = call === null ? "A result without its call" : `${call.tool ?? "tool"}(${call.input ?? ""})`;
  return `${head} at ${(call ?? result)?.at ?? "an unknown time"}: ${state}\n${shown}`;
}
