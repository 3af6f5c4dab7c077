import { collectWhenIdle } from './collect-when-idle.ts';

/** Loaded into each part before its own code. The process that starts the parts sends `{ type: 'collect' }` when one is ready. */
process.on('message', (message: unknown) => {
  if (typeof message !== 'object' || message === null || !('type' in message)) return;
  if (message.type === 'collect') void collectWhenIdle();
});
