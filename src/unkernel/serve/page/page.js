"use strict";
// A form generated from a model's description; predictions appear while the user types.

const DELAY_MS = 120;  // time between the last keystroke and the request
const TOP = 12;  // number of contributions and probabilities to show

let models = [];
let model = null;
let lastRequest = 0;  // number of the last request; responses to earlier requests are ignored
let timer = 0;

// --- The form -----------------------------------------------------------------------------------

// Returns the text of a field with this value.
function formatValue(value) {
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "boolean") return Number(value);
  return typeof value === "object" ? "" : value;
}

function makeField(column, number) {
  const id = `field-${number}`;
  const value = model.example[column.name];
  const isNumber = column.type === "number";
  const field = make("input", {
    id,
    name: column.name,
    type: isNumber ? "number" : "text",
    value: formatValue(value),
    autocomplete: "off",
    placeholder: column.type === "array" ? "one, two, three" : "missing",
  });
  if (isNumber) field.step = "any";
  field.dataset.type = column.type;
  const parts = [make("label", { htmlFor: id, textContent: column.name }), field];
  if (column.choices.length) {
    field.setAttribute("list", `choices-${number}`);
    parts.push(make("datalist", { id: `choices-${number}` }, ...column.choices.map((choice) => make("option", { value: choice }))));
  }
  return make("div", { className: "field" }, ...parts);
}

const INPUT_LABELS = {
  text: "Text",
  tree: "A tree in brackets",
  sentences: "Sentences, in the format of files",
  row: 'A row: [values], or {"ids": [...], "values": [...]}',
};

function showForm() {
  const form = element("form");
  if (model.input === "record") {
    form.replaceChildren(...model.columns.map(makeField));
    return;
  }
  const text = model.input === "row" ? JSON.stringify(model.example) : model.example;
  const box = make("textarea", { id: "text", name: "text", rows: 8, value: text, spellcheck: false });
  form.replaceChildren(make("label", { htmlFor: "text", textContent: INPUT_LABELS[model.input] }), box);
}

function parseField(field) {
  if (field.dataset.type === "number") return Number(field.value);
  if (field.dataset.type === "array") return field.value.split(",").map((item) => item.trim()).filter(Boolean);
  if (field.dataset.type === "object") return JSON.parse(field.value);
  return field.value;
}

// Returns the input that the form describes; empty fields are missing values.
function readInput() {
  const form = element("form");
  if (model.input !== "record") {
    const text = form.elements.text.value;
    return model.input === "row" ? JSON.parse(text) : text;
  }
  const record = {};
  for (const field of form.elements) {
    if (field.validity.badInput) throw new Error(`${field.name} is not a number`);
    if (field.value.trim() !== "") record[field.name] = parseField(field);
  }
  return record;
}

// --- Requests -----------------------------------------------------------------------------------

async function predict() {
  const number = ++lastRequest;
  const path = `/models/${model.name}`;
  let body;
  try {
    body = JSON.stringify(readInput());
  } catch (error) {
    showError(error.message);
    return;
  }
  showCurl(body);
  const post = { method: "POST", body, headers: { "content-type": "application/json" } };
  try {
    const start = performance.now();
    const response = await request(`${path}/predict`, post);
    if (response === null) return;
    const answer = await response.json();
    const milliseconds = performance.now() - start;
    if (number !== lastRequest) return;
    if (!response.ok) {
      showError(answer.error, answer.field);
      if (await updateVersion(null)) predict();
      return;
    }
    if (await updateVersion(response.headers.get("x-model-version"))) {
      predict();
      return;
    }
    showAnswer(answer);
    showLatency(response.headers.get("server-timing"), milliseconds);
    const explanationResponse = await request(`${path}/explain?top=${TOP}`, post);
    if (explanationResponse === null || number !== lastRequest) return;
    const explanation = await explanationResponse.json();
    if (number === lastRequest) showExplanation(explanationResponse.ok ? explanation : {});
  } catch (error) {
    if (number === lastRequest) showError(`The server cannot be reached: ${error.message}`);
  }
}

// Shows a new version of the model. Returns whether its inputs have changed, which requires a new request.
// If the version is not known, as after an error, asks the server for the current version.
async function updateVersion(version) {
  if (version === model.version) return false;
  const response = await request(`/models/${model.name}`);
  if (response === null || !response.ok) return false;
  const previous = model;
  model = await response.json();
  models = models.map((other) => (other.name === model.name ? model : other));
  showAbout();
  if (describeInputs(previous) === describeInputs(model)) return false;
  const fieldValues = previous.input === model.input ? [...element("form").elements].map((field) => [field.name, field.value]) : [];
  showForm();
  for (const [name, value] of fieldValues) {
    if (element("form").elements[name]) element("form").elements[name].value = value;
  }
  return true;
}

const describeInputs = (model) => JSON.stringify([model.input, model.columns]);

function predictSoon() {
  clearTimeout(timer);
  timer = setTimeout(predict, DELAY_MS);
}

// --- Results ------------------------------------------------------------------------------------

function showAbout() {
  element("about").textContent = `${model.description}, version ${model.version}`;
}

function showError(reason, field) {
  const message = element("error");
  message.textContent = reason;
  message.hidden = false;
  element("answer").classList.add("old");
  for (const input of element("form").elements) input.setAttribute("aria-invalid", input.name === field);
}

function clearError() {
  element("error").hidden = true;
  element("answer").classList.remove("old");
  for (const input of element("form").elements) input.removeAttribute("aria-invalid");
}

function makeBar(share, side, title) {
  const bar = make("span", { className: `bar ${side}`, ariaHidden: "true" });
  bar.style.width = `${(100 * Math.min(1, share)).toFixed(2)}%`;
  return make("td", { className: "bars", title }, bar);
}

const formatPrediction = (value) => (Array.isArray(value) ? value.join(", ") || "none" : String(value));

// A model of several outputs has an object of probabilities for each output.
function listProbabilities(probabilities) {
  if (!Array.isArray(probabilities)) return Object.entries(probabilities);
  return probabilities.flatMap((shares, output) =>
    Object.entries(shares).map(([name, share]) => [`${output}: ${name}`, share]));
}

function showAnswer(answer) {
  clearError();
  const hasPrediction = "prediction" in answer;
  element("prediction").hidden = !hasPrediction;
  element("prediction").textContent = hasPrediction ? formatPrediction(answer.prediction) : "";
  const probabilities = listProbabilities(answer.probabilities ?? {}).sort((first, second) => second[1] - first[1]);
  element("probabilities").hidden = probabilities.length === 0;
  element("probabilities").tBodies[0].replaceChildren(
    ...probabilities.slice(0, TOP).map(([name, share]) => {
      const percent = `${(100 * share).toFixed(1)} %`;
      return make(
        "tr", {},
        make("th", { scope: "row", textContent: name }),
        makeBar(share, "plain", percent),
        make("td", { className: "number", textContent: percent }),
      );
    }),
  );
}

function showExplanation(explanation) {
  showContributions(explanation);
  element("sentences").replaceChildren(...(explanation.sentences ?? []).map(makeFigure));
  showDecisions(explanation.decisions ?? []);
  element("output").hidden = !explanation.output;
  element("output").querySelector("pre").textContent = explanation.output ?? "";
}

const formatSigned = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toPrecision(3);

function showContributions(explanation) {
  const parts = explanation.contributions ?? [];
  const table = element("contributions");
  table.hidden = parts.length === 0;
  if (!parts.length) return;
  const against = explanation.against === null ? "" : ` (+) or ${explanation.against} (−)`;
  table.caption.textContent = explanation.for_class === null ? "Contributions" : `Evidence for ${explanation.for_class}${against}`;
  const others = explanation.conjunctions === undefined ? "all others" : `${explanation.conjunctions - parts.length} others`;
  const isComplete = explanation.conjunctions === parts.length;
  const rows = isComplete ? parts : [...parts, { label: others, value: explanation.rest, isRest: true }];
  const largest = Math.max(...rows.map((part) => Math.abs(part.value)), Number.MIN_VALUE);
  table.tBodies[0].replaceChildren(
    ...rows.map((part) =>
      make(
        "tr", { className: part.isRest ? "quiet" : "" },
        make("th", { scope: "row", textContent: part.label }),
        makeBar(Math.abs(part.value) / largest / 2, part.value < 0 ? "against" : "for", formatSigned(part.value)),
        make("td", { className: "number", textContent: formatSigned(part.value) }),
      ),
    ),
  );
}

function makeFigure(sentence) {
  const figure = make("figure", { tabIndex: 0 }, make("figcaption", { textContent: sentence.text }));
  if (sentence.svg) {
    const drawing = new DOMParser().parseFromString(sentence.svg, "image/svg+xml").documentElement;
    figure.append(document.importNode(drawing, true));
  } else {
    const text = sentence.drawn ?? (sentence.words ?? []).map((word) => word.form).join(" | ");
    figure.append(make("pre", { textContent: text }));
  }
  return figure;
}

function showDecisions(decisions) {
  const list = element("decisions");
  list.hidden = decisions.length === 0;
  list.querySelector("summary").textContent = `${decisions.length} decisions and their reasons`;
  list.querySelector("ol").replaceChildren(
    ...decisions.slice(0, 500).map((decision) => {
      const reasons = decision.evidence.slice(0, 3).map((part) => `${formatSigned(part.chosen - part.runner_up)} ${part.features.join(" & ")}`);
      const alternative = decision.runner_up ? ` rather than ${decision.runner_up}` : "";
      return make(
        "li", {},
        make("strong", { textContent: decision.question }), ` ${decision.kind}: ${decision.chosen}${alternative}`,
        make("ul", {}, ...reasons.map((reason) => make("li", { textContent: reason }))),
      );
    }),
  );
}

function showLatency(timing, milliseconds) {
  const match = /dur=([\d.]+)/.exec(timing ?? "");
  const modelTime = match ? `The model took ${Number(match[1]).toFixed(3)} ms, ` : "";
  element("latency").textContent = `${modelTime}the whole request ${milliseconds.toFixed(1)} ms.`;
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
    getSelection().selectAllChildren(element("curl"));  // the user can copy the selection
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// --- Start --------------------------------------------------------------------------------------

function selectModel(name) {
  model = models.find((model) => model.name === name) ?? models[0];
  element("model").value = model.name;
  history.replaceState(null, "", `#${model.name}`);
  showAbout();
  showForm();
  showExplanation({});
  showAnswer({});
  predict();
}

async function start() {
  const response = await request("/models");
  if (response === null) return;
  models = (await response.json()).models;
  element("model").replaceChildren(...models.map((model) => make("option", { textContent: model.name })));
  selectModel(location.hash.slice(1));
}

element("model").addEventListener("change", () => selectModel(element("model").value));
element("form").addEventListener("input", predictSoon);
element("form").addEventListener("submit", (event) => { event.preventDefault(); predict(); });
element("copy").addEventListener("click", copyCurl);
handleToken(start);
start();
