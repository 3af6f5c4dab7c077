/**
 * How Node is started for the provisioner, also by `npm run provisioner`; V8 takes these at its own start only. On a
 * machine with much memory V8 lets its young generation grow to 128 MiB and its heap to twice what is alive, where what
 * a pass leaves behind is a few megabytes. Costs a third more CPU a pass, and saves half of the memory.
 */
export const V8_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=30'] as const;

/**
 * glibc's, in the same command's environment: what is larger than so many bytes (its own default at the start) is mapped
 * by itself, and goes back to the system once it is free. Left alone, that size grows with what was freed before, and
 * pages of answers leave tens of megabytes of holes behind. Other libraries pass it over.
 */
export const ALLOCATOR = { MALLOC_MMAP_THRESHOLD_: '131072' } as const;
