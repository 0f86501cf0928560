// The page's three cards: notes over the JSON API, chat over a WebSocket, pulse over server-sent events.

const $ = (id) => document.getElementById(id);
const RETRY = 2000; // milliseconds until a lost chat connection is tried again

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function onSubmit(form, action) {
  form.addEventListener("submit", (submitted) => {
    submitted.preventDefault();
    const text = form.elements.text.value.trim();
    if (text && action(text) !== false) form.reset();
  });
}

// --- notes ---------------------------------------------------------------------------------------------------------

const rows = new Map(); // by the note's id

async function api(method, path, body) {
  const options = { method };
  if (body) Object.assign(options, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  const response = await fetch(path, options);
  const answer = response.status === 204 ? null : await response.json();
  if (!response.ok) alert(answer.error);
  return answer;
}

function showNote(note) {
  if (!rows.has(note.id)) addRow(note);
  const row = rows.get(note.id);
  row.className = note.done ? "done" : "";
  row.querySelector("input").checked = note.done;
  row.querySelector("span").textContent = note.text;
  countNotes();
}

function addRow({ id }) {
  const path = `/api/notes/${id}`;
  const box = element("input", { type: "checkbox" });
  box.addEventListener("change", () => api("PATCH", path, { done: box.checked }));
  const remove = element("button", { textContent: "×", title: "Delete" });
  remove.addEventListener("click", () => api("DELETE", path));
  const row = element("li", {}, element("label", {}, box, element("span")), remove);
  rows.set(id, row);
  $("note-list").append(row);
}

function removeNote({ id }) {
  rows.get(id)?.remove();
  rows.delete(id);
  countNotes();
}

function countNotes() {
  const open = [...rows.values()].filter((row) => !row.className).length;
  $("note-count").textContent = `${open} open, ${rows.size} in all`;
}

async function loadNotes() {
  const notes = await api("GET", "/api/notes");
  rows.clear();
  $("note-list").replaceChildren();
  notes.forEach(showNote);
  countNotes();
}

onSubmit($("note-form"), (text) => void api("POST", "/api/notes", { text }));

// --- events --------------------------------------------------------------------------------------------------------

const late = []; // milliseconds, one for each second of the last minute

function showPulse(pulse) {
  late.push(pulse.late_ms);
  if (late.length > 60) late.shift();
  const worst = Math.max(...late);
  $("late").firstElementChild.textContent = pulse.late_ms.toFixed(2);
  $("worst").textContent = `${worst.toFixed(2)} ms`;
  $("beats").textContent = pulse.beats;
  $("member-count").textContent = pulse.members;
  $("chart").replaceChildren(...late.map((value, index) => bar(60 - late.length + index, (value / worst) * 20)));
}

function bar(x, height) {
  const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  Object.entries({ x, y: 20 - height, width: 0.75, height }).forEach(([name, value]) => rect.setAttribute(name, value));
  return rect;
}

async function showServer() {
  const status = await api("GET", "/api/status");
  const mode = status.mode ? ` (${status.mode})` : "";
  $("server").textContent = `${status.loop}${mode} · ${status.python} · aiohttp ${status.aiohttp}`;
  $("server").className = "";
}

const events = new EventSource("/api/events"); // reconnects by itself
events.addEventListener("open", () => {
  showServer();
  loadNotes();
});
events.addEventListener("error", () => {
  $("server").textContent = "the server does not answer";
  $("server").className = "lost";
});
events.addEventListener("pulse", (event) => showPulse(JSON.parse(event.data)));
events.addEventListener("note", (event) => {
  const { action, note } = JSON.parse(event.data);
  if (action === "deleted") removeNote(note);
  else showNote(note);
});

// --- chat ----------------------------------------------------------------------------------------------------------

const me = `guest-${Math.random().toString(36).slice(2, 6)}`;
const members = new Set();
let socket;

function connect() {
  const address = new URL(`/rooms/lobby?name=${me}`, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  socket = new WebSocket(address);
  socket.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  socket.addEventListener("close", () => {
    $("members").textContent = "not connected";
    setTimeout(connect, RETRY);
  });
}

function hear(message) {
  const act = {
    welcome() {
      members.clear();
      message.members.forEach((name) => members.add(name));
      $("messages").replaceChildren();
      message.history.forEach(addMessage);
      notice(`you are ${me}`);
    },
    joined() {
      members.add(message.name);
      notice(`${message.name} joined`);
    },
    left() {
      members.delete(message.name);
      notice(`${message.name} left`);
    },
    message: () => addMessage(message),
    error: () => notice(message.text),
  };
  act[message.type]?.();
  $("members").textContent = [...members].join(", ");
}

function addMessage({ name, text }) {
  append(element("li", { className: name === me ? "mine" : "" }, element("b", { textContent: name }), text));
}

function notice(text) {
  append(element("li", { className: "notice", textContent: text }));
}

function append(item) {
  $("messages").append(item);
  $("messages").scrollTop = $("messages").scrollHeight;
}

onSubmit($("chat-form"), (text) => {
  if (socket.readyState !== WebSocket.OPEN) return false;
  socket.send(JSON.stringify({ text }));
});

connect();
