// The list of conversations, the latest first, as it changes.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Lazy } from "./lazy.js";
import { Copy, Nothing, Reading, useTitle } from "./shared.js";
import { ago, clientName, moment, money, several, stateOf, tokens } from "./words.js";

const spans = [["", "any time"], ["1h", "the last hour"], ["today", "today"], ["yesterday", "since yesterday"], ["7d", "the last week"], ["30d", "the last 30 days"]];
const orders = [["", "latest first"], ["cost", "by cost"], ["tokens", "by tokens"], ["exchanges", "by exchanges"]];

/** The page of all conversations. `query` is the address behind its `?`: the filters, which the gateway applies. */
export function Conversations({ query, told, times, backends, fail }) {
  const asked = new URLSearchParams(query);
  const filters = Object.fromEntries(["title", "client", "backend", "project", "failed", "since", "sort"].map((name) => [name, asked.get(name) ?? ""]));
  const isNarrowed = Object.values(filters).some(Boolean);
  const [listed, setListed] = useState(null);
  const [next, setNext] = useState(null);
  useTitle("Conversations");
  const read = (after, totals, signal) => api.conversations(filters, after, totals, signal).then((page) => {
    setListed((before) => (after ? merged(before, page.conversations) : page.conversations));
    setNext(page.next);
  }, (error) => signal?.aborted || fail(error));
  useEffect(() => {
    if (times === 0) return undefined;
    const stop = new AbortController();
    // What each has taken may have to be added up first, and the list need not wait for that.
    read(null, false, stop.signal).then(() => stop.signal.aborted || read(null, true, stop.signal));
    return () => stop.abort();
  }, [times, query]);
  useEffect(() => {
    // Whether something fits a filter is for the gateway to say.
    if (told && isNarrowed) read(null, true);
    else if (told) setListed((before) => before && [told, ...before.filter(({ id }) => id !== told.id)]);
  }, [told]);
  const narrow = (name, value) => {
    const changed = new URLSearchParams(asked);
    if (value) changed.set(name, value);
    else changed.delete(name);
    location.hash = `#/?${changed}`;
  };
  if (!listed) return html`<${Reading} />`;
  if (listed.length === 0 && !isNarrowed) return html`<${Empty} />`;
  const row = (each) => html`<${Listed} key=${each.id} of=${each} />`;
  const names = (backends?.backends ?? []).map(({ name }) => name);
  const choose = (name, label, options) => html`<select aria-label=${label} value=${filters[name]} onChange=${(event) => narrow(name, event.target.value)}>${options.map(([value, words]) => html`<option value=${value} selected=${value === filters[name]}>${words}</option>`)}</select>`;
  return html`<main tabindex="-1">
    <div class="bar-of-tools">
      <h1>Conversations</h1>
      <input type="search" placeholder="Title" aria-label="only with these words in the title" value=${filters.title} onChange=${(event) => narrow("title", event.target.value)} />
      <input placeholder="Client" aria-label="only of this client" value=${filters.client} onChange=${(event) => narrow("client", event.target.value)} />
      <input placeholder="Project" aria-label="only in this directory" value=${filters.project} onChange=${(event) => narrow("project", event.target.value)} />
      ${choose("backend", "only with this backend", [["", "any backend"], ...names.map((name) => [name, name])])}
      ${choose("since", "only from this time on", spans)}
      ${choose("sort", "sorted", orders)}
      <label><input type="checkbox" checked=${filters.failed === "true"} onChange=${(event) => narrow("failed", event.target.checked ? "true" : "")} /> failed</label>
      <span class="dim" role="status">${several(listed.length, "conversation")}${next ? ", and more" : ""}</span>
    </div>
    ${listed.length === 0
      ? html`<${Nothing} title="None of them fits"><p class="dim">Perhaps with fewer filters. <a class="link" href="#/">All conversations</a></p></${Nothing}>`
      : html`<div class="list" role="list"><${Lazy} items=${listed} row=${row} size=${60} height=${62} /></div>`}
    ${next && html`<button class="more" onClick=${() => read(next, true)}>More</button>`}
  </main>`;
}

const merged = (before, more) => [...before, ...more.filter(({ id }) => !before.some((each) => each.id === id))];

function Listed({ of }) {
  const [state, kind] = stateOf(of);
  const used = of.usage_total ?? of.usage;
  return html`<div role="listitem"><a class="listed" data-row href="#/c/${encodeURIComponent(of.id)}">
    <span class="title">${of.title ?? of.id}</span>
    <span class="facts">
      ${of.client && html`<span class="chip" title=${of.client}>${clientName(of.client)}</span>`}
      ${of.backend && html`<span class="chip backend" title="answered last">${of.backend}</span>`}
      ${of.project && html`<span class="chip" title=${of.project}>${of.project.split("/").filter(Boolean).at(-1) ?? of.project}</span>`}
      ${of.parent && html`<span class="chip" title=${`a sub-agent of ${of.parent}`}>↳ sub-agent</span>`}
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
