// Everything that is asked of the gateway. A key, where one is needed, is kept until the tab is closed.

const KEY = "throughline.key";

/** A request that was refused. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const hasKey = () => sessionStorage.getItem(KEY);
export const rememberKey = (key) => sessionStorage.setItem(KEY, key);

function headers() {
  const key = sessionStorage.getItem(KEY);
  return key ? { authorization: `Bearer ${key}` } : {};
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...headers(), ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The gateway does not answer.");
  }
  if (response.ok) return response;
  const text = await response.text();
  let message = text || response.statusText;
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // What is no JSON is shown as it is.
  }
  throw new Refused(response.status, message);
}

const json = async (path, signal) => (await ask(path, { signal })).json();
const enc = encodeURIComponent;

/** The conversations that filters let through: the same as those of `throughline ls`. */
export function conversations(filters, after, totals, signal) {
  const parameters = new URLSearchParams({ limit: "100" });
  for (const [name, value] of Object.entries(filters)) if (value) parameters.set(name, value);
  if (totals) parameters.set("totals", "true");
  if (after) parameters.set("after", after);
  return json(`/api/conversations?${parameters}`, signal);
}
export const usage = (by, since, signal) => json(`/api/usage?by=${by}${since ? `&since=${enc(since)}` : ""}`, signal);
export const conversation = (id, preview, signal) => json(`/api/conversations/${enc(id)}?preview=${preview}`, signal);
export const entry = (id, entryId, signal) => json(`/api/conversations/${enc(id)}/entries/${enc(entryId)}`, signal);
export const sent = (id, number, signal) => json(`/api/conversations/${enc(id)}/sent/${number}`, signal);
export const seen = (id, number, preview, signal) =>
  json(`/api/conversations/${enc(id)}/seen/${number}?preview=${preview}`, signal);
export const frames = (id, run, signal) =>
  json(`/api/conversations/${enc(id)}/frames${run ? `?run=${enc(run)}` : ""}`, signal);
export const arriving = (id, signal) => json(`/api/conversations/${enc(id)}/arriving`, signal);
export const runs = (after, signal) => json(`/api/runs?limit=50${after ? `&after=${enc(after)}` : ""}`, signal);
export const run = (id, signal) => json(`/api/runs/${enc(id)}`, signal);
/** Drives a run again from the record alone; `settings` is "recorded" or "current". */
export const replay = async (id, settings) =>
  (await ask(`/api/runs/${enc(id)}/replay?settings=${settings}`, { method: "POST" })).json();
export const backends = (signal) => json("/api/backends", signal);
export const metrics = async (signal) => (await ask("/metrics", { signal })).text();

/** What a search finds; `filters` are further parameters. */
export function search(words, filters, after, signal) {
  const parameters = new URLSearchParams({ q: words, limit: "50" });
  for (const [name, value] of Object.entries(filters)) if (value) parameters.set(name, value);
  if (after) parameters.set("after", after);
  return json(`/api/search?${parameters}`, signal);
}

const put = (path, backend) =>
  ask(path, { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ backend }) });

/** Switches all conversations; null takes a switch back. */
export const switchAll = (backend) => put("/api/active", backend);
/** Switches one conversation. */
export const switchOne = (id, backend) => put(`/api/conversations/${enc(id)}/backend`, backend);

/**
 * Follows the history as it grows, and goes on after a break.
 *
 * `told` is called with each conversation that something was added to, `state` with "live", "gone" and "locked".
 * Returns what ends it.
 */
export function follow(told, state) {
  const stop = new AbortController();
  const run = async () => {
    let pause = 500;
    while (!stop.signal.aborted) {
      try {
        const response = await ask("/api/events", { signal: stop.signal });
        state("live");
        pause = 500;
        await readEvents(response.body, told);
      } catch (error) {
        if (error instanceof Refused && error.status === 401) return state("locked");
      }
      if (stop.signal.aborted) return;
      state("gone");
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, 5000);
    }
  };
  run();
  return () => stop.abort();
}

// EventSource cannot present a key, so the events are read here.
async function readEvents(body, told) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim());
      if (data.length > 0) told(JSON.parse(data.join("\n")));
    }
  }
}
