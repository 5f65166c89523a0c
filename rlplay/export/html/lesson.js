/* The lesson beside the run: sentences, questions with predictions, and claims as they were measured. */

function drawLesson() {
  const place = find("lesson"), item = data.lesson[state.item];
  if (!data.lesson.length) return place.replaceChildren();
  if (!item) return place.replaceChildren(element("p", "", "", element("kbd", "", "t"), " plays the lesson beside this run."));
  const step = element("span", "step", `${state.item + 1} of ${data.lesson.length}`);
  place.replaceChildren(step, ...partsOf(item));
  if (state.item === data.lesson.length - 1 && !data.lessonEnds) {
    place.append(element("p", "quiet", "From here on the run did something else than the lesson. To play it: ", element("kbd", "", data.play)));
  }
}

function partsOf(item) {
  if (item.ask) return [element("p", "", item.ask), choicesOf(item)];
  if (item.claims) return [...verdictOf(item), ...item.claims.map(claim)];
  return [keyed(item.say || item.do)];
}

function choicesOf(item) {
  const list = element("ol");
  item.choices.forEach((choice, index) => {
    const button = element("button", "", `${index + 1} ${choice}`);
    if (state.choices[state.item] === index) button.style.borderColor = "var(--accent)";
    button.addEventListener("click", () => choose(index));
    list.append(element("li", "", "", button));
  });
  return list;
}

function verdictOf(item) {
  const asked = item.answers === undefined || item.answers === null ? null : data.lesson[item.answers];
  if (!asked) return [];
  const choice = state.choices[item.answers], right = choice === asked.answer;
  const begin = choice === undefined ? "Answer: " : right ? "✓ Right: " : "✗ Not quite: ";
  const text = element("p", "", "", element("b", choice === undefined ? "" : right ? "right" : "wrong", begin), `${asked.choices[asked.answer]}. ${asked.because}`);
  return [text];
}

function claim(each) {
  return element("p", "", "", element("span", each.passed ? "right" : "wrong", each.passed ? "✓ " : "✗ "), each.finding);
}

/** A sentence with its keys in `backquotes` set apart. */
function keyed(text) {
  const made = element("p");
  text.split("`").forEach((part, index) => made.append(index % 2 ? element("kbd", "", part) : part));
  return made;
}

/** Go to another step of the lesson, and to the place of the run that it speaks of. */
function step(by) {
  const next = state.item + by;
  if (next < 0 || next >= data.lesson.length) return;
  state.item = next;
  const item = data.lesson[next];
  if (item.lens) state.lens = item.lens === "auto" ? null : item.lens;
  if (item.curve) state.curve = item.curve;
  show(item.frame, item.phase);
}

function choose(index) {
  const item = data.lesson[state.item];
  if (!item?.ask || index >= item.choices.length) return;
  state.choices[state.item] = index;
  drawLesson();
}
