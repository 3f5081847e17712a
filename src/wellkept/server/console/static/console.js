// Keyboard and live parts of the console. Every page works without it.
"use strict";

function isTyping(target) {
  return target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select") || target.isContentEditable;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && isTyping(event.target)) event.target.blur();
  if (isTyping(event.target)) return;
  if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (search) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  } else if (event.key === "?") {
    const help = document.querySelector("#keys");
    if (help) {
      event.preventDefault();
      help.open = !help.open;
      if (help.open) help.querySelector("summary").focus();
    }
  }
});

// Rows of memories: j and k move, x selects, e opens.
function rowOf(element) {
  return element ? element.closest(".memory-row") : null;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const rows = [...document.querySelectorAll(".memory-row")];
  if (!rows.length || !"jkxe".includes(event.key) || event.key.length !== 1) return;
  const at = rows.indexOf(rowOf(document.activeElement));
  if (event.key === "j" || event.key === "k") {
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)))];
    next.querySelector("a").focus();
    next.scrollIntoView({ block: "nearest" });
  } else if (at >= 0 && event.key === "x") {
    const box = rows[at].querySelector("input[type=checkbox]");
    if (box) box.click();
  } else if (at >= 0) {
    const link = rows[at].querySelector(".text-cell a");
    if (link) link.click();
  }
  event.preventDefault();
});

document.addEventListener("change", (event) => {
  const count = document.querySelector("#selected");
  if (count && event.target.name === "id") {
    const picked = document.querySelectorAll("#bulk input[name=id]:checked").length;
    count.textContent = picked ? `${picked} selected` : "";
  }
});

// Files dropped anywhere on the zone; a browser alone accepts them on its button only.
for (const zone of document.querySelectorAll(".drop-zone")) {
  const input = zone.querySelector("input[type=file]");
  zone.addEventListener("dragover", (event) => event.preventDefault());
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
}

// Live pages: fetched again while somebody looks and nobody is typing or pointing at something in them.
function refreshLater() {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  setTimeout(async () => {
    const content = document.querySelector("#content");
    const isUsed = content.contains(document.activeElement) || content.matches(":hover");
    if (!document.hidden && (!isUsed || content.querySelector(".loading"))) {
      try {
        const answer = await fetch(location.href, { redirect: "error" });
        if (answer.ok) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          content.replaceChildren(...page.querySelector("#content").childNodes);
        }
      } catch {
        // The server is away or the login has ended: the page stays as it is, and the next click says so.
      }
    }
    refreshLater();
  }, 1000 * Number(live.dataset.live));
}
refreshLater();
