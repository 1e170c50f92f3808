// The address after # holds the filter, as in #kind=theorem&verdict=corrected&q=loops, so that a view can be shared.
// An address without = is that of a claim or a figure. Without this script the page shows everything.
const rows = [...document.querySelectorAll("table.claims tbody tr")];
const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
const search = document.getElementById("search"), shown = document.getElementById("shown");
const read = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
function apply() {
  const filter = read(), words = (filter.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  if (search.value.trim() !== (filter.get("q") || "")) search.value = filter.get("q") || "";
  let count = 0;
  for (const row of rows) {
    const fits = ["kind", "verdict"].every(key => !filter.get(key) || row.dataset[key] === filter.get(key))
      && words.every(word => texts.get(row).includes(word));
    row.hidden = !fits;
    count += fits;
  }
  for (const section of document.querySelectorAll(".experiment"))
    section.hidden = !section.querySelector("tbody tr:not([hidden])");
  for (const link of document.querySelectorAll(".counts a")) {
    const mine = new URLSearchParams(link.hash.slice(1));
    const same = ["kind", "verdict"].every(key => mine.get(key) === filter.get(key));
    link.toggleAttribute("aria-current", same);
  }
  shown.textContent = count === rows.length ? "" : `${count} of ${rows.length} shown`;
  document.getElementById("clear").hidden = count === rows.length;
  const place = !location.hash.includes("=") && document.getElementById(location.hash.slice(1));
  if (place && place.matches("tr, figure")) {
    place.querySelector("details").open = true;
    place.scrollIntoView({behavior: "instant"});
  }
}
search.addEventListener("input", () => {
  const filter = read(), text = search.value.trim();
  text ? filter.set("q", text) : filter.delete("q");
  history.replaceState(null, "", "#" + filter);
  apply();
});
for (const link of document.querySelectorAll(".counts a")) link.addEventListener("click", event => {
  // Keep what is searched for; a second click takes the filter back.
  event.preventDefault();
  const filter = new URLSearchParams(link.hasAttribute("aria-current") ? "" : link.hash.slice(1));
  if (read().get("q")) filter.set("q", read().get("q"));
  location.hash = filter.toString();
});
document.documentElement.classList.add("scripted");
addEventListener("hashchange", apply);
apply();
