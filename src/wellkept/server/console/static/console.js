// Keyboard and live parts of the console. Every page works without it.
"use strict";

// On a phone, menus scroll sideways: show where we are.
for (const here of document.querySelectorAll(".menu [aria-current]")) {
  const menu = here.closest(".menu");
  menu.scrollLeft = here.offsetLeft - menu.offsetLeft - (menu.clientWidth - here.offsetWidth) / 2;
}

function isTyping(target) {
  return target.matches("input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select") || target.isContentEditable;
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
  return element ? element.closest(".memory-row, li.memory") : null;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const rows = [...document.querySelectorAll(".memory-row, li.memory")];
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
    const link = rows[at].querySelector(".text-cell a, a.id");
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

// Why: the order follows the sliders; the address follows the form, so that it can be shared.
const playground = document.querySelector("#playground");
if (playground) {
  const list = document.querySelector("#anew");
  const sliders = [...playground.querySelectorAll("[data-weight]")];
  const reorder = () => {
    const weights = sliders.map((each) => Number(each.value));
    sliders.forEach((each) => {
      each.closest("label").querySelector("output").textContent = Number(each.value).toFixed(2);
    });
    const query = new URLSearchParams(new FormData(playground));
    history.replaceState(null, "", `${playground.action}?${query}`);
    if (!list) return;
    const limit = Number(list.dataset.limit);
    const rows = [...list.children].map((row) => {
      const parts = row.dataset.parts.split(",").map((part, index) => Number(part) * weights[index]);
      return { row, parts, score: parts.reduce((sum, part) => sum + part, 0) };
    });
    rows.sort((a, b) => b.score - a.score);
    rows.forEach(({ row, parts, score }, index) => {
      const was = Number(row.dataset.was) || 0;
      const place = index + 1;
      const moved = row.querySelector(".moved");
      row.hidden = place > limit && !row.classList.contains("is-asked");
      row.querySelector(".rank").textContent = place;
      row.querySelector(".score-value").textContent = score.toFixed(3);
      moved.textContent = !was ? "new" : was > place ? `▲ ${was - place}` : was < place ? `▼ ${place - was}` : "=";
      moved.className = `moved mark ${!was ? "mark-count" : was > place ? "mark-good" : was < place ? "mark-warn" : ""}`;
      let x = 0;
      parts.forEach((part, number) => {
        const bar = row.querySelector(`.part-${number + 1}`);
        bar.setAttribute("x", x);
        bar.setAttribute("width", 1000 * part);
        x += 1000 * part;
      });
      list.append(row);
    });
  };
  sliders.forEach((each) => each.addEventListener("input", reorder));
}

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
