/**
 * V8's options for the provisioner of a host, in `npm run provisioner`; V8 reads them at its start only. By default, on
 * a machine with much memory, V8 lets its young generation grow to 128 MiB and its heap to twice the live size,
 * although a pass allocates a few megabytes. Measured without and with both constants, after six passes without a change: 356 and
 * 181 MiB with 1,000 sites, 185 and 138 MiB with 100. A pass of 1,000 sites took 0.12 s and 0.23 s of CPU time.
 */
export const V8_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=30'] as const;

/**
 * A setting of glibc for the same process. Allocations above this size in bytes are mapped one by one, and return to
 * the system when they are freed. The value is glibc's initial default. Without the setting glibc raises the threshold
 * at run time, and large API responses fragment the heap by tens of megabytes. Other C libraries ignore it.
 */
export const ALLOCATOR = { MALLOC_MMAP_THRESHOLD_: '131072' } as const;
