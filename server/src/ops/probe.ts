/** What `mnem-sidecar health` calls itself. */
export const PROBE_NAME = 'mnem-sidecar health'
