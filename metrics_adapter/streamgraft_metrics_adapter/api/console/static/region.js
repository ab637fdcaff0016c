// A region: figures, the last hour with a replay, why its width is what it is, and its changes.

import * as api from "./api.js";
import { h, show, say, confirmed, whole, percent, seconds } from "./dom.js";
import { hour, timeline } from "./charts.js";
import { newest } from "./load.js";

// Milliseconds after which a replay is asked for anew: the hour has moved on.
const AGAIN = 30000;

export class RegionCard {
  constructor(space, region) {
    this.space = space;
    this.target = null; // that was asked for, with what came of it
    this.replayed = this.failure = null;
    this.moved = false;
    this.askedAt = 0;
    this.figures = h("div", { class: "figures" });
    this.plot = h("div");
    this.guess = h("output", { class: "soft" });
    this.reasons = h("ul", { class: "why" });
    this.changes = h("ul", { class: "bare" });
    this.state = h("span");
    this.width = h("input", { type: "number", required: true, min: region.maySleep ? 0 : 1, max: region.maxWidth, value: region.width, id: `width-${region.name}` });
    this.slider = h("input", { type: "range", min: 20, max: 100, step: 5, disabled: true, id: `busy-${region.name}`, oninput: () => this.slid(), onchange: () => this.replay(Number(this.slider.value) / 100) });
    const form = h("form", { class: "set", onsubmit: (event) => this.widen(event) },
      h("label", { for: `width-${region.name}`, class: "soft" }, "Channels"), this.width, h("button", { type: "submit" }, "Set width"));
    this.element = h("section", { class: "card", "aria-label": `Region ${region.region}` },
      h("div", { class: "head" }, h("div", { class: "grow" }, h("h2", {}, `Region ${region.region} `, this.state)), form),
      this.figures, this.plot,
      h("div", { class: "key" }, h("span", {}, h("i"), "records/s arriving"), h("span", {}, h("i", { class: "w" }), "channels"), h("span", {}, h("i", { class: "g" }), "what if")),
      h("div", { class: "set" }, h("label", { for: `busy-${region.name}`, class: "soft" }, "What if channels were to be busy for"), this.slider, this.guess),
      h("div", { class: "split" }, h("div", {}, h("h3", {}, "Why this width"), this.reasons), h("div", {}, h("h3", {}, "Width changes"), this.changes)));
  }

  // The region as the job has it; signals and history follow on their own.
  async refresh(region) {
    this.region = region;
    const kind = region.resizing ? ["busy", "changing"] : region.serving === 0 ? ["", "asleep"] : ["good", "serving"];
    show(this.state, h("span", { class: `tag ${kind[0]}` }, kind[1]));
    const recent = region.changes.slice(-6).reverse();
    show(this.changes, recent.length ? recent.map(timeline) : h("li", { class: "soft" }, "None yet."));
    if (document.activeElement !== this.width && this.seen !== region.width) this.width.value = this.seen = region.width;
    try {
      [this.facts, this.samples] = await Promise.all([api.readRegion(this.space, region.name), api.history(this.space, region.name)]);
    } catch (error) {
      show(this.reasons, h("li", { class: "soft" }, error.message));
      return;
    }
    const inputs = this.facts.signals.demand?.inputs;
    if (!this.moved && inputs) this.slider.value = Math.round(inputs.policy.target_utilization * 100);
    if (inputs) this.slider.disabled = false;
    this.draw();
    if (this.target !== null && performance.now() - this.askedAt >= AGAIN) this.replay(this.target);
  }

  draw() {
    const { signals } = this.facts, region = this.region, now = newest(this.samples, api.now());
    const figure = (value, name) => h("div", { class: "figure" }, h("b", {}, value), h("span", {}, name));
    show(this.figures,
      figure(`${region.serving} of ${region.maxWidth}`, region.serving === region.width ? "channels" : `channels, ${region.width} wanted`),
      figure(whole(now?.inputRate), "records/s arrive"), figure(whole(now?.processingRate), "records/s done"),
      figure(whole(signals.total_lag?.value), "records wait"), figure(percent(signals.utilization?.value), "utilization"),
      figure(signals.demand?.value ?? "–", "channels asked for"));
    show(this.plot, hour(this.samples, now, region.maxWidth, this.replayed?.steps ?? []));
    this.tell();
    show(this.reasons, ...why(signals.demand).map((line) => h("li", {}, line)));
  }

  // The slider's value, and in words what its replay came to.
  tell() {
    const share = `${this.slider.value} % of their time`, asked = Number(this.slider.value) / 100 === this.target;
    const words = this.slider.disabled ? "what a channel can do is not known now"
      : !asked ? share : `${share}: ${this.failure ?? (this.replayed ? verdict(this.replayed) : "replaying the last hour")}`;
    if (this.guess.textContent !== words) this.guess.textContent = words;
  }

  slid() {
    this.moved = true;
    this.tell();
  }

  async replay(target) {
    if (target !== this.target) this.replayed = this.failure = null;
    this.target = target;
    this.askedAt = performance.now();
    this.moved = true;
    this.draw();
    const answer = await api.replay(this.space, this.region.name, target).then((found) => [found, null], (error) => [null, error.message]);
    if (target !== this.target) return; // another one was asked for meanwhile
    [this.replayed, this.failure] = answer;
    this.draw();
  }

  async widen(event) {
    event.preventDefault();
    if (!this.width.reportValidity()) return;
    const width = Number(this.width.value);
    const question = `Put region ${this.region.region} to sleep?`;
    if (width === 0 && !(await confirmed(question, "It has no channels then, and its records wait until it is given some.", "Put to sleep"))) return;
    try {
      await api.setWidth(this.space, this.region.name, width);
      say(`Region ${this.region.region}: ${width} channels wanted`);
    } catch (error) {
      say(error.message, true);
    }
  }
}

// What a replay came to beside what really happened. How long records really waited is not recorded.
function verdict({ seconds: known, replayed, happened, longestWaitSeconds }) {
  const figures = ({ changes, channelHours, largestBacklog }) => {
    const records = largestBacklog === null ? "an unknown number of" : whole(largestBacklog);
    return `${changes} width change${changes === 1 ? "" : "s"}, ${channelHours.toFixed(1)} channel-hours, at most ${records} records not committed`;
  };
  return `in ${Math.round(known / 60)} min ${figures(replayed)}, the longest wait ${seconds(longestWaitSeconds)}. Really: ${figures(happened)}`;
}

// The decision in sentences, from its inputs.
function why(demand) {
  if (!demand || demand.value === undefined) return [demand?.message ?? "no signal yet", "the width is held"];
  const { stages, stage, needed: count, held } = demand.inputs, lines = [];
  const { load, fit, backlog } = stages[stage] ?? Object.values(stages)[0];
  lines.push(`${whole(load.input_rate)} records/s arrive and ${whole(backlog)} wait; the fullest shard gets ${percent(load.largest_shard)}`);
  if (load.capacity && fit) lines.push(`a busy channel does ${whole(load.capacity.true_rate)} records/s, as seen at width ${load.capacity.width}`);
  lines.push(`the load needs ${count}, headroom included; the decision is ${demand.value}`);
  return [...lines, ...held.map((reason) => `because ${reason}`)];
}
