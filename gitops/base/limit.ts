/** Lets so many pieces of work run at once; the others wait their turn, first come, first served. */
export function limit(width: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;

  return async (work) => {
    if (running < width) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // Whoever comes next takes this one's place.
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
