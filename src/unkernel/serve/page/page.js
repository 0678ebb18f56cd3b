"use strict";
// A form generated from a model's description; predictions appear while the user types.

const PAUSE = 120;  // milliseconds without a key before a request is sent
const TOP = 12;

let models = [];
let model = null;
let latest = 0;  // number of the last request: responses to earlier ones are not shown
let timer = 0;

// --- The form -----------------------------------------------------------------------------------

// Returns a value as the text of a field.
function written(value) {
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "boolean") return Number(value);
  return typeof value === "object" ? "" : value;
}

function fieldOf(column, number) {
  const id = `field-${number}`;
  const value = model.example[column.name];
  const numeric = column.type === "number";
  const field = make("input", {
    id,
    name: column.name,
    type: numeric ? "number" : "text",
    value: written(value),
    autocomplete: "off",
    placeholder: column.type === "array" ? "one, two, three" : "missing",
  });
  if (numeric) field.step = "any";
  field.dataset.type = column.type;
  const parts = [make("label", { htmlFor: id, textContent: column.name }), field];
  if (column.choices.length) {
    field.setAttribute("list", `choices-${number}`);
    parts.push(make("datalist", { id: `choices-${number}` }, ...column.choices.map((one) => make("option", { value: one }))));
  }
  return make("div", { className: "field" }, ...parts);
}

const WORDS = {
  text: "Text",
  tree: "A tree in brackets",
  sentences: "Sentences, in the format of files",
  row: 'A row: [values], or {"ids": [...], "values": [...]}',
};

function showForm() {
  const form = element("form");
  if (model.input === "record") {
    form.replaceChildren(...model.columns.map(fieldOf));
    return;
  }
  const text = model.input === "row" ? JSON.stringify(model.example) : model.example;
  const box = make("textarea", { id: "text", name: "text", rows: 8, value: text, spellcheck: false });
  form.replaceChildren(make("label", { htmlFor: "text", textContent: WORDS[model.input] }), box);
}

function valueOf(field) {
  if (field.dataset.type === "number") return Number(field.value);
  if (field.dataset.type === "array") return field.value.split(",").map((one) => one.trim()).filter(Boolean);
  if (field.dataset.type === "object") return JSON.parse(field.value);
  return field.value;
}

// Returns the form's content as the server takes it; empty fields are missing.
function question() {
  const form = element("form");
  if (model.input !== "record") {
    const text = form.elements.text.value;
    return model.input === "row" ? JSON.parse(text) : text;
  }
  const record = {};
  for (const field of form.elements) {
    if (field.validity.badInput) throw new Error(`${field.name} is not a number`);
    if (field.value.trim() !== "") record[field.name] = valueOf(field);
  }
  return record;
}

// --- Requests -----------------------------------------------------------------------------------

async function ask() {
  const number = ++latest;
  const path = `/models/${model.name}`;
  let body;
  try {
    body = JSON.stringify(question());
  } catch (error) {
    showError(error.message);
    return;
  }
  showCurl(body);
  const post = { method: "POST", body, headers: { "content-type": "application/json" } };
  try {
    const began = performance.now();
    const response = await request(`${path}/predict`, post);
    if (response === null) return;
    const answer = await response.json();
    const whole = performance.now() - began;
    if (number !== latest) return;
    if (!response.ok) {
      showError(answer.error, answer.field);
      if (await noteVersion(null)) ask();
      return;
    }
    if (await noteVersion(response.headers.get("x-model-version"))) {
      ask();
      return;
    }
    showAnswer(answer);
    showLatency(response.headers.get("server-timing"), whole);
    const why = await request(`${path}/explain?top=${TOP}`, post);
    if (why === null || number !== latest) return;
    const told = await why.json();
    if (number === latest) showReasons(why.ok ? told : {});
  } catch (error) {
    if (number === latest) showError(`The server cannot be reached: ${error.message}`);
  }
}

// Shows a new version of the model. Returns whether its inputs have changed, so that a new request is needed.
// Without a version, as after an error, requests the current one from the server.
async function noteVersion(version) {
  if (version === model.version) return false;
  const response = await request(`/models/${model.name}`);
  if (response === null || !response.ok) return false;
  const former = model;
  model = await response.json();
  models = models.map((one) => (one.name === model.name ? model : one));
  showAbout();
  if (inputsOf(former) === inputsOf(model)) return false;
  const typed = former.input === model.input ? [...element("form").elements].map((one) => [one.name, one.value]) : [];
  showForm();
  for (const [name, value] of typed) {
    if (element("form").elements[name]) element("form").elements[name].value = value;
  }
  return true;
}

const inputsOf = (one) => JSON.stringify([one.input, one.columns]);

function askSoon() {
  clearTimeout(timer);
  timer = setTimeout(ask, PAUSE);
}

// --- Results ------------------------------------------------------------------------------------

function showAbout() {
  element("about").textContent = `${model.description}, version ${model.version}`;
}

function showError(reason, field) {
  const shown = element("error");
  shown.textContent = reason;
  shown.hidden = false;
  element("answer").classList.add("old");
  for (const input of element("form").elements) input.setAttribute("aria-invalid", input.name === field);
}

function clearError() {
  element("error").hidden = true;
  element("answer").classList.remove("old");
  for (const input of element("form").elements) input.removeAttribute("aria-invalid");
}

function bar(share, side, words) {
  const filled = make("span", { className: `bar ${side}`, ariaHidden: "true" });
  filled.style.width = `${(100 * Math.min(1, share)).toFixed(2)}%`;
  return make("td", { className: "bars", title: words }, filled);
}

function showAnswer(answer) {
  clearError();
  const classified = "prediction" in answer;
  element("prediction").hidden = !classified;
  element("prediction").textContent = classified ? String(answer.prediction) : "";
  const shares = Object.entries(answer.probabilities ?? {}).sort((one, other) => other[1] - one[1]);
  element("probabilities").hidden = shares.length === 0;
  element("probabilities").tBodies[0].replaceChildren(
    ...shares.slice(0, TOP).map(([name, share]) => {
      const percent = `${(100 * share).toFixed(1)} %`;
      return make(
        "tr", {},
        make("th", { scope: "row", textContent: name }),
        bar(share, "plain", percent),
        make("td", { className: "number", textContent: percent }),
      );
    }),
  );
}

function showReasons(told) {
  showContributions(told);
  element("sentences").replaceChildren(...(told.sentences ?? []).map(figureOf));
  showDecisions(told.decisions ?? []);
  element("output").hidden = !told.output;
  element("output").querySelector("pre").textContent = told.output ?? "";
}

const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toPrecision(3);

function showContributions(told) {
  const parts = told.contributions ?? [];
  const table = element("contributions");
  table.hidden = parts.length === 0;
  if (!parts.length) return;
  const against = told.against === null ? "" : ` (+) or ${told.against} (−)`;
  table.caption.textContent = told.for_class === null ? "Contributions" : `Evidence for ${told.for_class}${against}`;
  const others = told.conjunctions === undefined ? "all others" : `${told.conjunctions - parts.length} others`;
  const none = told.conjunctions === parts.length;
  const rows = none ? parts : [...parts, { label: others, value: told.rest, quiet: true }];
  const most = Math.max(...rows.map((part) => Math.abs(part.value)), Number.MIN_VALUE);
  table.tBodies[0].replaceChildren(
    ...rows.map((part) =>
      make(
        "tr", { className: part.quiet ? "quiet" : "" },
        make("th", { scope: "row", textContent: part.label }),
        bar(Math.abs(part.value) / most / 2, part.value < 0 ? "against" : "for", signed(part.value)),
        make("td", { className: "number", textContent: signed(part.value) }),
      ),
    ),
  );
}

function figureOf(sentence) {
  const figure = make("figure", { tabIndex: 0 }, make("figcaption", { textContent: sentence.text }));
  if (sentence.svg) {
    const drawn = new DOMParser().parseFromString(sentence.svg, "image/svg+xml").documentElement;
    figure.append(document.importNode(drawn, true));
  } else {
    const words = sentence.drawn ?? (sentence.words ?? []).map((word) => word.form).join(" | ");
    figure.append(make("pre", { textContent: words }));
  }
  return figure;
}

function showDecisions(decisions) {
  const shown = element("decisions");
  shown.hidden = decisions.length === 0;
  shown.querySelector("summary").textContent = `${decisions.length} decisions and their reasons`;
  shown.querySelector("ol").replaceChildren(
    ...decisions.slice(0, 500).map((one) => {
      const first = one.evidence.slice(0, 3).map((part) => `${signed(part.chosen - part.runner_up)} ${part.features.join(" & ")}`);
      const rival = one.runner_up ? ` rather than ${one.runner_up}` : "";
      return make(
        "li", {},
        make("strong", { textContent: one.question }), ` ${one.kind}: ${one.chosen}${rival}`,
        make("ul", {}, ...first.map((words) => make("li", { textContent: words }))),
      );
    }),
  );
}

function showLatency(timing, whole) {
  const found = /dur=([\d.]+)/.exec(timing ?? "");
  const own = found ? `The model took ${Number(found[1]).toFixed(3)} ms, ` : "";
  element("latency").textContent = `${own}the whole request ${whole.toFixed(1)} ms.`;
}

function showCurl(body) {
  const quoted = `'${body.replaceAll("'", "'\\''")}'`;
  const token = sessionStorage.getItem(TOKEN) ? " -H \"authorization: Bearer $TOKEN\"" : "";
  element("curl").textContent = `curl${token} -d ${quoted} ${location.origin}/models/${model.name}/predict`;
}

async function copyCurl() {
  const button = element("copy");
  try {
    await navigator.clipboard.writeText(element("curl").textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(element("curl"));  // so that the browser's own command can copy it
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// --- Start --------------------------------------------------------------------------------------

function choose(name) {
  model = models.find((one) => one.name === name) ?? models[0];
  element("model").value = model.name;
  history.replaceState(null, "", `#${model.name}`);
  showAbout();
  showForm();
  showReasons({});
  showAnswer({});
  ask();
}

async function start() {
  const response = await request("/models");
  if (response === null) return;
  models = (await response.json()).models;
  element("model").replaceChildren(...models.map((one) => make("option", { textContent: one.name })));
  choose(location.hash.slice(1));
}

element("model").addEventListener("change", () => choose(element("model").value));
element("form").addEventListener("input", askSoon);
element("form").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
element("copy").addEventListener("click", copyCurl);
askForToken(start);
start();
