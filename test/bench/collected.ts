/**
 * Loaded into the daemon that is measured, before its own code: at each message it collects garbage and says so, so
 * that what is read of its memory is what it holds, and not what it hasn't thrown away yet.
 */
process.on('message', (message) => {
  if (message !== 'collect') return;
  // Twice: what only a finalizer held is free after the second.
  for (let times = 0; times < 2; times += 1) globalThis.gc?.();
  process.send?.('collected');
});
