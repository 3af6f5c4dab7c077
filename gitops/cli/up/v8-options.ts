/**
 * V8's options for the provisioner of a host, in `npm run provisioner`; V8 reads them at its start only. By default, on
 * a machine with much memory, V8 lets its young generation grow to 128 MiB and its heap to twice the live size,
 * although a pass allocates a few megabytes. The options halve the memory and cost a third more CPU per pass.
 */
export const V8_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=30'] as const;

/**
 * A setting of glibc for the same process. Allocations above this size in bytes are mapped one by one, and return to
 * the system when they are freed. The value is glibc's initial default. Without the setting glibc raises the threshold
 * at run time, and large API responses fragment the heap by tens of megabytes. Other C libraries ignore it.
 */
export const ALLOCATOR = { MALLOC_MMAP_THRESHOLD_: '131072' } as const;

/**
 * Options for the parts of one machine. They halve what V8 keeps besides the live objects, and switch its optimising
 * compiler off: it would take another 6 to 10 MB in each part, and make a start slower.
 */
export const SMALL_V8 = ['--max-semi-space-size=1', '--optimize-for-size', '--no-opt'] as const;

/**
 * Options for the process that starts the parts, runs the emulated Cloudflare and waits most of the time. It needs no
 * compiler of machine code at all, which would take 3 to 4 MB. `npm start` and the first line of `cli.ts` repeat these
 * options, so Node 18 must know them, too.
 */
export const WAITING_V8 = [...SMALL_V8, '--no-sparkplug'] as const;

/**
 * Compiles WebAssembly once, by the fast compiler. For PGlite's ten megabytes of code, the optimising one needs
 * 200 to 300 MB, which it never returns.
 */
export const QUICK_WASM = '--liftoff-only';

/**
 * glibc's settings for the parts: all threads use one heap, and freed memory returns sooner. `npm start` sets them
 * for the process that starts the parts, too.
 */
export const SMALL_HEAP = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '65536',
  MALLOC_MMAP_THRESHOLD_: '65536',
} as const;
