// A job: its graph, the stage that is chosen with its processing elements and logs, its regions.

import * as api from "./api.js";
import { h, show, say, confirmed, whole, percent } from "./dom.js";
import { graph } from "./graph.js";
import { RegionCard } from "./region.js";

const ROWS = 25;
const URGENCY = ["Failed", "Starting", "Pending", "Stopped", "Running"];
export const phase = (text) => h("span", { class: `tag ${{ Healthy: "good", Running: "good", Failed: "bad" }[text] ?? "busy"}` }, text);

// What needs somebody stands first: what does not run has no busy time, and would be last by that.
function urgentFirst(pes) {
  const place = (pe) => URGENCY.indexOf(pe.phase);
  return [...pes].sort((a, b) => place(a) - place(b) || (b.busy ?? -1) - (a.busy ?? -1) || a.id - b.id);
}

export class JobPage {
  constructor(space, name) {
    Object.assign(this, { space, name, chosen: null, all: false, pod: null, cards: new Map() });
    this.title = h("div", { class: "grow" });
    this.graph = h("div", { class: "graph" });
    this.stage = h("section", { class: "card", "aria-label": "Stage", hidden: true });
    this.regions = h("div", { class: "stack" });
    this.stop = h("button", { type: "button", id: "cancel", class: "danger", disabled: true, onclick: () => this.cancel() }, "Cancel job");
    this.element = h("div", {},
      h("div", { class: "head" }, this.title,
        h("button", { type: "button", id: "savepoint", onclick: () => this.save() }, "Take a savepoint"),
        this.stop),
      h("section", { class: "card", "aria-label": "Graph" }, this.graph), h("div", { class: "stack" }, this.stage), this.regions);
  }

  async refresh() {
    this.job = await api.readJob(this.space, this.name);
    const { job } = this;
    show(this.title, h("h1", {}, job.name, " ", phase(job.deleting ? "Cancelling" : job.phase)),
      h("p", { class: "soft" }, [`${job.ready} of ${job.pes} processing elements ready`, job.message].filter(Boolean).join(" · ")));
    this.stop.disabled = false;
    this.draw();
    const present = new Set(job.regions.map((region) => region.name));
    for (const [name, card] of this.cards) {
      if (present.has(name)) continue;
      card.element.remove();
      this.cards.delete(name);
    }
    for (const region of job.regions) {
      if (!this.cards.has(region.name)) {
        this.cards.set(region.name, new RegionCard(this.space, region));
        this.regions.append(this.cards.get(region.name).element);
      }
    }
    await Promise.all(job.regions.map((region) => this.cards.get(region.name).refresh(region)));
    if (this.pod) await this.readLog();
  }

  draw() {
    const left = this.graph.scrollLeft;
    show(this.graph, graph(this.job, this.chosen, (name) => this.choose(name)));
    this.graph.scrollLeft = left;
    const stage = this.job.stages.find((item) => item.name === this.chosen);
    this.stage.hidden = !stage;
    if (stage) this.drawStage(stage);
  }

  choose(name) {
    this.chosen = this.chosen === name ? null : name;
    this.pod = null;
    this.all = false;
    this.draw();
  }

  drawStage(stage) {
    const sorted = urgentFirst(stage.pes), shown = this.all ? sorted : sorted.slice(0, ROWS);
    const rows = shown.map((pe) => h("tr", {},
      h("td", { class: "mono" }, pe.name), h("td", { class: "n" }, pe.channel ?? ""), h("td", {}, phase(pe.phase)),
      h("td", { class: "n" }, percent(pe.busy)), h("td", { class: "n" }, whole(pe.lag)), h("td", { class: "n" }, String(pe.launches)),
      h("td", {}, pe.message), h("td", { class: "n" }, pe.pod && h("button", { type: "button", class: "quiet", "data-key": `log-${pe.pod}`, "aria-label": `Log of ${pe.pod}`, onclick: () => this.openLog(pe.pod) }, "Log"))));
    const heads = [["Processing element"], ["Channel", 1], ["Phase"], ["Busy", 1], ["Waiting", 1], ["Launches", 1], [""], [""]];
    this.log ??= h("pre", { class: "log", tabindex: 0, "aria-label": "Log" });
    const scrolled = this.log.scrollTop;
    show(this.stage, h("h2", {}, `Stage ${stage.name}`),
      h("p", { class: "soft" }, stage.operators.length ? `Operators: ${stage.operators.join(", ")}.` : ""), this.drawMore(shown.length, sorted.length),
      h("table", {}, h("thead", {}, h("tr", {}, heads.map(([text, right]) => h("th", { scope: "col", class: right ? "n" : null }, text)))), h("tbody", {}, rows)),
      ...(this.pod ? [h("h3", {}, `Log of ${this.pod}`), this.log] : []));
    this.log.scrollTop = scrolled;
  }

  // Before the table: whoever asks for all of the rows finds them behind the button.
  drawMore(shown, all) {
    if (all <= ROWS) return null;
    const turn = () => { this.all = !this.all; this.draw(); };
    return h("p", { class: "soft" }, `${shown} of ${all} processing elements, what does not run first, then the busiest. `,
      h("button", { type: "button", "data-key": "all", onclick: turn }, this.all ? `Show the first ${ROWS}` : `Show all ${all}`));
  }

  async openLog(pod) {
    this.pod = this.pod === pod ? null : pod;
    this.log.textContent = "";
    this.draw();
    if (this.pod) await this.readLog();
  }

  async readLog() {
    const { pod } = this;
    const text = await api.podLog(this.space, pod).catch((error) => error.message);
    if (this.pod !== pod) return; // another one was opened meanwhile
    const below = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 40;
    this.log.textContent = text || "Nothing was written yet.";
    if (below) this.log.scrollTop = this.log.scrollHeight;
  }

  async save() {
    const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "").toLowerCase();
    await this.attempt(() => api.takeSavepoint(this.space, this.name, `${this.name}-${stamp}`), `Savepoint ${this.name}-${stamp} begun`);
  }

  async cancel() {
    const { namespace, name } = this.job; // as the adapter has it, whatever the address says
    const sure = await confirmed(`Cancel ${namespace}/${name}?`, "Its processing elements, topics and state are deleted. A savepoint keeps the state.", "Cancel the job");
    if (sure) await this.attempt(() => api.cancelJob(namespace, name), `Job ${name} is being cancelled`);
  }

  async attempt(call, done) {
    try {
      await call();
      say(done);
    } catch (error) {
      say(error.message, true);
    }
  }
}
