/**
 * Runs in a page before its own scripts, and records in `window.watch` layout shifts without a person's input,
 * the longest task over 50 ms, and when something is painted (`isShown`: milliseconds since the navigation began).
 */
export const WATCH = `
window.watch = {
  shift: 0, shifts: [], longest: 0,
  /** Resolves isShown when an element that matches the selector was painted and a task has run after that. */
  shown(selector) {
    this.isShown = new Promise((resolve) => {
      const check = () => {
        if (document.querySelector(selector) === null) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      };
      const observer = new MutationObserver(check);
      observer.observe(document, { childList: true, subtree: true });
      check();
    });
  },
  /** Resolves areShown to the time from the next key until the only row of the table has this name. */
  rows(name) {
    this.areShown = new Promise((resolve) => {
      let pressed = 0;
      addEventListener('keydown', (event) => { pressed = event.timeStamp; }, { once: true, capture: true });
      const check = () => {
        const names = [...document.querySelectorAll('tbody tr a')].map((one) => one.textContent);
        if (pressed === 0 || names.length !== 1 || names[0] !== name) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - pressed)));
      };
      const observer = new MutationObserver(check);
      observer.observe(document.body, { childList: true, subtree: true, characterData: true });
    });
  },
  /** From now on, longest is the longest task. */
  tasks() {
    this.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) this.longest = Math.max(this.longest, duration);
    }).observe({ type: 'longtask' });
  },
};
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) {
    if (one.hadRecentInput) continue;
    window.watch.shift += one.value;
    window.watch.shifts.push([one.value, ...one.sources.map(({ node }) => node?.parentElement?.outerHTML.slice(0, 120))]);
  }
}).observe({ type: 'layout-shift', buffered: true });
`;
