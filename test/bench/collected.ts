/**
 * Loaded into the measured daemon before the daemon's own code. At each message `collect`, it collects garbage and
 * confirms that, so that the daemon's memory is measured without garbage.
 */
process.on('message', (message) => {
  if (message !== 'collect') return;
  // Twice, because memory that a finalizer holds is free after the second collection.
  for (let times = 0; times < 2; times += 1) globalThis.gc?.();
  process.send?.('collected');
});
