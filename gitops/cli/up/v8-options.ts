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
