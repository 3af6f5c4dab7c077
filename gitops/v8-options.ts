/**
 * How Node is started for the provisioner; V8 takes these at its own start only. On a machine with much memory V8 lets
 * its young generation grow to 128 MiB, most of it empty, where what a pass leaves behind is a few megabytes.
 */
export const V8_OPTIONS = ['--max-semi-space-size=4'] as const;
