"use strict";
/* What the page shows: which update, which statistic colours the tokens, and the token under the cursor.
   Foreign text is only ever set as textContent. */
const data = JSON.parse(document.getElementById("data").textContent);
const state = { frame: 0, phase: null, lens: null, answer: 0, token: 0, item: -1, choices: {}, curve: null };
const PHASES = ["sample", "score", "credit", "update", "after"];
const SINCE = {
  probability: 0, entropy: 0, cumulative_logprob: 0, advantages: 2, returns: 2, values: 2, token_rewards: 2, ref_kl: 2,
  log_ratio: 2, implicit_reward: 3, credit: 3, importance_ratio: 3, clip_state: 3, prob_delta: 4,
};
const find = (id) => document.getElementById(id);

/** A new element with a class, a text and children. */
function element(name, kind = "", text = "", ...children) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

/** A new element of a drawing. */
function drawn(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

/** A number as the terminal writes it: .62, −1.08, 14.5. */
function number(value, signed = false) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  let text = size >= 100 ? size.toFixed(0) : size >= 10 ? size.toFixed(1) : size.toFixed(2);
  if (size !== 0 && size < 0.005) text = size < 0.0005 ? size.toExponential(0) : size.toFixed(4);
  text = text.replace(/^0\./, ".").replace(/^\.00$/, "0");
  return (value < 0 ? "−" : signed && value > 0 ? "+" : "") + text;
}

const reached = () => (state.phase === null ? 4 : PHASES.indexOf(state.phase));
const shownFrame = () => data.frames[state.frame];
const answersOf = (frame) => frame.answers || [];

/** The statistics that are known in this phase of the update on the page. */
const lensesNow = () => Object.keys(shownFrame().lenses || {}).filter((name) => (SINCE[name] ?? 4) <= reached());

/** The statistic that colours the tokens: the chosen one, or the one that fits the phase. */
function lensNow() {
  const known = lensesNow();
  const fitting = [state.lens, reached() >= 4 ? shownFrame().lens : "", reached() >= 2 ? "advantages" : "", "probability"];
  return fitting.find((name) => known.includes(name)) || known[0] || null;
}

/** The colour behind a value of a statistic: its share of the scale, as the terminal draws it. */
function shade(lens, value) {
  if (value === null || value === undefined) return "";
  const { low, high, twoSided, finest } = lens;
  if (!twoSided) {
    const unit = Math.min(Math.max((value - low) / (high - low), 0), 1);
    const bent = finest === "low" ? Math.sqrt(unit) : finest === "high" ? 1 - Math.sqrt(1 - unit) : unit;
    return `rgba(var(--amount), ${(0.6 * bent).toFixed(3)})`;
  }
  const share = Math.min(Math.max((value - (low + high) / 2) / ((high - low) / 2), -1), 1);
  return `rgba(var(--${share < 0 ? "down" : "up"}), ${(0.85 * Math.abs(share)).toFixed(3)})`;
}

/** Show another update, and as much of it as `phase` knows. */
function show(frame, phase = null) {
  state.frame = Math.min(Math.max(frame, 0), data.frames.length - 1);
  state.phase = phase;
  keepCursor();
  paint();
}

function keepCursor() {
  const answers = answersOf(shownFrame());
  state.answer = Math.min(state.answer, Math.max(answers.length - 1, 0));
  state.token = Math.min(state.token, Math.max((answers[state.answer]?.tokens.length || 1) - 1, 0));
}

/** Draw everything anew. */
function paint() {
  const frame = shownFrame();
  find("moment").textContent = moment(frame);
  find("slider").value = state.frame;
  drawAnswers(frame);
  drawToken(frame);
  drawCurves();
  if (data.world) drawMap(frame);
  drawLesson();
}

function moment(frame) {
  const last = Math.max(...data.frames.filter((each) => each.act === frame.act).map((each) => each.update));
  const again = frame.act ? ` · run ${frame.act + 1}` : "";
  if (!frame.update) return `before training${again}`;
  const part = state.phase === null ? "" : ` · ${state.phase}`;
  return `update ${frame.update} of ${last}${part}${again}`;
}
