import { signal } from '@preact/signals';

/** The client whose containers are shown, until the page is closed; empty: all. */
export const shownClient = signal('');
