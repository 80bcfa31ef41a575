// One conversation: its timeline, what each backend saw of it, and the frames that came back.

import { html, useCallback, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Chart } from "./chart.js";
import { Frames } from "./frames.js";
import { Seen } from "./seen.js";
import { Copy, Nothing, Reading, useTitle } from "./shared.js";
import { Timeline, branchesOf } from "./timeline.js";
import { clientName, count, isAnswering, moment, money, several, tokens } from "./words.js";

const PREVIEW = 400;

/** While an answer is under way, it is asked for so often what has come. */
const ARRIVING_MS = 1000;

/** The page of one conversation. `view` is "timeline", "seen" or "frames"; `told` the latest that was told of any. */
export function Conversation({ id, view, number, entry, told, times, backends, fail }) {
  const [data, setData] = useState(null);
  const [missing, setMissing] = useState("");
  const [tip, setTip] = useState(null);
  const [arriving, setArriving] = useState([]);
  const reading = useRef(null);
  const read = useCallback(() => {
    // One at a time; what is told meanwhile is read when that is done.
    reading.current = (reading.current ?? Promise.resolve()).then(() => api.conversation(id, PREVIEW).then((page) => {
      setData(page);
      if (!page.conversation.answering) setArriving([]);
    }, (error) => (error.status === 404 ? setMissing(error.message) : fail(error))));
    return reading.current;
  }, [id]);
  useEffect(() => void (times > 0 && read()), [id, times]);
  useEffect(() => {
    if (told?.id === id) read();
  }, [told]);
  const answering = data && isAnswering(data.conversation);
  useEffect(() => {
    if (!answering) return undefined;
    const ask = () => api.arriving(id).then((so) => (so.answering ? setArriving(so.entries) : read()), () => {});
    ask();
    const asking = setInterval(ask, ARRIVING_MS);
    return () => clearInterval(asking);
  }, [answering, id]);
  useTitle(data?.conversation.title ?? id);
  const branches = useMemo(() => (data ? branchesOf(data.entries) : []), [data]);
  const shown = branches.find((each) => each.tip === tip) ?? branches.find((each) => entry && each.entries.some((one) => one.id === entry)) ?? branches[0];
  if (missing) return html`<main><${Nothing} title="There is no such conversation"><p class="dim">${missing}. It may have been deleted, or the address was cut.</p><p><a class="link" href="#/">All conversations</a></p></${Nothing}></main>`;
  if (!data) return html`<${Reading} />`;
  const { exchanges } = data;
  const path = `#/c/${encodeURIComponent(id)}`;
  const go = (to) => { location.hash = `${path}/seen/${to}`; };
  const tab = (name, to, label) => html`<a class=${view === name ? "tab here" : "tab"} aria-current=${view === name ? "page" : null} href=${to}>${label}</a>`;
  return html`<main tabindex="-1">
    <${Head} ...${{ id, data, backends, read, fail }} />
    ${exchanges.length > 1 && exchanges.some(({ usage }) => usage) && html`<${Chart} exchanges=${exchanges} at=${view === "seen" ? number : 0} open=${go} />`}
    <nav class="tabs" aria-label="views">
      ${tab("timeline", path, "Timeline")}
      ${tab("seen", `${path}/seen/${exchanges.length || 1}`, "What the backend saw")}
      ${tab("frames", `${path}/frames`, "Frames")}
      ${view === "timeline" && branches.length > 1 && html`<${Branches} branches=${branches} tip=${shown.tip} choose=${setTip} />`}
    </nav>
    ${view === "seen" && html`<${Seen} id=${id} number=${number} exchanges=${exchanges} fail=${fail} />`}
    ${view === "frames" && html`<${Frames} id=${id} exchanges=${exchanges} fail=${fail} />`}
    ${view === "timeline" && html`<${Timeline} ...${{ id, exchanges, entry }} entries=${shown?.entries ?? []} arriving=${shown === branches[0] ? arriving : []} />`}
  </main>`;
}

function Head({ id, data, backends, read, fail }) {
  const { conversation, exchanges, entries } = data;
  const numbers = [
    exchanges.length > 0 && several(exchanges.length, "exchange"), several(entries.length, "entry", "entries"),
    tokens(conversation.usage_total), money(conversation.cost),
  ].filter(Boolean);
  return html`<header class="conversation">
    <a class="up" href="#/">Conversations</a>
    <h1>${conversation.title ?? id}</h1>
    <div class="facts"><code class="id">${id}</code><${Copy} text=${id} what="the id" />
      <${Copy} text=${`throughline show ${id}`} what="the command that shows it in a terminal" label="throughline show" />
      ${conversation.client && html`<span class="chip" title=${conversation.client}>${clientName(conversation.client)}</span>`}
      ${conversation.runs > 0 && html`<a class="chip link" href="#/runs">${several(conversation.runs, "run")}</a>`}
      ${isAnswering(conversation) && html`<span class="state answering">answering</span>`}
    </div>
    <div class="facts">
      <span class="dim">${numbers.join(" · ")}</span>
      <time class="dim" title=${`from ${moment(conversation.created)} to ${moment(conversation.updated)}`}>${moment(conversation.created)}</time>
      <${Chooser} conversation=${conversation} backends=${backends} done=${read} fail=${fail} />
    </div>
  </header>`;
}

function Branches({ branches, tip, choose }) {
  const label = ({ fork, words, at }, number) => (number === 0 ? `latest, ${moment(at)}` : `“${words}”, other from entry ${count(fork + 1)} on`);
  return html`<label class="branches" title="The past was rewritten by the client: each way that it went is kept.">${count(branches.length)} branches <select value=${tip} onChange=${(event) => choose(event.target.value)}>
    ${branches.map((each, at) => html`<option value=${each.tip} selected=${each.tip === tip}>${label(each, at)}</option>`)}
  </select></label>`;
}

function Chooser({ conversation, backends, done, fail }) {
  const choose = (event) => api.switchOne(conversation.id, event.target.value || null).then(done, fail);
  const chosen = conversation.switched ?? "";
  const names = (backends?.backends ?? []).map(({ name }) => name);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  return html`<label class="chooser">answered by <select value=${chosen} onChange=${choose} aria-label="backend of this conversation">
    <option value="">as everywhere${conversation.backend ? ` (last: ${conversation.backend})` : ""}</option>
    ${names.map((name) => html`<option value=${name} selected=${name === chosen}>${name}</option>`)}
  </select></label>`;
}
