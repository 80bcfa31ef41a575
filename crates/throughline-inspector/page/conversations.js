// The list of conversations, the latest first, as it changes.

import { html, useEffect, useMemo, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Lazy } from "./lazy.js";
import { Copy, Nothing, Reading, useTitle } from "./shared.js";
import { ago, clientName, count, moment, money, several, stateOf, tokens } from "./words.js";

/** The page of all conversations. `told` is the latest that was told of one. */
export function Conversations({ told, times, fail }) {
  const [listed, setListed] = useState(null);
  const [next, setNext] = useState(null);
  const [filter, setFilter] = useState("");
  useTitle("Conversations");
  const read = (after, totals) => api.conversations(after, totals).then((page) => {
    setListed((before) => (after ? merged(before, page.conversations) : page.conversations));
    setNext(page.next);
  }, fail);
  useEffect(() => {
    if (times === 0) return;
    // What each has taken may have to be added up first, and the list need not wait for that.
    read(null, false).then(() => read(null, true));
  }, [times]);
  useEffect(() => {
    if (told) setListed((before) => before && [told, ...before.filter(({ id }) => id !== told.id)]);
  }, [told]);
  const shown = useMemo(() => (listed ?? []).filter((each) => fits(each, filter)), [listed, filter]);
  if (!listed) return html`<${Reading} />`;
  if (listed.length === 0) return html`<${Empty} />`;
  const row = (each) => html`<${Listed} key=${each.id} of=${each} />`;
  return html`<main tabindex="-1">
    <div class="bar-of-tools">
      <h1>Conversations</h1>
      <input type="search" placeholder="Filter: words, client, backend, failed" aria-label="filter" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span class="dim" role="status">${several(shown.length, "conversation")}${next ? ", and more" : ""}</span>
    </div>
    ${shown.length === 0
      ? html`<${Nothing} title="None of these fits"><p class="dim">${next ? "There are more than were read so far." : `There are ${count(listed.length)} without the filter.`}</p></${Nothing}>`
      : html`<div class="list" role="list"><${Lazy} items=${shown} row=${row} size=${60} height=${62} /></div>`}
    ${next && html`<button class="more" onClick=${() => read(next, true)}>More</button>`}
  </main>`;
}

const merged = (before, more) => [...before, ...more.filter(({ id }) => !before.some((each) => each.id === id))];

function fits(each, filter) {
  const [state] = stateOf(each);
  const text = [each.title, each.id, each.client, each.backend, each.model, each.switched, state].join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function Listed({ of }) {
  const [state, kind] = stateOf(of);
  const used = of.usage_total ?? of.usage;
  return html`<div role="listitem"><a class="listed" data-row href="#/c/${encodeURIComponent(of.id)}">
    <span class="title">${of.title ?? of.id}</span>
    <span class="facts">
      ${of.client && html`<span class="chip" title=${of.client}>${clientName(of.client)}</span>`}
      ${of.backend && html`<span class="chip backend" title="answered last">${of.backend}</span>`}
      ${of.switched && html`<span class="chip switched" title="switched, from the next request on">⇄ ${of.switched}</span>`}
    </span>
    <span class="outcome"><span class="state ${kind}">${state}</span><span class="cost">${money(of.cost)}</span></span>
    <span class="numbers dim">${of.exchanges ? `${several(of.exchanges, "exchange")} · ` : ""}${several(of.entries, "entry", "entries")}${used ? ` · ${tokens(used)}` : ""}</span>
    <time class="dim" datetime=${of.updated} title=${moment(of.updated)}>${ago(of.updated)}</time>
  </a></div>`;
}

function Empty() {
  const line = `curl -s ${location.origin}/v1/chat/completions \\\n  -H 'content-type: application/json' \\\n  -d '{"model": "sim", "messages": [{"role": "user", "content": "Hello"}]}'`;
  return html`<main class="empty" tabindex="-1"><h1>Nothing yet</h1>
    <p>Conversations appear here as soon as a client talks to this gateway. For one, in another terminal:</p>
    <div class="with-copy"><pre class="blob"><code>${line}</code></pre><${Copy} text=${line} what="the command" /></div>
    <p><code>throughline env claude-code</code>, <code>codex</code>, <code>opencode</code> and others say what to set in a client.
      <code>throughline import --all</code> takes in the sessions that agents have kept on this machine.</p></main>`;
}
