// Search over all tool history.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { ago } from "./words.js";

/** What was found for some words. */
export function Search({ words, fail }) {
  const [hits, setHits] = useState(null);
  const [next, setNext] = useState(null);
  const [tool, setTool] = useState("");
  const [failed, setFailed] = useState(false);
  const read = (after, signal) => api.search(words, { tool, failed: failed ? "true" : "" }, after, signal).then((page) => {
    setHits((before) => (after ? [...before, ...page.hits] : page.hits));
    setNext(page.next);
  }, (error) => signal?.aborted || fail(error));
  useEffect(() => {
    if (!words) return undefined;
    const stop = new AbortController();
    read(null, stop.signal);
    return () => stop.abort();
  }, [words, tool, failed]);
  return html`<main>
    <div class="bar-of-tools"><h1>${words ? html`Found for “${words}”` : "Search"}</h1>
      <input placeholder="tool" aria-label="only results of this tool" value=${tool} onChange=${(event) => setTool(event.target.value)} />
      <label><input type="checkbox" checked=${failed} onChange=${(event) => setFailed(event.target.checked)} /> failures only</label></div>
    ${words && !hits && html`<p class="dim wait">searching…</p>`}
    ${hits?.length === 0 && html`<p class="dim">Nothing has all of these words.</p>`}
    <div class="list">${(hits ?? []).map((hit) => html`<a class="hit" data-row key=${hit.entry} href="#/c/${encodeURIComponent(hit.conversation)}/at/${hit.entry}">
      <span class="facts"><b>${hit.tool ?? hit.kind}</b>${hit.outcome && hit.outcome !== "ok" ? html`<span class="mark ${hit.outcome}">${hit.outcome}</span>` : ""}
        <span class="dim">${hit.kind} · ${hit.conversation}</span><time class="dim">${ago(hit.at)}</time></span>
      <code class="snippet">${hit.snippet}</code></a>`)}</div>
    ${next && html`<button onClick=${() => read(next)}>more</button>`}
  </main>`;
}
