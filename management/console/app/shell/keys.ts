import { isKeyListOpen, isPaletteOpen } from './palette-state.ts';

/** The keys of `key-list.tsx`, except `x`, which is that of the lists with checkboxes. */
export function followKeys(): () => void {
  const onKeyDown = (event: KeyboardEvent) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      isPaletteOpen.value = true;
      return;
    }
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (document.querySelector('dialog[open]') !== null) return;
    if (
      event.key === 'Escape' &&
      event.target instanceof HTMLElement &&
      event.target.matches('[type=search]')
    ) {
      // Without this, the browser would also empty the field.
      event.preventDefault();
      event.target.blur();
      return;
    }
    if (isTyping(event.target)) return;
    if (event.key === '/') {
      event.preventDefault();
      const field = document.querySelector<HTMLElement>('[data-find]');
      if (field === null) isPaletteOpen.value = true;
      else field.focus();
    } else if (event.key === '?') {
      isKeyListOpen.value = true;
    } else if (event.key === 'j' || event.key === 'k') {
      step(event.key === 'j' ? 1 : -1);
    }
  };
  document.addEventListener('keydown', onKeyDown);
  return () => document.removeEventListener('keydown', onKeyDown);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches('input, select, textarea');
}

function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  // The cast is safe: an active element of another kind isn't among the rows.
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at === -1 ? (by === 1 ? 0 : rows.length - 1) : at + by;
  rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus();
}
