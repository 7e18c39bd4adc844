"use strict";
// Choosing among what the page holds: nothing is computed.
(() => {
  const all = selector => [...document.querySelectorAll(selector)];
  const one = id => document.getElementById(id);
  all(".script-only").forEach(element => { element.hidden = false; });

  const filter = one("filter");
  if (filter) {
    const claims = all("[data-tags]");
    const apply = () => {
      const wanted = [...filter.querySelectorAll("select")].map(s => s.value).filter(Boolean);
      for (const claim of claims) {
        const tags = claim.dataset.tags.split(" ");
        claim.hidden = !wanted.every(tag => tags.includes(tag));
      }
      const shown = claims.filter(claim => !claim.hidden).length;
      const number = one("filter-shown");
      number.textContent = number.value = shown;
    };
    filter.addEventListener("change", apply);
    filter.addEventListener("reset", () => setTimeout(apply));
    apply();  // a browser may bring choices back
    // a link to a claim that is filtered out shows it all the same
    addEventListener("hashchange", () => {
      const target = one(location.hash.slice(1));
      if (target && target.closest("[data-tags][hidden]")) {
        filter.reset();
        apply();
        target.scrollIntoView();
      }
    });
  }
})();
