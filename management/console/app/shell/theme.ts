import { effect, signal } from '@preact/signals';

const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
const KEY = 'tagyard-theme';

export const theme = signal<Theme>(THEMES.find((one) => one === stored()) ?? 'system');

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Applies the chosen theme, and keeps it for this browser. */
export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    try {
      localStorage.setItem(KEY, theme.value);
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
  });
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system';
}
