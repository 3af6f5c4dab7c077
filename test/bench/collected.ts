/**
 * Loaded into the daemon that is measured, before its own code: at each message it collects garbage and says so, so
 * that its memory is what it holds, without garbage.
 */
process.on('message', (message) => {
  if (message !== 'collect') return;
  // Twice, because memory that a finalizer holds is free after the second collection.
  for (let times = 0; times < 2; times += 1) globalThis.gc?.();
  process.send?.('collected');
});
