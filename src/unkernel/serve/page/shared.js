"use strict";
// Shared by both pages: elements, and requests with a token if the server requires one.

const element = (name) => document.getElementById(name);

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const TOKEN = "unkernel-token";

function headers(more = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, authorization: `Bearer ${token}` } : more;
}

// Returns a response. If the server requires a token, shows the form for it and returns null.
async function request(path, options = {}) {
  const response = await fetch(path, { ...options, headers: headers(options.headers) });
  element("token-form").hidden = response.status !== 401;
  if (response.status !== 401) return response;
  element("token").focus();
  return null;
}

function askForToken(then) {
  element("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, element("token").value);
    then();
  });
}
