"use strict";
// The OpenAPI document as a page.

function contentOf(title, content) {
  return Object.entries(content ?? {}).map(([type, what]) =>
    make(
      "details", {},
      make("summary", { textContent: `${title}: ${type}` }),
      make("pre", { tabIndex: 0, textContent: JSON.stringify(what.example ?? what.schema ?? {}, null, 2) }),
      what.example === undefined
        ? ""
        : make("details", {}, make("summary", { textContent: "Schema" }), make("pre", { tabIndex: 0, textContent: JSON.stringify(what.schema, null, 2) })),
    ),
  );
}

function operationOf(path, method, operation) {
  const parameters = (operation.parameters ?? []).map((one) =>
    make("li", {}, make("code", { textContent: `?${one.name}=` }), ` ${one.description}`),
  );
  const errors = Object.entries(operation.responses).filter(([status]) => status !== "200");
  return make(
    "article", {},
    make("h2", {}, make("span", { className: "method", textContent: method.toUpperCase() }), make("code", { textContent: path })),
    make("p", { textContent: operation.summary }),
    parameters.length ? make("ul", {}, ...parameters) : "",
    ...contentOf("Body", operation.requestBody?.content),
    ...contentOf("Answer", operation.responses["200"].content),
    make(
      "details", {},
      make("summary", { textContent: "Errors" }),
      make("ul", {}, ...errors.map(([status, what]) => make("li", { textContent: `${status}: ${what.description}` }))),
    ),
  );
}

async function start() {
  const response = await request("/openapi.json");
  if (response === null) return;
  const { paths } = await response.json();
  element("paths").replaceChildren(
    ...Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => operationOf(path, method, operation)),
    ),
  );
}

askForToken(start);
start();
