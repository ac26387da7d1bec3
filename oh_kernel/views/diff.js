// Shows the edits and questions of one turn and reports what a person decides.
//
// Every text here comes from files, commands or a model. It arrives as JSON inside a string (so that
// saved state holds no markup), and it becomes text nodes and attributes, never HTML.

const OPEN = ["waiting", "applied"];

function make(tag, className, text) {
  const node = document.createElement(tag);
  node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function diffTable(item) {
  const table = make("table", "oh-rows");
  table.setAttribute("aria-label", `Changes in ${item.title}`);
  for (const [kind, sign, oldLine, newLine, spans] of item.rows) {
    const row = table.insertRow();
    row.className = `oh-${kind}`;
    row.insertCell().textContent = oldLine ?? "";
    row.insertCell().textContent = newLine ?? "";
    const line = row.insertCell();
    line.append(make("span", "oh-sign", sign));
    for (const [colour, text] of spans) line.append(make("span", colour && `oh-${colour}`, text));
  }
  return table;
}

function button(label, name, className, act) {
  const node = make("button", `jupyter-button oh-button ${className}`, label);
  node.type = "button";
  node.setAttribute("aria-label", name);
  node.addEventListener("click", act);
  return node;
}

// One edit or question: built once; `show` only changes its status and buttons, so that focus, text
// being typed and the scroll position stay.
class Part {
  constructor(item, send) {
    const isEdit = item.kind === "edit";
    const subject = isEdit ? `edit of ${item.title}` : item.title;
    this.root = make("section", "oh-part");
    this.root.setAttribute("aria-label", isEdit ? `Edit of ${item.title}` : item.title);
    const head = make("div", "oh-head");
    head.append(make("span", "oh-title", item.title), make("span", "oh-headline", item.headline));
    this.status = make("span", "oh-status");
    this.status.setAttribute("role", "status");
    this.status.tabIndex = -1;
    this.controls = make("span", "oh-controls");
    const yes = isEdit ? "Accept" : "Approve";
    this.reason = make("input", "oh-reason");
    this.reason.placeholder = "reason (optional)";
    this.reason.setAttribute("aria-label", `Reason to reject ${subject}`);
    const decide = (accepted) => {
      this.wait(accepted ? `${yes}: sent …` : "Reject: sent …");
      send({ type: "decide", id: item.id, accepted, reason: this.reason.value });
    };
    this.controls.append(
      button(yes, `${yes} ${subject}`, "mod-success", () => decide(true)),
      button("Reject", `Reject ${subject}`, "mod-danger", () => decide(false)),
      this.reason,
    );
    head.append(this.status, this.controls);
    this.root.append(head);
    for (const line of item.lines) this.root.append(make("div", "oh-line", line));
    if (item.code) this.root.append(make("pre", "oh-code", item.code));
    if (item.rows.length) this.root.append(diffTable(item));
  }

  wait(words) {
    this.status.textContent = words;
    this.status.focus(); // a disabled button would drop the focus to the page
    for (const control of this.controls.children) control.disabled = true;
  }

  show({ state, words }) {
    const hadFocus = this.root.contains(document.activeElement);
    this.root.dataset.state = state;
    // Setting equal text again would make screen readers repeat it.
    if (this.status.textContent !== words) this.status.textContent = words;
    this.controls.hidden = !OPEN.includes(state);
    for (const control of this.controls.children) control.disabled = this.controls.hidden;
    if (hadFocus && this.controls.hidden) this.status.focus();
  }
}

function render({ model, el }) {
  const root = make("div", "oh-diff");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Edits and questions of the agent");
  // JupyterLab would take Enter and letters for its own shortcuts.
  root.dataset.lmSuppressShortcuts = "true";
  el.append(root);

  const parts = new Map();
  const showStates = () => {
    const states = JSON.parse(model.get("states"));
    for (const [id, part] of parts) part.show(states[id]);
  };
  const showItems = () => {
    for (const item of JSON.parse(model.get("items"))) {
      if (parts.has(item.id)) continue;
      const part = new Part(item, (message) => model.send(message));
      parts.set(item.id, part);
      root.append(part.root);
    }
    showStates();
  };
  showItems();
  model.on("change:items", showItems);
  model.on("change:states", showStates);
  return () => {
    model.off("change:items", showItems);
    model.off("change:states", showStates);
  };
}

export default { render };
