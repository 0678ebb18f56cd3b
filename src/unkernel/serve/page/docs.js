"use strict";
// Shows the OpenAPI document as a page.

function makeContent(title, content) {
  return Object.entries(content ?? {}).map(([type, media]) =>
    make(
      "details", {},
      make("summary", { textContent: `${title}: ${type}` }),
      make("pre", { tabIndex: 0, textContent: JSON.stringify(media.example ?? media.schema ?? {}, null, 2) }),
      media.example === undefined
        ? ""
        : make("details", {}, make("summary", { textContent: "Schema" }), make("pre", { tabIndex: 0, textContent: JSON.stringify(media.schema, null, 2) })),
    ),
  );
}

function makeOperation(path, method, operation) {
  const parameters = (operation.parameters ?? []).map((parameter) =>
    make("li", {}, make("code", { textContent: `?${parameter.name}=` }), ` ${parameter.description}`),
  );
  const errors = Object.entries(operation.responses).filter(([status]) => status !== "200");
  return make(
    "article", {},
    make("h2", {}, make("span", { className: "method", textContent: method.toUpperCase() }), make("code", { textContent: path })),
    make("p", { textContent: operation.summary }),
    parameters.length ? make("ul", {}, ...parameters) : "",
    ...makeContent("Body", operation.requestBody?.content),
    ...makeContent("Answer", operation.responses["200"].content),
    make(
      "details", {},
      make("summary", { textContent: "Errors" }),
      make("ul", {}, ...errors.map(([status, error]) => make("li", { textContent: `${status}: ${error.description}` }))),
    ),
  );
}

async function start() {
  const response = await request("/openapi.json");
  if (response === null) return;
  const { paths } = await response.json();
  element("paths").replaceChildren(
    ...Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => makeOperation(path, method, operation)),
    ),
  );
}

handleToken(start);
start();
