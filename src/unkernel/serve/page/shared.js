"use strict";
// Functions of both pages: elements, and requests with a token if the server requires it.

const element = (name) => document.getElementById(name);

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

const TOKEN = "unkernel-token";  // key of the token in the storage of the session

function addToken(headers = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...headers, authorization: `Bearer ${token}` } : headers;
}

// Returns a response. If the server requires a token, shows the form for it and returns null.
async function request(path, options = {}) {
  const response = await fetch(path, { ...options, headers: addToken(options.headers) });
  element("token-form").hidden = response.status !== 401;
  if (response.status !== 401) return response;
  element("token").focus();
  return null;
}

function handleToken(onToken) {
  element("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, element("token").value);
    onToken();
  });
}
