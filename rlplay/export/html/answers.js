/* Answers with their tokens, and the token under the cursor with what the model could have written instead. */

function drawAnswers(frame) {
  const place = find("answers"), lens = lensNow(), row = lens && frame.lenses[lens];
  const title = element("h2");
  title.append(element("b", "", data.word === "move" ? "Episodes" : "Answers"), row ? ` · colour: ${row.title.toLowerCase()}` : "");
  if (row && row.twoSided) title.append(` (blue up to ${number(row.high, true)}, orange down to ${number(row.low)})`);
  const shown = answersOf(frame).length;
  if (shown && shown < frame.of) title.append(` · ${shown} of ${frame.of} on this page`);
  const parts = [title];
  if (!shown) parts.push(element("p", "quiet", frame.update ? "The text of this update was not kept." : "The model before its first update. → shows what it writes then."));
  let group = -1;
  answersOf(frame).forEach((answer, index) => {
    if (answer.group !== group) parts.push(element("h3", "", frame.prompts[answer.group]));
    group = answer.group;
    parts.push(drawnAnswer(answer, index, row, lens));
  });
  place.replaceChildren(...parts);
  place.querySelector(".here")?.scrollIntoView({ block: "nearest" });
}

function drawnAnswer(answer, index, row, lens) {
  const text = element("span", "text");
  answer.tokens.forEach((word, at) => {
    const token = element("span", "token", data.words[word]);
    if (!answer.own[at]) token.classList.add("environment");
    if (row && answer.own[at]) token.style.backgroundColor = shade(row, answer.values[lens][at]);
    if (index === state.answer && at === state.token) token.classList.add("here");
    token.dataset.answer = index;
    token.dataset.token = at;
    text.append(token);
  });
  if (answer.cut) text.append(element("span", "quiet", " (cut)"));
  return element("div", "answer", "", element("span", "earned", earned(answer)), text);
}

function earned(answer) {
  if (answer.role) return answer.role;
  if (reached() < 1 || answer.reward === null) return "";
  const advantage = reached() >= 2 && answer.advantage !== null ? `  ${number(answer.advantage, true)}` : "";
  return `${number(answer.reward)}${advantage}`;
}

function drawToken(frame) {
  const place = find("token"), answer = answersOf(frame)[state.answer];
  const title = element("h2", "", "", element("b", "", data.word === "move" ? "Move" : "Token"));
  if (!answer) return place.replaceChildren(title, element("p", "quiet", "No token is shown here."));
  const bars = element("div", "bars"), after = reached() >= 4;
  for (const [word, old, now, chosen] of answer.candidates[state.token]) bars.append(...bar(word, old, after ? now : null, chosen));
  const known = lensesNow().filter((name) => answer.values[name][state.token] !== null);
  const written = ({ title, low }, value) => `${title} ${number(value, low < 0)}`;
  const values = element("p", "quiet", known.map((name) => written(frame.lenses[name], answer.values[name][state.token])).join(" · "));
  place.replaceChildren(title, element("p", "", sentence(answer)), bars, values);
}

function sentence(answer) {
  const chosen = answer.candidates[state.token].find((each) => each[3]);
  if (!answer.own[state.token]) return "The environment wrote this, not the model.";
  if (!chosen) return "";
  const [word, old, now] = chosen, name = `“${data.words[word]}”`;
  if (reached() < 4 || now === null || old === null) return `${name} had a probability of ${number(old)} when it was written.`;
  if (Math.abs(now - old) < 0.005) return `The update left the probability of ${name} at ${number(now)}.`;
  return `The update moved the probability of ${name} from ${number(old)} to ${number(now)}.`;
}

function bar(word, old, now, chosen) {
  const track = element("span", "track"), before = element("span", "old"), after = element("span", "new");
  before.style.width = `${100 * (old || 0)}%`;
  after.style.width = `${100 * (now ?? old ?? 0)}%`;
  after.style.backgroundColor = now === null || old === null ? "rgb(var(--amount))" : `rgb(var(--${now < old - 0.005 ? "down" : now > old + 0.005 ? "up" : "amount"}))`;
  track.append(before, after);
  const numbers = now === null ? number(old) : `${number(old)} → ${number(now)}`;
  return [element("span", chosen ? "name chosen" : "name", data.words[word]), track, element("span", "number", numbers)];
}

/** Move the cursor to the token whose colour is strongest upwards (1) or downwards (-1). */
function goToExtreme(sign) {
  const lens = lensNow();
  let best = -Infinity;
  answersOf(shownFrame()).forEach((answer, index) => answer.values[lens]?.forEach((value, at) => {
    if (value === null || !answer.own[at] || sign * value <= best) return;
    best = sign * value;
    [state.answer, state.token] = [index, at];
  }));
  paint();
}

function moveCursor(across, along) {
  const answers = answersOf(shownFrame());
  if (!answers.length) return;
  state.answer = Math.min(Math.max(state.answer + across, 0), answers.length - 1);
  state.token = Math.min(Math.max(state.token + along, 0), answers[state.answer].tokens.length - 1);
  paint();
}
