import { signal } from '@preact/signals';

export const isPaletteOpen = signal(false);
export const isKeyListOpen = signal(false);
