// Search over all tool history. What is searched for is in the address, so that it can be handed on.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Nothing, Reading, useTitle } from "./shared.js";
import { ago, count, moment } from "./words.js";

const spans = [["", "any time"], ["1", "the last hour"], ["24", "the last day"], ["168", "the last week"], ["720", "the last 30 days"]];
const kinds = { called: "call", returned: "result", thought: "reasoning" };

/** What was found. `query` is the address behind its `?`. */
export function Search({ query, fail }) {
  const asked = new URLSearchParams(query);
  const [words, tool, path, command, failed, hours, conversation] = ["q", "tool", "path", "command", "failed", "hours", "conversation"].map((name) => asked.get(name) ?? "");
  const [hits, setHits] = useState(null);
  const [next, setNext] = useState(null);
  useTitle(words ? `“${words}”` : "Search");
  const read = (after, signal) => api.search(words, { tool, path, command, failed, conversation, since: hours && `${hours}h` }, after, signal).then((page) => {
    setHits((before) => (after ? [...before, ...page.hits] : page.hits));
    setNext(page.next);
  }, (error) => signal?.aborted || fail(error));
  const isAsked = words || tool || path || command || failed || conversation;
  useEffect(() => {
    setHits(null);
    if (!isAsked) return undefined;
    const stop = new AbortController();
    read(null, stop.signal);
    return () => stop.abort();
  }, [query]);
  const narrow = (name, value) => {
    const changed = new URLSearchParams(asked);
    if (value) changed.set(name, value);
    else changed.delete(name);
    location.hash = `#/search?${changed}`;
  };
  return html`<main tabindex="-1">
    <div class="bar-of-tools"><h1>${words ? html`Found for “${words}”` : "Search"}</h1>
      <input placeholder="Tool" aria-label="only calls and results of this tool" value=${tool} onChange=${(event) => narrow("tool", event.target.value)} />
      <input placeholder="Path" aria-label="only calls that name this file or directory, and their results" value=${path} onChange=${(event) => narrow("path", event.target.value)} />
      <input placeholder="Command" aria-label="only calls that run this command, and their results" value=${command} onChange=${(event) => narrow("command", event.target.value)} />
      <select aria-label="only from this time on" value=${hours} onChange=${(event) => narrow("hours", event.target.value)}>${spans.map(([value, label]) => html`<option value=${value} selected=${value === hours}>${label}</option>`)}</select>
      <label><input type="checkbox" checked=${failed === "true"} onChange=${(event) => narrow("failed", event.target.checked ? "true" : "")} /> failures only</label>
      ${conversation && html`<span class="chip">in <code>${conversation}</code> <button class="quiet" aria-label="in all conversations" onClick=${() => narrow("conversation", "")}>✕</button></span>`}
      ${hits && html`<span class="dim" role="status">${count(hits.length)} found${next ? ", and more" : ""}</span>`}</div>
    ${!isAsked && html`<${Nothing} title="What are you looking for?"><p class="dim">Words that must all occur, in what was said, what tools were given and what they returned.
      <code>"two words"</code> in that order, <code>test*</code> for every word that begins so, <code>src/main.rs</code> as it stands.</p></${Nothing}>`}
    ${isAsked && !hits && html`<${Reading} />`}
    ${hits?.length === 0 && html`<${Nothing} title="Nothing has all of these words"><p class="dim">${tool || path || command || failed || hours ? "Perhaps without the filters." : "Perhaps with fewer of them, or with a * behind the beginning of one."}</p></${Nothing}>`}
    ${hits?.length > 0 && html`<div class="list" role="list">${hits.map((hit) => html`<div role="listitem" key=${hit.entry}><${Hit} hit=${hit} words=${words} /></div>`)}</div>`}
    ${next && html`<button class="more" onClick=${() => read(next)}>More</button>`}
  </main>`;
}

function Hit({ hit, words }) {
  const kind = kinds[hit.kind] ?? hit.kind;
  return html`<a class="hit" data-row href="#/c/${encodeURIComponent(hit.conversation)}/at/${hit.entry}">
    <span class="facts"><b>${hit.tool ?? kind}</b>${hit.tool && html`<span class="chip">${kind}</span>`}
      ${hit.outcome && hit.outcome !== "ok" && html`<span class="chip left-out">${hit.outcome}</span>`}
      ${hit.exit_code ? html`<span class="chip left-out">exit code ${hit.exit_code}</span>` : ""}
      <span class="dim in">${hit.title ?? hit.conversation}</span><time class="dim" title=${moment(hit.at)}>${ago(hit.at)}</time></span>
    <code class="snippet">${marked(hit.snippet, words)}</code></a>`;
}

/** Sets what was searched for apart. */
export function marked(text, words) {
  const wanted = words.split(/[^\p{L}\p{N}_]+/u).filter((word) => word.length > 1);
  if (wanted.length === 0) return text;
  const any = new RegExp(`(${wanted.join("|")})`, "giu");
  return text.split(any).map((piece, at) => (at % 2 === 1 ? html`<mark>${piece}</mark>` : piece));
}
