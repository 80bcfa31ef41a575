// The list of conversations, the latest first, as it changes.

import { html, useEffect, useMemo, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Lazy } from "./lazy.js";
import { ago, brief, clientName, count, several } from "./words.js";

/** The page of all conversations. `told` is the latest that was told of one. */
export function Conversations({ told, fail }) {
  const [listed, setListed] = useState(null);
  const [next, setNext] = useState(null);
  const [filter, setFilter] = useState("");
  const read = (after) => api.conversations(after).then((page) => {
    setListed((before) => (after ? merged(before, page.conversations) : page.conversations));
    setNext(page.next);
  }, fail);
  useEffect(() => void read(), []);
  useEffect(() => {
    if (told) setListed((before) => before && [told, ...before.filter(({ id }) => id !== told.id)]);
  }, [told]);
  const shown = useMemo(() => (listed ?? []).filter((each) => fits(each, filter)), [listed, filter]);
  if (!listed) return html`<p class="dim wait">reading…</p>`;
  if (listed.length === 0) return html`<${Nothing} />`;
  const row = (each) => html`<${Listed} key=${each.id} of=${each} />`;
  return html`<main>
    <div class="bar-of-tools">
      <h1>Conversations</h1>
      <input type="search" placeholder="filter by words, client, backend" aria-label="filter" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span class="dim">${several(shown.length, "conversation")}${next ? " and more" : ""}</span>
    </div>
    <div class="list" role="list"><${Lazy} items=${shown} row=${row} size=${60} height=${62} /></div>
    ${next && html`<button onClick=${() => read(next)}>more</button>`}
  </main>`;
}

const merged = (before, more) => [...before, ...more.filter(({ id }) => !before.some((each) => each.id === id))];

function fits(each, filter) {
  const text = [each.title, each.id, each.client, each.backend, each.model, each.switched].join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function Listed({ of }) {
  const state = of.answering ? "answering" : of.ending ?? "";
  return html`<a class="listed" role="listitem" data-row href="#/c/${encodeURIComponent(of.id)}">
    <span class="title">${of.title ?? of.id}</span>
    <span class="facts">
      ${of.client && html`<span class="chip">${clientName(of.client)}</span>`}
      ${of.backend && html`<span class="chip backend">${of.backend}</span>`}
      ${of.switched && html`<span class="chip" title="switched here">⇄ ${of.switched}</span>`}
      <span class="state ${state}">${state.replace("_", " ")}</span>
    </span>
    <span class="numbers dim">${several(of.exchanges, "exchange")} · ${several(of.entries, "entry", "entries")}${of.usage ? ` · ${brief(of.usage.input)} tokens` : ""}</span>
    <time class="dim" title=${of.updated}>${ago(of.updated)}</time>
  </a>`;
}

function Nothing() {
  return html`<main class="empty"><h1>Nothing yet</h1>
    <p>This is where conversations appear as soon as a client talks to this gateway. For one, in another terminal:</p>
    <pre class="blob"><code>curl -s ${location.origin}/v1/chat/completions \\
  -H 'content-type: application/json' \\
  -d '{"model": "sim", "messages": [{"role": "user", "content": "Hello"}]}'</code></pre>
    <p><code>throughline env claude-code</code>, <code>codex</code>, <code>opencode</code> and others say what to set in a client.</p></main>`;
}
