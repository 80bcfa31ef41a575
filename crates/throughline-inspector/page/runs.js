// Runs of the tool loop: which there were, what each did, and whether it still does the same when it is replayed.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Frames } from "./frames.js";
import { Copy, Nothing, Reading, useTitle } from "./shared.js";
import { Talk } from "./talk.js";
import { ago, count, ended, lasted, moment, money, several, tokens, took } from "./words.js";

/** The page of all runs. */
export function Runs({ told, times, fail }) {
  const [runs, setRuns] = useState(null);
  const [next, setNext] = useState(null);
  useTitle("Runs");
  const read = (after) => api.runs(after).then((page) => {
    setRuns((before) => (after ? [...before, ...page.runs] : page.runs));
    setNext(page.next);
  }, fail);
  useEffect(() => void (times > 0 && read()), [times]);
  useEffect(() => {
    // Only the conversations of runs are of interest here, and the list is short.
    if (told?.runs > 0) read();
  }, [told]);
  if (!runs) return html`<${Reading} />`;
  return html`<main tabindex="-1">
    <div class="bar-of-tools"><h1>Runs</h1>${runs.length > 0 && html`<span class="dim" role="status">${several(runs.length, "run")}${next ? ", and more" : ""}</span>`}</div>
    ${runs.length === 0
      ? html`<${Nothing} title="No runs${next ? " among the latest conversations" : " yet"}"><p>A run is one turn of Throughline's own tool loop, recorded so that it can be replayed byte by byte:</p>
          <div class="with-copy"><pre class="blob"><code>throughline run "fix the tests"</code></pre><${Copy} text=${'throughline run "fix the tests"'} what="the command" /></div></${Nothing}>`
      : html`<div class="list" role="list">${runs.map((run) => html`<div role="listitem" key=${run.run}><${Listed} run=${run} /></div>`)}</div>`}
    ${next && html`<button class="more" onClick=${() => read(next)}>${runs.length === 0 ? "Look further back" : "More"}</button>`}
  </main>`;
}

const concluded = (run) => run.end?.conclusion ?? (run.ended ? "cut off" : "under way");
const isWell = (run) => ["completed", "end_turn"].includes(run.end?.conclusion);

function Listed({ run }) {
  const last = run.replays.at(-1);
  return html`<a class="listed" data-row href="#/r/${run.run}">
    <span class="title">${run.title ?? run.run}</span>
    <span class="facts">${run.backends.map((name) => html`<span class="chip backend">${name}</span>`)}
      ${last && html`<${Verdict} of=${last.verdict} at=${last.at} />`}</span>
    <span class="outcome"><span class="state ${isWell(run) ? "" : run.end ? "bad" : "answering"}">${ended(concluded(run))}</span><span class="cost">${money(run.cost)}</span></span>
    <span class="numbers dim">${several(run.exchanges, "request")}${run.end ? ` · ${several(run.end.calls, "call")}` : ""}${run.usage ? ` · ${tokens(run.usage)}` : ""} · <code>${run.run}</code></span>
    <time class="dim" title=${moment(run.started)}>${ago(run.started)}</time></a>`;
}

function Verdict({ of, at }) {
  const label = of.identical ? "identical" : "differs";
  return html`<span class="chip ${of.identical ? "same" : "left-out"}" title=${`replayed ${moment(at)}`}>${of.identical ? "✓" : "✗"} ${label}</span>`;
}

/** The page of one run. */
export function Run({ id, told, times, fail }) {
  const [run, setRun] = useState(null);
  const [missing, setMissing] = useState("");
  const [replaying, setReplaying] = useState("");
  const [fresh, setFresh] = useState(null);
  const [showsFrames, setShowsFrames] = useState(false);
  const read = () => api.run(id).then(setRun, (error) => (error.status === 404 ? setMissing(error.message) : fail(error)));
  useEffect(() => void (times > 0 && read()), [id, times]);
  useEffect(() => {
    if (told && told.id === run?.conversation) read();
  }, [told]);
  const task = run ? taskOf(run) : "";
  useTitle(run ? `Run: ${task.split("\n")[0] || id}` : id);
  if (missing) return html`<main><${Nothing} title="There is no such run"><p class="dim">${missing}.</p><p><a class="link" href="#/runs">All runs</a></p></${Nothing}></main>`;
  if (!run) return html`<${Reading} />`;
  const replay = async (settings) => {
    setReplaying(settings);
    try {
      setFresh({ ...(await api.replay(id, settings)), settings });
      await read();
    } catch (error) {
      fail(error);
    }
    setReplaying("");
  };
  const path = `#/c/${encodeURIComponent(run.conversation)}`;
  const kept = run.replays.at(-1);
  const verdict = fresh ?? kept?.verdict;
  return html`<main tabindex="-1">
    <header class="conversation">
      <a class="up" href="#/runs">Runs</a>
      <h1>${task.split("\n")[0] || run.title || id}</h1>
      <div class="facts"><code class="id">${id}</code><${Copy} text=${id} what="the id" /><${Copy} text=${`throughline replay ${id}`} what="the command that replays it" label="throughline replay" />
        <a class="link" href=${path}>its conversation</a></div>
      <div class="facts dim"><span class="state ${isWell(run) ? "" : "bad"}">${ended(concluded(run))}</span>
        <span>${[several(run.exchanges, "request"), run.end && several(run.end.calls, "call"), tokens(run.usage), money(run.cost), took(run.started, run.ended)].filter(Boolean).join(" · ")}</span>
        <time title=${run.started}>${moment(run.started)}</time></div>
      ${task.includes("\n") && html`<details><summary>the whole task</summary><${Talk} text=${task} /></details>`}
    </header>
    <section class="card replay" aria-label="replay">
      <header><h2>Replay</h2>
        <button onClick=${() => replay("recorded")} disabled=${replaying !== ""}>${replaying === "recorded" ? "replaying…" : "Replay"}</button>
        <button onClick=${() => replay("current")} disabled=${replaying !== ""} title="what would be sent under the settings that the gateway has now">${replaying === "current" ? "replaying…" : "With the settings of now"}</button></header>
      <div aria-live="polite">${verdict ? html`<${Outcome} of=${verdict} path=${path} first=${run.first} />` : html`<p class="dim">Drives the run again from the record alone, through the same code, and compares every request to the byte and everything that followed. No backend is asked and no tool is run.</p>`}</div>
      ${run.replays.length > 0 && html`<details><summary>${several(run.replays.length, "replay")} kept</summary><${Replays} all=${run.replays} /></details>`}
    </section>
    <h2 class="part">Steps</h2>
    <${Steps} run=${run} path=${path} />
    <h2 class="part">Frames <button class="quiet" aria-expanded=${showsFrames} onClick=${() => setShowsFrames(!showsFrames)}>${showsFrames ? "hide" : `show all ${count(run.steps.reduce((sum, { frames }) => sum + frames, 0))}`}</button></h2>
    ${showsFrames && html`<${Frames} id=${run.conversation} run=${id} exchanges=${run.steps.map(({ exchange, number }) => ({ id: exchange, number }))} fail=${fail} />`}
  </main>`;
}

/** What the run was told to do. */
function taskOf(run) {
  const texts = (run.begun.opening ?? []).flatMap(({ content }) => (typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text ?? "")));
  return texts.join("\n").trim();
}

function Outcome({ of, path, first }) {
  const compared = `${several(of.requests, "request")}, ${several(of.provider_events, "provider event")} and ${several(of.tool_calls, "tool call")} were compared`;
  const under = of.settings === "current" ? " under the settings of now" : "";
  if (of.identical) return html`<p class="verdict good"><b>✓ Identical${under}.</b> ${compared}, byte by byte.${of.finished ? "" : " The run was cut off, and was replayed up to there."}</p>`;
  const [one, ...more] = of.differences;
  const total = of.different ?? of.differences.length;
  return html`<p class="verdict bad"><b>✗ It differs${under}.</b> ${compared}; ${several(total, "difference")} found. The first one is what the others follow from:</p>
    <${Difference} of=${one} path=${path} first=${first} />
    ${more.length > 0 && html`<details><summary>${more.length + 1 < total ? `the next ${more.length} of ${count(total)}` : several(more.length, "more difference")}</summary>${more.map((each) => html`<${Difference} of=${each} path=${path} first=${first} />`)}</details>`}`;
}

/** Recorded and replayed side by side, with what is not the same set apart. */
function Difference({ of, path, first }) {
  const where = of.request ? html`<a class="link" href="${path}/seen/${first + of.request - 1}">request ${of.request}</a>: ` : "";
  const [recorded, replayed] = apart(of.recorded, of.replayed);
  return html`<div class="difference"><p>${where}${of.what} ${of.what.startsWith("the entries") || of.what.startsWith("the events") ? "differ" : "differs"}${of.path ? html` at <code>${of.path}</code>` : ""}</p>
    <div class="row heads"><b>recorded</b><b>replayed</b></div>
    <div class="row"><pre><code>${side(recorded, "del")}</code></pre><pre><code>${side(replayed, "add")}</code></pre></div></div>`;
}

/** Cuts two texts into what they begin with alike, what differs, and what they end with alike. */
export function apart(one, other) {
  let head = 0;
  while (head < one.length && head < other.length && one[head] === other[head]) head += 1;
  let tail = 0;
  while (tail < one.length - head && tail < other.length - head && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1;
  return [one, other].map((text) => [text.slice(0, head), text.slice(head, text.length - tail), text.slice(text.length - tail)]);
}

const side = ([head, own, tail], kind) => html`${head}<mark class=${kind}>${own}</mark>${tail}`;

function Replays({ all }) {
  const by = { http: "here", cli: "in a terminal" };
  return html`<table><thead><tr><th>when</th><th>by whom</th><th>version</th><th>settings</th><th>verdict</th></tr></thead><tbody>
    ${[...all].reverse().map(({ at, verdict }) => html`<tr><td><time title=${moment(at)}>${ago(at)}</time></td><td>${by[verdict.by] ?? verdict.by}</td><td>${verdict.version}</td><td>${verdict.settings === "current" ? "of then" : "recorded"}</td>
      <td><${Verdict} of=${verdict} at=${at} /></td></tr>`)}</tbody></table>`;
}

function Steps({ run, path }) {
  return html`<div class="list steps">${run.steps.map((step) => html`<div class="step" key=${step.exchange} data-row tabindex="-1">
    <div class="facts"><a class="link" href="${path}/seen/${step.number}">#${step.number}</a>
      ${step.backend && html`<span class="chip backend">${step.backend}</span>`}<span class="dim">${step.model ?? ""}</span>
      ${step.attempts > 1 && html`<span class="chip shortened">${several(step.attempts, "attempt")}</span>`}
      <span class="state ${["failed", "broken", "cancelled"].includes(step.ending) ? "bad" : ""}">${ended(step.ending)}</span>
      <span class="dim right">${[tokens(step.usage), money(step.cost), took(step.started, step.ended)].filter(Boolean).join(" · ")}</span></div>
    ${step.calls.map((call) => html`<div class="call"><span class="mark ${call.outcome}">${call.outcome === "ok" ? "✓" : "✗"}</span><b>${call.tool}</b>
      ${call.outcome !== "ok" && html`<span class="problem">${call.outcome}</span>`}${call.exit_code ? html`<span class="problem">exit code ${call.exit_code}</span>` : ""}<span class="dim right">${lasted(call.took_ms ?? 0)}</span></div>`)}
  </div>`)}</div>`;
}
